// The numbers of tokenizer.json as Hugging Face tokenizers reads them: not always the nearest
// double, and a tie between two ways of unigram turns on the last bit (spec/tokens.md tokens.14).
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/read_float.h"
#include "prompt/files/fields.h"

namespace invar::prompt {

// A JSON number: its digits as an integer of 64 bits, made a double, times or divided by the double
// of a power of ten. Digits that do not fit are dropped.
inline double score_of(std::string_view number) {
  const bool negative = number.starts_with('-');
  size_t at = negative ? 1 : 0;
  uint64_t digits = 0;
  int64_t exponent = 0;
  const auto read = [&](bool fraction) {
    for (bool full = false; at < number.size() && number[at] >= '0' && number[at] <= '9'; ++at) {
      const auto digit = static_cast<uint64_t>(number[at] - '0');
      full = full || digits > (UINT64_MAX - digit) / 10;
      if (!full) digits = digits * 10 + digit;
      exponent += fraction ? (full ? 0 : -1) : (full ? 1 : 0);
    }
  };
  read(false);
  if (at < number.size() && number[at] == '.') ++at, read(true);
  if (at < number.size()) {
    at += number.substr(at + 1).starts_with('+') ? 2 : 1;
    int64_t written = 0;
    const auto read = std::from_chars(number.data() + at, number.data() + number.size(), written);
    exponent += read.ec == std::errc() ? std::min<int64_t>(std::max<int64_t>(written, -100000), 100000) : 0;
  }
  auto value = static_cast<double>(digits);
  const auto power = [](int64_t n) {
    const std::string text = "1e" + std::to_string(n);
    double power = 0;
    read_float(text.data(), text.data() + text.size(), power);
    return power;
  };
  for (; value != 0 && exponent < -308; exponent += 308) value /= power(308);
  if (value != 0)
    value = exponent < 0 ? value / power(-exponent) : value * power(std::min<int64_t>(exponent, 308));
  return negative ? -value : value;
}

// Integers are exact, and what is no binary64 this way is read as others read it.
inline double read_score(const Json& number) {
  const double score = number.is_integer() ? number.to_double() : score_of(number.text);
  return std::isfinite(score) ? score : number.to_double();
}

}  // namespace invar::prompt
