// WebAssembly alone: fma() and fmaf() of the program, in front of those of the C library, which
// round twice where the result is subnormal. std::fma and __builtin_fma call them.
#ifdef __wasm__
#include "num/soft_fma/soft_fma.h"

extern "C" {
__attribute__((visibility("default"))) float fmaf(float a, float b, float c) {
  return invar::num::soft::fma(a, b, c);
}
__attribute__((visibility("default"))) double fma(double a, double b, double c) {
  return invar::num::soft::fma(a, b, c);
}
}
#endif
