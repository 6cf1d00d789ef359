#include "run/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/endian.h"
#include "base/file/file.h"
#include "base/text/display.h"

namespace invar::run {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr struct {
  std::string_view descr;
  DType dtype;
} kTypes[] = {{"<f4", DType::f32},  {"<f2", DType::f16}, {"<f8", DType::f64}, {"<i8", DType::i64},
              {"<i4", DType::i32},  {"|i1", DType::i8},  {"|u1", DType::u8},  {"|b1", DType::boolean},
              {"<V2", DType::bf16}, {"<i2", DType::i16}, {"<u2", DType::u16}, {"<u4", DType::u32},
              {"<u8", DType::u64}};

// The text after 'KEY': in the header, a Python dictionary; empty where it has no such key.
std::string_view value_of(std::string_view header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == header.npos) return {};
  header.remove_prefix(at + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

// (2, 3), (2,), ().
std::optional<std::vector<int64_t>> shape_from(std::string_view text) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == text.npos) return std::nullopt;
  text = text.substr(1, end - 1);
  std::vector<int64_t> shape;
  while (!text.empty()) {
    int64_t n = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || n < 0) return std::nullopt;
    shape.push_back(n);
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
    if (!text.empty() && !text.starts_with(',')) return std::nullopt;
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
  }
  return shape;
}

}  // namespace

Result<Tensor> read_npy(const std::string& path) {
  INVAR_TRY(const MappedFile file, MappedFile::open(path));
  const std::string_view text = file.text();
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(text[i])); };
  // The magic, the version, the length of the header in 2 bytes, from version 2 on in 4.
  const size_t wide = text.size() > 12 && byte(6) >= 2 ? 2 : 0, begin = 10 + wide;
  if (!text.starts_with(kNpyMagic) || text.size() < begin) return bad_input(path + ": not a .npy file");
  size_t length = byte(8) | byte(9) << 8;
  if (wide) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - begin) return bad_input(path + ": it ends within its header");
  const std::string_view header = text.substr(begin, length);
  const std::string_view data = text.substr(begin + length);

  const std::string_view descr = value_of(header, "descr"), fortran = value_of(header, "fortran_order");
  const auto shape = shape_from(value_of(header, "shape"));
  if (descr.empty() || fortran.empty() || !shape) return bad_input(path + ": its header is not understood");
  if (!fortran.starts_with("False"))
    return bad_input(path + ": its array is column-major: save numpy.ascontiguousarray(...)");
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](auto& t) { return descr.substr(1, 3) == t.descr; });
  if (type == std::end(kTypes))
    return bad_input(path + ": elements " + excerpt(descr.substr(0, descr.find(','))) +
                     ": use float32, float16, float64, bool or integers of 8 to 64 bits");

  Tensor t{type->dtype, *shape, {}};
  uint64_t bytes = size_of(t.dtype);
  for (const int64_t n : t.shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes)) bytes = UINT64_MAX;
  if (data.size() != bytes)
    return bad_input(path + ": it holds " + std::to_string(data.size()) + " bytes of data, its shape says " +
                     std::to_string(bytes));
  if (t.dtype == DType::boolean && std::any_of(data.begin(), data.end(), [](char c) { return c & ~1; }))
    return bad_input(path + ": a bool in it is neither 0 nor 1");
  t.bytes.resize(bytes);
  copy_little_endian(t.bytes.data(), data.data(), bytes, size_of(t.dtype));
  return t;
}

std::string npy_of(const Tensor& t) {
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& k) { return k.dtype == t.dtype; });
  std::string header = "{'descr': '" + std::string(type->descr) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t n : t.shape) header += std::to_string(n) + ", ";
  if (t.shape.size() > 1) header.resize(header.size() - 2);
  header += "), }";
  header.append(63 - (header.size() + 10) % 64, ' ').push_back('\n');  // the data begin at a multiple of 64
  std::string text = std::string(kNpyMagic) + std::string("\x01\x00", 2);
  text += static_cast<char>(header.size() & 255), text += static_cast<char>(header.size() >> 8);
  text += header;
  const size_t begin = text.size();
  text.resize(begin + t.bytes.size());
  copy_little_endian(text.data() + begin, t.bytes.data(), t.bytes.size(), size_of(t.dtype));
  return text;
}

}  // namespace invar::run
