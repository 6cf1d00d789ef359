// The gradients of softmax and log_softmax. Included by cpu.cc only.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/exp/exp.h"
#include "num/reduce/columns.h"
#include "ops/softmax/softmax.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// One step of the row sum, and the value: softmax.9, softmax.10.
template <bool kLog>
INVAR_INLINE F backward_step(F acc, F grad, F y) {
  return kLog ? add(acc, grad) : fma(grad, y, acc);
}
template <bool kLog>
INVAR_INLINE F backward_value(F grad, F y, F sum) {
  if constexpr (!kLog) return mul(y, sub(grad, sum));
  const F e = num::INVAR_ISA_NS::exp_stored(select(lt(zero(), y), zero(), y));
  return fma(neg(e), sum, grad);
}

template <bool kLog>
INVAR_INLINE void backward_rows(const Call& call, int64_t n, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float *grad = call.in[0].as<const float>() + row * n, *y = call.in[1].as<const float>() + row * n;
    const F sum = set1(num::INVAR_ISA_NS::reduce_row(
        n, [&](F acc, int64_t i, int lanes) __attribute__((always_inline)) {
          return backward_step<kLog>(acc, load_part(grad + i, lanes), load_part(y + i, lanes));
        }));
    strip(
        call.out[0].as<float>() + row * n, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          return backward_value<kLog>(load_part(grad + i, lanes), load_part(y + i, lanes), sum);
        });
  }
}

// Blocks of adjacent columns. scratch: the sums, then what a segment needs.
template <bool kLog>
INVAR_INLINE void backward_columns(const Call& call, const ColumnBlocks& s, int64_t begin, int64_t end,
                                   float* scratch) {
  float *sum = scratch, *work = scratch + s.width;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t at = block_begin(s, u, s.n), width = block_width(s, u);
    const float *grad = call.in[0].as<const float>() + at, *y = call.in[1].as<const float>() + at;
    float* out = call.out[0].as<float>() + at;
    for (int64_t c = 0; c < width; ++c) sum[c] = 0;
    for (int64_t first = 0; first < s.n; first += num::kRowSegment) {
      const int64_t n = s.n - first < num::kRowSegment ? s.n - first : num::kRowSegment;
      num::INVAR_ISA_NS::sum_wide(
          n, width,
          [&](F acc, int64_t i, int64_t c, int lanes) __attribute__((always_inline)) {
            const int64_t from = (first + i) * s.inner + c;
            return backward_step<kLog>(acc, load_part(grad + from, lanes), load_part(y + from, lanes));
          },
          [&](int64_t i, int64_t c) __attribute__((always_inline)) {
            const int64_t from = (first + i) * s.inner + c;
            INVAR_PREFETCH(grad + from);
            if (!kLog) INVAR_PREFETCH(y + from);
          },
          work);
      num::INVAR_ISA_NS::join_columns<num::INVAR_ISA_NS::SumOp>(sum, work, width);
    }
    for (int64_t i = 0; i < s.n; ++i)
      strip(
          out + i * s.inner, width, [&](int64_t c, int lanes) __attribute__((always_inline)) {
            const int64_t from = i * s.inner + c;
            return backward_value<kLog>(load_part(grad + from, lanes), load_part(y + from, lanes),
                                        load_part(sum + c, lanes));
          });
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
