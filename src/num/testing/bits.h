// Results as bits, for tests.
#pragma once

#include "num/convert/convert.h"

namespace invar::num::testing {

// All NaN being one.
inline uint32_t id(float x) {
  return x != x ? 0x7fc00000u : f32_bits(x);
}

using F1 = float (*)(float);
using F2 = float (*)(float, float);
inline uint32_t of(F1 f, uint32_t x) {
  return id(f(f32_from_bits(x)));
}
inline uint32_t of(F2 f, uint32_t a, uint32_t b) {
  return id(f(f32_from_bits(a), f32_from_bits(b)));
}

constexpr uint32_t kNan = 0x7fc00000;
constexpr uint32_t kNans[] = {0x7f800001, 0x7fc00000, 0xffc00fff, 0xffffffff, 0x7fffffff};

}  // namespace invar::num::testing
