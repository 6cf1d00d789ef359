// std::from_chars for binary floating point, which LLVM's C++ library has from release 20 on.
#pragma once

#include <algorithm>
#include <cfenv>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

namespace invar {

// Rounds to nearest in its scope, whatever a library has made of this thread: from_chars divides.
struct RoundsToNearest {
  const int before = std::fegetround();
  RoundsToNearest() { std::fesetround(FE_TONEAREST); }
  ~RoundsToNearest() { std::fesetround(before); }
  RoundsToNearest(const RoundsToNearest&) = delete;
};

// The decimal number at `first`, rounded to nearest even; result and errors as of std::from_chars.
// Infinity and NaN are no numbers here.
template <class T>
std::from_chars_result read_float(const char* first, const char* last, T& out) {
  const char* at = first;
  const auto digits = [&] {
    const char* begin = at;
    while (at != last && *at >= '0' && *at <= '9') ++at;
    return at - begin;
  };
  if (at != last && *at == '-') ++at;
  auto count = digits();
  if (at != last && *at == '.') {
    ++at;
    count += digits();
  }
  if (count == 0) return {first, std::errc::invalid_argument};
  const char* end = at;  // an exponent without digits is none
  if (at != last && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != last && (*at == '-' || *at == '+')) ++at;
    if (digits() > 0) end = at;
  }
  const RoundsToNearest nearest;
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000
  const std::string text(first, end);
  const T value = static_cast<T>(sizeof(T) == 4 ? std::strtof(text.c_str(), nullptr)
                                                : std::strtod(text.c_str(), nullptr));
  const size_t exponent = std::min(text.find_first_of("eE"), text.size());
  const bool zero = text.find_first_of("123456789") >= exponent;
  if (std::isinf(value) || (value == 0 && !zero)) return {end, std::errc::result_out_of_range};
  out = value;
  return {end, std::errc()};
#else
  return std::from_chars(first, end, out);
#endif
}

}  // namespace invar
