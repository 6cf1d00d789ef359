// x to the power y for tables that the host computes (rotary frequencies): spec/functions.md
// functions.4.
#pragma once

#ifdef __CUDACC__
#include "num/pow/certified.h"
#endif

namespace invar::num {

// The binary32 number nearest to x^y, ties to even, for finite x > 0 and finite y; NaN otherwise.
// Overflow gives infinity, subnormal results stay. Certified at run time: the result is returned
// only where an error bound or an exact comparison proves it; a pair for which neither does would
// stop the program (none is known).
#ifndef __CUDACC__
float pow_cr(float x, float y);
#else
INVAR_INTERNAL float pow_cr(float x, float y) {
  const ProvedValue r = pow_certified(x, y);
#ifdef __CUDA_ARCH__
  if (!r.proved) __trap();
#endif
  return r.value;
}
#endif

// theta^-e as rotary embeddings use it, in two roundings: p = pow_cr(theta, e), then 1 / p.
float inverse_frequency(float theta, float e);

}  // namespace invar::num
