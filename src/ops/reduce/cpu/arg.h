// argmax and argmin. Included by cpu.cc only.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/reduce/lanes.h"
#include "ops/reduce/reduce.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Tells whether a precedes b in the order of Extreme.
INVAR_INLINE M ahead(num::INVAR_ISA_NS::Largest, F a, F b) {
  return lt(b, a);
}
INVAR_INLINE M ahead(num::INVAR_ISA_NS::Smallest, F a, F b) {
  return lt(a, b);
}
INVAR_INLINE bool ahead(num::INVAR_ISA_NS::Largest, float a, float b) {
  return a > b;
}
INVAR_INLINE bool ahead(num::INVAR_ISA_NS::Smallest, float a, float b) {
  return a < b;
}

// Along memory: the extreme of every block first, then its index in the first (or last) block that
// has the extreme of the row.
template <class Extreme>
INVAR_INLINE int64_t arg_of_row(const float* x, int64_t n, bool last) {
  constexpr int64_t kBlock = 1024;
  float best = 0;
  int64_t from = -1;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    float m = num::INVAR_ISA_NS::row_extreme<Extreme>(x + begin, n - begin < kBlock ? n - begin : kBlock);
    bool nan = m != m, best_nan = best != best;
    bool better = nan ? !best_nan : !best_nan && ahead(Extreme{}, m, best);
    if (from < 0 || better || (last && (nan ? best_nan : m == best))) best = m, from = begin;
  }
  int64_t end = n < from + kBlock ? n : from + kBlock, place = from;
  for (int64_t i = from; i < end; ++i)
    if (x[i] == best || (best != best && x[i] != x[i])) {
      place = i;
      if (!last) break;
    }
  return place;
}

// Across memory: `width` <= kArgColumns columns, row by row; indices are stored as the bits of
// 32-bit integers.
template <class Extreme, bool kLast>
INVAR_INLINE void arg_of_columns(const float* x, const ColumnBlocks& a, int64_t width, int64_t* out) {
  alignas(64) float best[kArgColumns], place[kArgColumns];
  for (int64_t i = 0; i < a.n; ++i) {
    const float* row = x + i * a.inner;
    F here = from_bits(set1_i(static_cast<int32_t>(i)));
    for (int64_t c = 0; c < width; c += kW) {
      F v = load_part(row + c, width - c >= kW ? kW : static_cast<int>(width - c));
      if (i == 0) {
        store(best + c, v), store(place + c, here);
        continue;
      }
      F b = load(best + c);
      M better = either(ahead(Extreme{}, v, b),
                        kLast ? either(unordered(v, v), eq(v, b)) : both(unordered(v, v), eq(b, b)));
      store(best + c, select(better, v, b));
      store(place + c, select(better, here, load(place + c)));
    }
  }
  for (int64_t c = 0; c < width; ++c) out[c] = __builtin_bit_cast(int32_t, place[c]);
}

template <class Extreme>
void arg(const Call& call, int, int64_t begin, int64_t end, void*) {
  const ColumnBlocks a = arg_columns(call);
  const float* x = call.in[0].as<const float>();
  int64_t* out = call.out[0].as<int64_t>();
  bool last = ArgmaxAttributes(call).select_last != 0;
  for (int64_t u = begin; u < end; ++u) {
    if (a.inner == 1) {
      out[u] = arg_of_row<Extreme>(x + u * a.n, a.n, last);
      continue;
    }
    const float* at = x + block_begin(a, u, a.n);
    int64_t* to = out + block_begin(a, u, 1);
    if (last)
      arg_of_columns<Extreme, true>(at, a, block_width(a, u), to);
    else
      arg_of_columns<Extreme, false>(at, a, block_width(a, u), to);
  }
}

// 1 where argmax is, else +0.
void hardmax(const Call& call, int, int64_t begin, int64_t end, void*) {
  using num::INVAR_ISA_NS::Largest;
  const ColumnBlocks a = arg_columns(call);
  int64_t place[kArgColumns];
  for (int64_t u = begin; u < end; ++u) {
    int64_t at = block_begin(a, u, a.n), width = block_width(a, u);
    const float* x = call.in[0].as<const float>() + at;
    float* y = call.out[0].as<float>() + at;
    if (a.inner == 1)
      place[0] = arg_of_row<Largest>(x, a.n, false);
    else
      arg_of_columns<Largest, false>(x, a, width, place);
    for (int64_t i = 0; i < a.n; ++i)
      for (int64_t c = 0; c < width; ++c) y[i * a.inner + c] = place[c] == i ? 1.0f : 0.0f;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
