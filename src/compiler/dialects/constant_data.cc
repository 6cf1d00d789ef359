// Conversion between bytes, hexadecimal text and integers.
#include "compiler/dialects/constant_data.h"

namespace invar::compiler {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string hex_from_bytes(std::string_view bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (unsigned char c : bytes) {
    hex += "0123456789abcdef"[c >> 4];
    hex += "0123456789abcdef"[c & 15];
  }
  return hex;
}

std::optional<std::string> bytes_from_hex(std::string_view hex) {
  if (hex.size() % 2) return std::nullopt;
  std::string bytes(hex.size() / 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::vector<int64_t> integers_from_bytes(std::string_view bytes, int size) {
  std::vector<int64_t> values;
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    uint64_t v = 0;
    for (int i = size - 1; i >= 0; --i) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
    if (size < 8 && v >> (8 * size - 1)) v |= ~uint64_t{0} << (8 * size);
    values.push_back(static_cast<int64_t>(v));
  }
  return values;
}

std::string bytes_of(std::span<const int64_t> integers, size_t size) {
  std::string bytes;
  for (int64_t v : integers)
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(static_cast<uint64_t>(v) >> (8 * i));
  return bytes;
}

}  // namespace invar::compiler
