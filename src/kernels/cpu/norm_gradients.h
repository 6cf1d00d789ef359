// The gradients of layernorm (kCentred) and rmsnorm on a CPU, over lanes. Included by their cpu.cc.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "kernels/norm_gradients.h"
#include "num/reduce/columns.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct RowStatistics {
  F mean, scale;  // rmsnorm has no mean
};
template <bool kCentred>
INVAR_INLINE RowStatistics statistics_of(const float* x, int64_t n, float epsilon) {
  if constexpr (kCentred) {
    const auto moments = row_moments(x, n);
    return {set1(moments.mean), inverse_sqrt(set1(moments.variance), epsilon)};
  }
  return {zero(), inverse_sqrt(set1(row_sum_squares(x, n) / static_cast<float>(n)), epsilon)};
}
template <bool kCentred>
INVAR_INLINE F normalized(F x, const RowStatistics& row) {
  return mul(kCentred ? sub(x, row.mean) : x, row.scale);
}

template <bool kCentred, class W, class A>
INVAR_INLINE void gradient_of_rows(const Call& call, int64_t begin, int64_t end) {
  const int64_t n = call.in[2].elements();
  const float epsilon = A(call).epsilon, count = static_cast<float>(n);
  auto w = call.in[2].as<const typename W::T>();
  for (int64_t row = begin; row < end; ++row) {
    const float *grad = call.in[0].as<const float>() + row * n, *x = call.in[1].as<const float>() + row * n;
    const RowStatistics s = statistics_of<kCentred>(x, n, epsilon);
    auto weighted = [&](int64_t i, int lanes) __attribute__((always_inline)) {
      return mul(load_part(grad + i, lanes), get_part<W>(w + i, lanes));
    };
    F average = zero();
    if constexpr (kCentred)
      average = set1(reduce_row(
                         n, [&](F acc, int64_t i, int lanes)
                                __attribute__((always_inline)) { return add(acc, weighted(i, lanes)); }) /
                     count);
    const F slope = set1(reduce_row(
                             n,
                             [&](F acc, int64_t i, int lanes) __attribute__((always_inline)) {
                               F h = normalized<kCentred>(load_part(x + i, lanes), s);
                               // Past the row's end 0 * 0 is added, not 0 times what the mean
                               // became.
                               return fma(weighted(i, lanes), lanes == kW ? h : first_lanes(h, lanes), acc);
                             }) /
                         count);
    strip(
        call.out[0].as<float>() + row * n, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          F h = normalized<kCentred>(load_part(x + i, lanes), s), u = weighted(i, lanes);
          if constexpr (kCentred) u = sub(u, average);
          return mul(fma(neg(h), slope, u), s.scale);
        });
  }
}
template <bool kCentred, class A>
void run_norm_backward(const Call& call, int, int64_t begin, int64_t end, void*) {
  with_format(call.in[2].dtype,
              [&](auto format) { gradient_of_rows<kCentred, decltype(format), A>(call, begin, end); });
}

// One segment of a block of columns.
template <bool kCentred>
INVAR_INLINE void segment_of_columns(const Call& call, const NormWeightRows& r, int64_t unit, float* work) {
  const int64_t segment = unit % r.segments, column = unit / r.segments * NormWeightRows::kColumns;
  const int64_t from = segment * num::kRowSegment;
  const int64_t rows = r.rows - from < num::kRowSegment ? r.rows - from : num::kRowSegment;
  const int64_t width = r.n - column < NormWeightRows::kColumns ? r.n - column : NormWeightRows::kColumns;
  const float *scale = static_cast<const float*>(call.shared) + from, *mean = scale + r.rows;
  const float* grad = call.in[0].as<const float>() + from * r.n + column;
  const float* x = call.in[1].as<const float>() + from * r.n + column;
  sum_wide(
      rows, width,
      [&](F acc, int64_t i, int64_t c, int lanes) __attribute__((always_inline)) {
        const RowStatistics s{kCentred ? set1(mean[i]) : zero(), set1(scale[i])};
        F h = canonicalize(normalized<kCentred>(load_part(x + i * r.n + c, lanes), s));
        return add(acc, canonicalize(mul(load_part(grad + i * r.n + c, lanes), h)));
      },
      [&](int64_t i, int64_t c) __attribute__((always_inline)) {
        INVAR_PREFETCH(x + i * r.n + c);
        INVAR_PREFETCH(grad + i * r.n + c);
      },
      work);
  float* partial = static_cast<float*>(call.shared) + 2 * r.rows + segment * r.n + column;
  strip_exact(
      partial,
      width, [&](int64_t c, int lanes) __attribute__((always_inline)) { return load_part(work + c, lanes); });
}
template <bool kCentred, class A>
void run_norm_backward_weight(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const NormWeightRows r = norm_weight_rows(call);
  float* scale = static_cast<float*>(call.shared);
  if (phase == 0) {
    const float epsilon = A(call).epsilon;
    for (int64_t row = begin; row < end; ++row) {
      const auto s = statistics_of<kCentred>(call.in[1].as<const float>() + row * r.n, r.n, epsilon);
      store_n(scale + row, s.scale, 1);
      store_n(scale + r.rows + row, s.mean, 1);
    }
    return;
  }
  if (phase == 1) {
    for (int64_t u = begin; u < end; ++u)
      segment_of_columns<kCentred>(call, r, u, static_cast<float*>(scratch));
    return;
  }
  const int64_t from = begin * kChunk, to = end * kChunk < r.n ? end * kChunk : r.n;
  const float* partial = scale + 2 * r.rows + from;
  strip(
      call.out[0].as<float>() + from, to - from, [&](int64_t c, int lanes) __attribute__((always_inline)) {
        F total = zero();  // reduction.5
        for (int64_t g = 0; g < r.segments; ++g) total = add(total, load_part(partial + g * r.n + c, lanes));
        return total;
      });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS

// The registry rows of both operations. Name: the beginning of the names of their attributes.
#define INVAR_NORM_GRADIENTS(name, Name, centred)                                             \
  extern const CpuKernel INVAR_ROW_OF(name##_backward), INVAR_ROW_OF(name##_backward_weight); \
  const CpuKernel INVAR_ROW_OF(name##_backward) = {                                           \
      .op = #name "_backward",                                                                \
      .isa = INVAR_ISA,                                                                       \
      .units = norm_backward_rows,                                                            \
      .run = INVAR_ISA_NS::run_norm_backward<centred, Name##BackwardAttributes>};             \
  const CpuKernel INVAR_ROW_OF(name##_backward_weight) = {                                    \
      .op = #name "_backward_weight",                                                         \
      .isa = INVAR_ISA,                                                                       \
      .phases = 3,                                                                            \
      .units = norm_weight_units,                                                             \
      .run = INVAR_ISA_NS::run_norm_backward_weight<centred, Name##BackwardWeightAttributes>, \
      .scratch_bytes = norm_weight_scratch,                                                   \
      .shared_bytes = norm_weight_shared};
