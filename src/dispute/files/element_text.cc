#include "dispute/files/element_text.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "dispute/exchange.h"
#include "num/convert/convert.h"

namespace invar::dispute {

std::string element_text(DType dtype, std::string_view bytes) {
  uint64_t bits = 0;
  for (size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(bytes[i]);
  char text[64];
  auto decimal = [&](auto value) {
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
  };
  const int unused = 64 - 8 * static_cast<int>(bytes.size());
  std::string value;
  switch (dtype) {
    case DType::f32: value = decimal(std::bit_cast<float>(static_cast<uint32_t>(bits))); break;
    case DType::bf16: value = decimal(num::f32_from_bf16(static_cast<uint16_t>(bits))); break;
    case DType::f16: value = decimal(num::f32_from_f16(static_cast<uint16_t>(bits))); break;
    case DType::f64: value = decimal(std::bit_cast<double>(bits)); break;
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8: value = decimal(static_cast<int64_t>(bits << unused) >> unused); break;
    default: value = decimal(bits);
  }
  std::string big_endian(bytes.rbegin(), bytes.rend());
  return hex(big_endian) + " (" + value + ")";
}

int64_t first_difference(DType dtype, std::string_view a, std::string_view b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  return at == static_cast<int64_t>(a.size()) ? -1 : at / static_cast<int64_t>(size_of(dtype));
}

std::string_view element_of(DType dtype, std::string_view row, int64_t element) {
  return row.substr(static_cast<size_t>(element) * size_of(dtype), size_of(dtype));
}

}  // namespace invar::dispute
