// Converts TensorProto to TensorRef and back.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/endian.h"
#include "onnx/error_text.h"
#include "onnx/proto.h"
#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

using ::onnx::TensorProto;

template <class Word, class Field>
void append_words(std::string& bytes, const Field& field, size_t width) {
  bytes.reserve(bytes.size() + static_cast<size_t>(field.size()) * width);
  for (auto value : field) {
    Word word;
    if constexpr (sizeof(Word) == sizeof value)
      std::memcpy(&word, &value, sizeof word);
    else
      word = static_cast<Word>(value);
    for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  }
}

// The bytes that raw_data would have, from the typed fields of a TensorProto.
std::string typed_bytes(const TensorProto& proto, int bits) {
  std::string bytes;
  append_words<uint32_t>(bytes, proto.float_data(), 4);
  append_words<uint64_t>(bytes, proto.double_data(), 8);
  append_words<uint64_t>(bytes, proto.int64_data(), 8);
  // uint64_data also holds uint32; int32_data everything narrower, sub-byte types already packed in
  // bytes.
  append_words<uint64_t>(bytes, proto.uint64_data(), bits == 32 ? 4 : 8);
  append_words<uint32_t>(bytes, proto.int32_data(),
                         bits < 8     ? 1
                         : bits >= 32 ? 4
                                      : static_cast<size_t>(bits) / 8);
  return bytes;
}

Status read_external(const TensorProto& proto, const std::string& where, uint64_t needed, TensorRef& t) {
  bool seen_location = false, seen_offset = false, seen_length = false;
  for (const auto& entry : proto.external_data()) {
    auto number = [&](bool& seen, uint64_t& value) -> Status {
      const std::string& s = entry.value();
      auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
      if (seen || error != std::errc() || end != s.data() + s.size() || value > INT64_MAX)
        return bad_input(where + ": external " + entry.key() + " " + quote(s) +
                         " is not one non-negative number");
      seen = true;
      return {};
    };
    if (entry.key() == "location") {
      if (seen_location) return bad_input(where + ": two external locations");
      seen_location = true;
      t.file = entry.value();
    } else if (entry.key() == "offset") {
      INVAR_CHECK_OK(number(seen_offset, t.offset));
    } else if (entry.key() == "length") {
      INVAR_CHECK_OK(number(seen_length, t.length));
    } else if (entry.key() != "checksum") {  // an unknown key may change the meaning of the others
      return not_covered(where + ": external data key " + quote(entry.key()) + " is not covered");
    }
  }
  if (!seen_location || t.file.empty()) return bad_input(where + ": external data without a location");
  if (!seen_length) t.length = needed;
  if (t.length != needed)
    return bad_input(where + ": has " + std::to_string(t.length) +
                     " bytes of data, but its type and shape need " + std::to_string(needed));
  return {};
}

Result<TensorRef> string_tensor(const TensorProto& proto, const std::string& where, TensorRef t) {
  const auto count = byte_size(t.shape, 8);
  if (!count) return bad_input(where + ": shape " + shape_text(t.shape) + " is not the shape of any tensor");
  if (*count != static_cast<uint64_t>(proto.string_data_size()) || proto.has_raw_data() ||
      proto.data_location() == TensorProto::EXTERNAL)
    return bad_input(where + ": has " + std::to_string(proto.string_data_size()) +
                     " strings, and its shape needs " + std::to_string(*count));
  for (const std::string& s : proto.string_data()) {
    for (int i = 0; i < 8; ++i) t.inline_data += static_cast<char>(uint64_t{s.size()} >> (8 * i) & 0xff);
    t.inline_data += s;
  }
  return t;
}

}  // namespace

Result<TensorRef> from_proto(const TensorProto& proto, const std::string& where) {
  TensorRef t;
  t.name = proto.name();
  t.data_type = proto.data_type();
  t.shape.assign(proto.dims().begin(), proto.dims().end());
  if (t.data_type == kString) return string_tensor(proto, where, std::move(t));
  auto bits = bits_of(t.data_type);
  if (!bits) return bad_input(where + ": unknown element type " + std::to_string(t.data_type));
  auto bytes = byte_size(t.shape, *bits);
  if (!bytes) return bad_input(where + ": shape " + shape_text(t.shape) + " is not the shape of any tensor");
  if (proto.has_segment()) return not_covered(where + ": is stored in segments, which are not covered");
  const bool typed = proto.float_data_size() || proto.double_data_size() || proto.int64_data_size() ||
                     proto.uint64_data_size() || proto.int32_data_size() || proto.string_data_size();
  if (proto.data_location() == TensorProto::EXTERNAL) {
    if (typed || proto.has_raw_data()) return bad_input(where + ": has both external and inline data");
    INVAR_CHECK_OK(read_external(proto, where, *bytes, t));
    return t;
  }
  if (typed && proto.has_raw_data()) return bad_input(where + ": has data in two fields");
  t.inline_data = proto.has_raw_data() ? proto.raw_data() : typed_bytes(proto, *bits);
  if (t.inline_data.size() != *bytes)
    return bad_input(where + ": has " + std::to_string(t.inline_data.size()) +
                     " bytes of data, but its type and shape need " + std::to_string(*bytes));
  return t;
}

Result<TensorRef> dense_from_proto(const ::onnx::SparseTensorProto& proto, const std::string& where) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 31;
  INVAR_TRY(TensorRef dense, from_proto(proto.values(), where));
  INVAR_TRY(const TensorRef indices, from_proto(proto.indices(), where + ": its indices"));
  if (!dense.file.empty() || !indices.file.empty())
    return not_covered(where + ": external data, which are not covered of a sparse one");
  const std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  const auto bits = bits_of(dense.data_type);
  const auto bytes = byte_size(shape, *bits);
  if (!bytes) return bad_input(where + ": shape " + shape_text(shape) + " is not the shape of any tensor");
  if (*bits % 8 != 0 || *bytes > kMostBytes)
    return not_covered(where + ": elements of less than a byte, or more than 2 GiB");
  const int64_t count = dense.shape.size() == 1 ? dense.shape[0] : -1;
  const auto rank = static_cast<int64_t>(shape.size());
  const bool linear = indices.shape.size() == 1;
  if (count < 0 || indices.data_type != kInt64 ||
      indices.shape != (linear ? std::vector<int64_t>{count} : std::vector<int64_t>{count, rank}))
    return bad_input(where + ": values " + shape_text(dense.shape) + " and indices " +
                     shape_text(indices.shape) + " of shape " + shape_text(shape));
  const size_t size = static_cast<size_t>(*bits) / 8;
  std::string all(*bytes, '\0');
  for (int64_t i = 0, before = -1; i < count; ++i) {
    std::string given;
    int64_t at = 0;
    bool inside = true;
    for (int64_t axis = 0; axis < (linear ? 1 : rank); ++axis) {
      int64_t index = 0;
      const size_t element = static_cast<size_t>(linear ? i : i * rank + axis);
      copy_little_endian(&index, indices.inline_data.data() + element * sizeof index, sizeof index,
                         sizeof index);
      const int64_t extent = linear ? static_cast<int64_t>(*bytes / size) : shape[static_cast<size_t>(axis)];
      given += (given.empty() ? "" : ", ") + std::to_string(index);
      inside = inside && index >= 0 && index < extent;
      at = inside ? at * extent + index : 0;
    }
    if (!inside || at <= before)
      return bad_input(where + ": index " + std::to_string(i) + ", " + given +
                       (inside ? ", does not ascend: it lies at or before the index in front of it"
                               : ", is outside of its shape " + shape_text(shape)));
    before = at;
    std::copy_n(dense.inline_data.data() + static_cast<size_t>(i) * size, size,
                all.data() + static_cast<size_t>(at) * size);
  }
  dense.shape = shape, dense.inline_data = std::move(all);
  return dense;
}

void to_proto(const TensorRef& t, TensorProto& proto) {
  proto.set_name(t.name);
  proto.set_data_type(t.data_type);
  for (int64_t d : t.shape) proto.add_dims(d);
  if (t.data_type == kString) {
    for (std::string& text : strings_of(t)) proto.add_string_data(std::move(text));
    return;
  }
  if (t.file.empty()) {
    proto.set_raw_data(t.inline_data);
    return;
  }
  proto.set_data_location(TensorProto::EXTERNAL);
  auto entry = [&](const char* key, const std::string& value) {
    auto* e = proto.add_external_data();
    e->set_key(key);
    e->set_value(value);
  };
  entry("location", t.file);
  entry("offset", std::to_string(t.offset));
  entry("length", std::to_string(t.length));
}

}  // namespace invar::onnx
