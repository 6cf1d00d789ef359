// Element types and byte sizes of tensors.
#include "onnx/tensor.h"

#include <bit>

namespace invar::onnx {

std::optional<int> bits_of(int32_t data_type) {
  switch (data_type) {
    case 15: return 128;  // COMPLEX128
    case 7:
    case 11:
    case 13:
    case 14: return 64;  // INT64 DOUBLE UINT64 COMPLEX64
    case 1:
    case 6:
    case 12: return 32;  // FLOAT INT32 UINT32
    case 4:
    case 5:
    case 10:
    case 16: return 16;  // UINT16 INT16 FLOAT16 BFLOAT16
    case 2:
    case 3:
    case 9:
    case 17:
    case 18:
    case 19:
    case 20:
    case 24: return 8;  // (U)INT8 BOOL FLOAT8*
    case 21:
    case 22:
    case 23: return 4;  // UINT4 INT4 FLOAT4E2M1
    case 25:
    case 26: return 2;  // UINT2 INT2
    default: return std::nullopt;
  }
}

std::optional<uint64_t> byte_size(std::span<const int64_t> shape, int bits) {
  // A dimension of 0 makes a tensor empty, even if the product of the others overflows.
  int64_t total = bits;
  bool empty = false;
  for (int64_t d : shape) {
    if (d < 0) return std::nullopt;
    empty |= d == 0;
  }
  if (empty) return 0;
  for (int64_t d : shape)
    if (__builtin_mul_overflow(total, d, &total)) return std::nullopt;
  return static_cast<uint64_t>(total) / 8 + (total % 8 != 0);
}

std::vector<std::string> strings_of(const TensorRef& t) {
  std::vector<std::string> all;
  std::string_view rest = t.inline_data;
  while (rest.size() >= 8) {
    uint64_t size = 0;
    for (size_t i = 0; i < 8; ++i) size |= uint64_t{static_cast<unsigned char>(rest[i])} << (8 * i);
    all.emplace_back(rest.substr(8, size));
    rest.remove_prefix(8 + all.back().size());
  }
  return all;
}

int32_t code_of(DType t) {
  switch (t) {
    case DType::f32: return 1;
    case DType::u8: return 2;
    case DType::i8: return 3;
    case DType::u16: return 4;
    case DType::i16: return 5;
    case DType::i32: return 6;
    case DType::i64: return 7;
    case DType::boolean: return 9;
    case DType::f16: return 10;
    case DType::f64: return 11;
    case DType::u32: return 12;
    case DType::u64: return 13;
    case DType::bf16: return 16;
  }
  return 0;
}

std::optional<DType> dtype_of(int32_t data_type) {
  for (int t = 0; t <= static_cast<int>(kLastDType); ++t)
    if (code_of(static_cast<DType>(t)) == data_type) return static_cast<DType>(t);
  return std::nullopt;
}

std::string name_of_type(int32_t data_type) {
  const auto dtype = dtype_of(data_type);
  return dtype ? std::string(name_of(*dtype)) : "TensorProto.DataType " + std::to_string(data_type);
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::optional<TensorRef> constant_of(const Node& node) {
  if (node.op_type != "Constant" || !node.domain.empty() || node.outputs.size() != 1 ||
      node.attributes.size() != 1)
    return std::nullopt;
  const auto& [key, value] = *node.attributes.begin();
  if (auto* t = std::get_if<TensorRef>(&value); t && key == "value") return *t;
  TensorRef t;
  auto append = [&t](auto word) {
    for (size_t i = 0; i < sizeof word; ++i) t.inline_data += static_cast<char>(word >> (8 * i));
  };
  auto real = [&](float v) { append(std::bit_cast<uint32_t>(v)); };
  auto whole = [&](int64_t v) { append(static_cast<uint64_t>(v)); };
  auto list = [&](const auto& all, auto&& each) {
    t.shape = {static_cast<int64_t>(all.size())};
    for (auto v : all) each(v);
  };
  t.data_type = key.starts_with("value_float") ? kFloat : kInt64;
  if (auto* v = std::get_if<float>(&value); v && key == "value_float")
    real(*v);
  else if (auto* v = std::get_if<int64_t>(&value); v && key == "value_int")
    whole(*v);
  else if (auto* v = std::get_if<std::vector<float>>(&value); v && key == "value_floats")
    list(*v, real);
  else if (auto* v = std::get_if<std::vector<int64_t>>(&value); v && key == "value_ints")
    list(*v, whole);
  else
    return std::nullopt;
  return t;
}

}  // namespace invar::onnx
