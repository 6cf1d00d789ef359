#include "arrays.h"

#include <bit>
#include <cstring>

namespace invar::python {
namespace {

using Code = nb::dlpack::dtype_code;
struct Row {
  DType dtype;
  Code code;
  uint8_t bits;
};
constexpr Row kRows[] = {
    {DType::f32, Code::Float, 32},   {DType::bf16, Code::Bfloat, 16}, {DType::f16, Code::Float, 16},
    {DType::f64, Code::Float, 64},   {DType::i64, Code::Int, 64},     {DType::i32, Code::Int, 32},
    {DType::i16, Code::Int, 16},     {DType::i8, Code::Int, 8},       {DType::u64, Code::UInt, 64},
    {DType::u32, Code::UInt, 32},    {DType::u16, Code::UInt, 16},    {DType::u8, Code::UInt, 8},
    {DType::boolean, Code::Bool, 8},
};

}  // namespace

std::optional<DType> known_dtype(nb::dlpack::dtype d) {
  for (const Row& r : kRows)
    if (static_cast<uint8_t>(r.code) == d.code && r.bits == d.bits && d.lanes == 1) return r.dtype;
  return {};
}

std::string covered_dtypes() {
  std::string have;
  for (const Row& r : kRows) have += (have.empty() ? "" : " ") + std::string(name_of(r.dtype));
  return have;
}

DType dtype_of(nb::dlpack::dtype d, const std::string& where) {
  if (const auto known = known_dtype(d)) return *known;
  throw Raised{not_covered(where + ": its element type (DLPack code " + std::to_string(d.code) + ", " +
                           std::to_string(d.bits) + " bits); covered are " + covered_dtypes())};
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  for (const Row& r : kRows)
    if (r.dtype == dtype) return {static_cast<uint8_t>(r.code), r.bits, 1};
  throw Raised{not_covered("elements of " + std::string(name_of(dtype)))};
}

nb::object array_of(run::Tensor t) {
  auto* kept = new run::Tensor(std::move(t));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<run::Tensor*>(p); });
  std::vector<size_t> shape(kept->shape.begin(), kept->shape.end());
  nb::ndarray<nb::array_api> array(kept->bytes.data(), shape.size(), shape.data(), owner, nullptr,
                                   dlpack_of(kept->dtype), nb::device::cpu::value, 0);
  return nb::cast(array);
}

nb::object retyped(const ReadOnly& array, const std::string& name) {
  const auto dtype = dtype_from(name);
  if (!dtype || size_of(*dtype) != array.itemsize() || array.device_type() != nb::device::cpu::value)
    throw Raised{bad_input("an array on the host of elements of " + std::to_string(array.itemsize()) +
                           " bytes cannot be read as " + name)};
  auto* kept = new ReadOnly(array);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<ReadOnly*>(p); });
  std::vector<size_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(array.shape(i));
  return nb::cast(nb::ndarray<nb::array_api>(const_cast<void*>(array.data()), shape.size(), shape.data(),
                                             owner, nullptr, dlpack_of(*dtype), nb::device::cpu::value, 0));
}

Attributes attrs_of(const nb::dict& given) {
  Attributes attrs;
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::int_>(value))
      attrs[name] = nb::cast<int64_t>(value);
    else if (nb::isinstance<nb::float_>(value))
      attrs[name] = F32Bits{std::bit_cast<uint32_t>(static_cast<float>(nb::cast<double>(value)))};
    else if (nb::isinstance<nb::str>(value))
      attrs[name] = nb::cast<std::string>(value);
    else if (std::vector<int64_t> list; nb::try_cast(value, list))
      attrs[name] = list;
    else
      throw Raised{bad_input("attribute '" + name + "': neither int, float, str nor a list of int")};
  }
  return attrs;
}

nb::dict dict_of(const Attributes& attrs) {
  nb::dict d;
  for (const auto& [key, value] : attrs) {
    nb::object o;
    if (auto* v = std::get_if<int64_t>(&value))
      o = nb::cast(*v);
    else if (auto* v = std::get_if<F32Bits>(&value))
      o = nb::cast(static_cast<double>(v->value()));
    else if (auto* v = std::get_if<std::string>(&value))
      o = nb::cast(*v);
    else
      o = nb::cast(std::get<std::vector<int64_t>>(value));
    d[key.c_str()] = o;
  }
  return d;
}

}  // namespace invar::python
