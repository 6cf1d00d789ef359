// Reads and validates safetensors headers.
#include "checkpoint/files/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "checkpoint/files/json.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

using json::Value;

// A header needs about 100 bytes per tensor, and the largest published ones are below 1 MB. The
// bound limits the memory that a hostile file can request.
constexpr uint64_t kMaxHeaderBytes = 25'000'000;

std::optional<int> bits_of_dtype(const std::string& dtype) {
  static const std::map<std::string, int> bits = {
      {"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"U16", 16},
      {"I16", 16}, {"F16", 16}, {"BF16", 16}, {"U32", 32},    {"I32", 32},    {"F32", 32},    {"U64", 64},
      {"I64", 64}, {"F64", 64}, {"C64", 64},  {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  auto it = bits.find(dtype);
  return it == bits.end() ? std::nullopt : std::optional(it->second);
}

Result<std::string> read_header_text(const std::string& path, uint64_t& file_size) {
  std::error_code error;
  file_size = std::filesystem::file_size(path, error);
  if (error) return bad_input("cannot read '" + path + "': " + error.message());
  std::ifstream in(path, std::ios::binary);
  unsigned char raw[8];
  if (!in) return bad_input("cannot read '" + path + "': permission denied or not a file");
  if (file_size < 8 || !in.read(reinterpret_cast<char*>(raw), 8))
    return bad_input(path + ": not a safetensors file: " + std::to_string(file_size) +
                     " bytes, shorter than the 8 of its length field");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | raw[i];
  if (length > file_size - 8)
    return bad_input(path + ": header claims " + std::to_string(length) + " bytes, but the file has only " +
                     std::to_string(file_size) + "; it is truncated or not a safetensors file");
  if (length > kMaxHeaderBytes)
    return bad_input(path + ": header claims " + std::to_string(length) + " bytes, more than the " +
                     std::to_string(kMaxHeaderBytes) + " that a header may have");
  std::string text(length, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(length)))
    return bad_input("cannot read the header of '" + path + "'");
  return text;
}

// Reads one entry. Its offset is still relative to the end of the header.
Result<StoredTensor> read_entry(const std::string& where, const Value& entry) {
  if (!entry.is_object()) return bad_input(where + ": not an object");
  StoredTensor t;
  auto dtype = entry.find("dtype"), shape = entry.find("shape"), offsets = entry.find("data_offsets");
  if (!dtype || !dtype->is_string()) return bad_input(where + ": no dtype");
  t.dtype = dtype->text;
  auto bits = bits_of_dtype(t.dtype);
  if (!bits) return bad_input(where + ": unknown dtype " + onnx::quote(t.dtype));
  if (!shape || !shape->is_array()) return bad_input(where + ": no shape");
  for (const Value& d : shape->items) {
    if (!d.is_unsigned() || d.to_uint64() > INT64_MAX)
      return bad_input(where + ": a dimension is not a size");
    t.shape.push_back(d.to_int64());
  }
  if (!offsets || !offsets->is_array() || offsets->size() != 2 || !offsets->items[0].is_unsigned() ||
      !offsets->items[1].is_unsigned())
    return bad_input(where + ": data_offsets are not two positions");
  const uint64_t begin = offsets->items[0].to_uint64(), end = offsets->items[1].to_uint64();
  if (begin > end) return bad_input(where + ": data_offsets run backwards");
  auto bytes = onnx::byte_size(t.shape, *bits);
  if (!bytes) return bad_input(where + ": shape " + onnx::shape_text(t.shape) + " is larger than any file");
  if (*bytes != end - begin)
    return bad_input(where + ": data_offsets span " + std::to_string(end - begin) + " bytes, but " + t.dtype +
                     " " + onnx::shape_text(t.shape) + " has " + std::to_string(*bytes));
  t.offset = begin;
  t.length = end - begin;
  return t;
}

}  // namespace

Result<std::map<std::string, StoredTensor>> read_safetensors_header(const std::string& path) {
  uint64_t file_size = 0;
  INVAR_TRY(std::string text, read_header_text(path, file_size));
  const uint64_t base = 8 + text.size(), data = file_size - base;
  if (text.empty() || text[0] != '{')
    return bad_input(path + ": not a safetensors file: its header is not JSON");
  INVAR_TRY(Value header, parse_json(text, path + ": header"));
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, entry] : header.members) {
    if (name == "__metadata__") continue;
    INVAR_TRY(StoredTensor t, read_entry(path + ": tensor " + onnx::quote(name), entry));
    tensors.emplace(name, std::move(t));
  }
  // Tensors must cover the data exactly once, without overlaps, gaps or a tail.
  std::vector<std::pair<const std::string, StoredTensor>*> order;
  order.reserve(tensors.size());
  for (auto& item : tensors) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::pair(a->second.offset, a->second.length) < std::pair(b->second.offset, b->second.length);
  });
  uint64_t position = 0;
  for (auto* item : order) {
    StoredTensor& t = item->second;
    const std::string where = path + ": tensor " + onnx::quote(item->first);
    if (t.offset < position) return bad_input(where + ": its bytes overlap those of the tensor before it");
    if (t.offset > position)
      return bad_input(where + ": " + std::to_string(t.offset - position) +
                       " bytes before it belong to no tensor");
    position = t.offset + t.length;
    if (position > data)
      return bad_input(where + ": ends at byte " + std::to_string(position) +
                       " of the data, but the file has only " + std::to_string(data) + "; it is truncated");
    t.offset += base;
  }
  if (position != data)
    return bad_input(path + ": " + std::to_string(data - position) + " bytes at the end belong to no tensor");
  return tensors;
}

}  // namespace invar::checkpoint
