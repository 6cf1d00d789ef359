// Functions in double-double, whose error near 2^-98 leaves a rounding to binary64 correct:
// log_mel_test.cc compares digests of numbers that were computed with 60 digits.
#pragma once

#include <cstdint>

#include "num/dd/dd.h"

namespace invar::audio {

num::DD divided(num::DD a, double by);
num::DD exponential(num::DD x);                           // 0 <= x < 3
num::DD cosine_of_turn(int64_t n, int64_t d);             // cos(2 pi n / d), exactly 0 where it is
inline num::DD sine_of_half_turn(int64_t n, int64_t d) {  // sin(pi n / d)
  return cosine_of_turn(2 * n - d, 4 * d);
}

}  // namespace invar::audio
