// Blocked transpose: the innermost axis of the result is strided in the operand, another axis is
// contiguous. Lines of the operand are read whole and transposed in squares of registers into a
// block in the L1 cache, which is written as runs of the result. So neither side suffers from cache
// set conflicts. Compiled once per instruction set; squares are 16 bytes wide on all.
#pragma once
#include <cstring>

#include "ops/move/walk.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <class T>
struct RegisterTranspose {
  static constexpr int kN = 16 / sizeof(T);  // rows of as many elements
  typedef T V __attribute__((vector_size(16)));

  INVAR_INLINE V zip(V a, V b, bool high) {
    if constexpr (kN == 2)
      return high ? __builtin_shufflevector(a, b, 1, 3) : __builtin_shufflevector(a, b, 0, 2);
    else if constexpr (kN == 4)
      return high ? __builtin_shufflevector(a, b, 2, 6, 3, 7) : __builtin_shufflevector(a, b, 0, 4, 1, 5);
    else if constexpr (kN == 8)
      return high ? __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
                  : __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    else
      return high
                 ? __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
                 : __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  // log2 N perfect shuffles of rows i and i + N/2 transpose the square.
  INVAR_INLINE void transpose(V (&r)[kN]) {
#pragma GCC unroll 4
    for (int n = 1; n < kN; n *= 2) {
      V t[kN];
#pragma GCC unroll 8
      for (int i = 0; i < kN / 2; ++i) {
        t[2 * i] = zip(r[i], r[i + kN / 2], false);
        t[2 * i + 1] = zip(r[i], r[i + kN / 2], true);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kN; ++i) r[i] = t[i];
    }
  }
};

// Transposes `lines` x `across` elements: out[j * row + k] = x[k * stride + j].
template <class T>
INVAR_INLINE void transpose_block(T* out, int64_t row, const T* x, int64_t stride, int64_t lines,
                                  int64_t across) {
  using S = RegisterTranspose<T>;
  constexpr int kN = S::kN;
  alignas(64) T tile[kTransposeBytes / sizeof(T)][kTransposeAcross];
  const int64_t whole = lines / kN;  // squares per line
  for (int64_t k = 0; k < across; k += kN)
    for (int64_t q = 0; q < whole; ++q) {
      typename S::V r[kN];
#pragma GCC unroll 16
      for (int i = 0; i < kN; ++i) {
        int64_t at = k + i < across ? k + i : across - 1;
        std::memcpy(&r[i], x + at * stride + q * kN, 16);
      }
      S::transpose(r);
#pragma GCC unroll 16
      for (int i = 0; i < kN; ++i) std::memcpy(&tile[q * kN + i][k], &r[i], 16);
    }
  for (int64_t j = 0; j < whole * kN; ++j) {
    if (across == kTransposeAcross)
      std::memcpy(out + j * row, tile[j], sizeof tile[j]);
    else
      std::memcpy(out + j * row, tile[j], static_cast<size_t>(across) * sizeof(T));
  }
  for (int64_t j = whole * kN; j < lines; ++j)
    for (int64_t k = 0; k < across; ++k) out[j * row + k] = x[k * stride + j];
}

template <class T>
INVAR_INTERNAL void transpose(const MoveLoops& w, const T* x, T* out, int64_t begin, int64_t end) {
  const MoveAxis inner = w.axis[w.rank - 1], contiguous_axis = w.axis[w.contiguous_axis];
  constexpr int64_t kLines = kTransposeBytes / static_cast<int64_t>(sizeof(T));
  int64_t step[kMaxRank], of = 1;  // strides of the result
  for (int d = w.rank - 1; d >= 0; --d) step[d] = of, of *= w.axis[d].size;
  for (int64_t u = begin; u < end; ++u) {
    int64_t rest = u / w.groups, k = u % w.groups * kTransposeGroup, j = rest % w.blocks * kLines;
    rest /= w.blocks;
    int64_t from = j + k * inner.stride, to = j * step[w.contiguous_axis] + k;
    for (int d = w.rank - 2; d >= 0; --d) {
      if (d == w.contiguous_axis) continue;
      from += rest % w.axis[d].size * w.axis[d].stride, to += rest % w.axis[d].size * step[d];
      rest /= w.axis[d].size;
    }
    int64_t lines = contiguous_axis.size - j < kLines ? contiguous_axis.size - j : kLines;
    int64_t last = k + kTransposeGroup < inner.size ? kTransposeGroup : inner.size - k;
    for (int64_t i = 0; i < last; i += kTransposeAcross)
      transpose_block(out + to + i, step[w.contiguous_axis], x + from + i * inner.stride, inner.stride, lines,
                      last - i < kTransposeAcross ? last - i : kTransposeAcross);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
