// Numbers that people write, such as 0.8: the options of the command line and of Python.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/text/read_float.h"

namespace invar {

// A decimal number as text, rounded once to T: no hexadecimal, infinity or NaN, no locale, no wider
// type between. Returns what is wrong with it, or "".
template <class T>
std::string parse_decimal(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool digits = text.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (stop != end || !digits || error == std::errc::invalid_argument)
    return text + " is not a decimal number, such as 0.8";
  const bool vanished =
      value == 0 && text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != std::string::npos;
  if (error != std::errc() || vanished)
    return text + " is too large or too small for a floating-point number";
  return "";
}

// A whole number as people write it: digits alone, no sign, no 0 in front.
inline std::optional<uint64_t> parse_whole(std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && stop == text.data() + text.size();
  const bool plain = all && (text[0] != '0' || text.size() == 1);
  if (!plain || value < least || value > most) return std::nullopt;
  return value;
}

// The number that prints with as many digits as tell binary32 numbers apart.
inline double shortest_decimal(float x) {
  char text[32];
  double value = 0;
  read_float(text, std::to_chars(text, text + sizeof text, x).ptr, value);
  return value;
}

// The digits of shortest_decimal().
inline std::string shortest_text(float x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

}  // namespace invar
