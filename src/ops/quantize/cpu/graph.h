// The arithmetic of quantize_linear. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// quantize.3 for x / s: adding 3 * 2^22, whose last place is 1, rounds a quotient within +-1024 to
// an integer, ties to even. Larger quotients saturate with any zero point. NaN yields `zero`.
INVAR_INLINE I quantized(F x, F s, I zero) {
  const F q = clamp(div(x, s), -1024.0f, 1024.0f);
  const I sum = add(bits(add(q, set1(0x3p22f))), sub(zero, set1_i(0x4b400000)));
  return select(unordered(q, q), zero, sum);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
