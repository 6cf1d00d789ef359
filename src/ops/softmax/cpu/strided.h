// Softmax of strided rows: blocks of adjacent columns at a time. Included by cpu.cc only.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/exp/exp.h"
#include "num/log/log.h"
#include "num/reduce/columns.h"
#include "ops/softmax/cpu/contiguous.h"
#include "ops/softmax/softmax.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// kLog: log_softmax.
template <bool kLog>
INVAR_INLINE void softmax_strided(const Call& call, const ColumnBlocks& s, int64_t begin, int64_t end,
                                  float* scratch) {
  float *most = scratch, *sum = scratch + s.width, *work = scratch + 2 * s.width;
  for (int64_t u = begin; u < end; ++u) {
    int64_t at = block_begin(s, u, s.n), width = block_width(s, u);
    const float* x = call.in[0].as<const float>() + at;
    float* y = call.out[0].as<float>() + at;
    strip_exact(
        most, width, [&](int64_t c, int lanes) __attribute__((always_inline)) {  // softmax.1
          return load_part(x + c, lanes);
        });
    for (int64_t i = 1; i < s.n; ++i)
      strip_exact(
          most, width, [&](int64_t c, int lanes) __attribute__((always_inline)) {
            return maximum(load_part(most + c, lanes), load_part(x + i * s.inner + c, lanes));
          });
    for (int64_t i = 0; i < s.n; ++i)  // softmax.2
      strip_exact(
          y + i * s.inner, width, [&](int64_t c, int lanes) __attribute__((always_inline)) {
            return num::INVAR_ISA_NS::exp_stored(
                sub(load_part(x + i * s.inner + c, lanes), load_part(most + c, lanes)));
          });
    for (int64_t c = 0; c < width; ++c) sum[c] = 0;
    for (int64_t segment = 0; segment < s.n; segment += num::kRowSegment) {  // softmax.3
      int64_t n = s.n - segment < num::kRowSegment ? s.n - segment : num::kRowSegment;
      num::INVAR_ISA_NS::reduce_wide<num::INVAR_ISA_NS::SumOp>(
          n, width, [&](int64_t i) __attribute__((always_inline)) { return y + (segment + i) * s.inner; },
          [](F acc, F v, int64_t, int) __attribute__((always_inline)) { return add(acc, v); }, work);
      num::INVAR_ISA_NS::join_columns<num::INVAR_ISA_NS::SumOp>(sum, work, width);
    }
    if (kLog)
      strip_exact(
          sum, width, [&](int64_t c, int lanes) __attribute__((always_inline)) {
            return num::INVAR_ISA_NS::log(load_part(sum + c, lanes));
          });
    else
      for (int64_t c = 0; c < width; ++c) most[c] = least_dividend(sum[c]);
    for (int64_t i = 0; i < s.n; ++i) {
      float* row = y + i * s.inner;
      strip(
          row, width, [&](int64_t c, int lanes) __attribute__((always_inline)) {
            F l = load_part(sum + c, lanes);
            if (!kLog) {  // softmax.4
              const F e = load_part(row + c, lanes);
              return div(select(lt(e, load_part(most + c, lanes)), zero(), e), l);
            }
            return sub(sub(load_part(x + i * s.inner + c, lanes), load_part(most + c, lanes)),
                       l);  // softmax.6
          });
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
