// Groups of one channel: every tap is a vector of neighbouring outputs times one weight, out of a copied block (ops/slide_lanes.h).
// Compiled once per instruction set.
#pragma once
#include "num/contract/lanes.h"
#include "ops/slide_lanes.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// to[j] = the contraction of w[0 ... k) with x[offset[t] + j] for j < R vectors.
template <int R>
INVAR_INLINE void thin_vectors(const float* x, const int64_t* offset, const float* w, int64_t k, float* to) {
  F y[R];
  num::INVAR_ISA_NS::contract<R>(
      k,
      [&](int64_t begin, int64_t end, F(&c)[R]) __attribute__((always_inline)) {
        F acc[R];
#pragma GCC unroll 32
        for (int v = 0; v < R; ++v) acc[v] = zero();
        for (int64_t t = begin; t < end; ++t) {
          const float* at = x + offset[t];
          const F weight = set1(w[t]);
#pragma GCC unroll 32
          for (int v = 0; v < R; ++v) acc[v] = fma(load(at + v * kW), weight, acc[v]);
        }
#pragma GCC unroll 32
        for (int v = 0; v < R; ++v) c[v] = acc[v];
      },
      y);
  for (int v = 0; v < R; ++v) store(to + v * kW, y[v]);
}

// n outputs, and up to kSlideSlack more.
[[gnu::noinline]] void thin_rows(const float* x, const int64_t* offset, const float* w, int64_t k, int64_t n,
                                 float* to) {
  int64_t j = 0;
  for (; n - j > 2 * kW; j += kSlideVectors * kW) thin_vectors<kSlideVectors>(x + j, offset, w, k, to + j);
  if (j < n) thin_vectors<2>(x + j, offset, w, k, to + j);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
