// RMS normalization: a block or a warp reduces a row (kernels/cuda/normalization.cuh).
#include "kernels/cuda/norm_gradients.cuh"
#include "ops/rmsnorm/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats, class Results>
struct RmsNorm : NormOp<kAligned, 1> {
  WeightVector w;
  Results results;

  INVAR_DEVICE void prefetch() const { prefetch_l2(w, this->n); }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const RowWeightLoader<Row, kFloats> weights(row, w);
    const F squares = row.template reduce<num::INVAR_ISA_NS::SumOp>(
        [](F lane, F v) { return fma(v, v, lane); });                // rmsnorm.1
    const F mean = div(squares, set1(static_cast<float>(this->n)));  // rmsnorm.2
    const F scale = inverse_sqrt(mean, this->epsilon);               // rmsnorm.3
    typename Results::template Of<Row> to(results, this->y, r, this->n);
    row.each([&](int slot, int64_t i, const F* v) {
      F g[Row::kV];
      weights.get(slot, i, g);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) g[k] = canonicalize(mul(mul(v[k], scale), g[k]));  // rmsnorm.4
      to.take(row, slot, i, g);
    });
    to.end(row);
  }
};

template <bool kAligned, bool kFloats, class Results>
void launch_aligned(const Call& call, const Results& results, Stream stream) {
  const RmsNorm<kAligned, kFloats, Results> fn{
      {call, call.in[1].elements(), RmsnormAttributes(call).epsilon}, weight_vector(call.in[1]), results};
  launch_norm(fn, results, norm_rows(call, 0), call, stream);
}
template <class Results>
void launch_results(const Call& call, const Results& results, Stream stream) {
  const WeightVector w = weight_vector(call.in[1]);
  if (!rows_are_aligned(call, call.in[1].elements()) || !aligned(w))
    return launch_aligned<false, false>(call, results, stream);
  if (w.format == DType::f32) return launch_aligned<true, true>(call, results, stream);
  launch_aligned<true, false>(call, results, stream);
}
void enqueue(const Call& call, Stream stream) {
  launch_results(call, FloatRows{}, stream);
}
void enqueue_rounded(std::span<const Call* const> calls, const RoundedRows& to, Stream stream) {
  launch_results(*calls[0], RoundedNorms{to, norm_rows(*calls[0], 0)}, stream);
}

size_t shared_bytes(const Call& call) {
  return row_bytes(norm_rows(call, 0), call.in[1].elements(), 1);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(rmsnorm);
const GpuKernel INVAR_ROW_OF(rmsnorm) = {.op = "rmsnorm",
                                         .isa = INVAR_ISA,
                                         .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                         .enqueue = INVAR_ISA_NS::enqueue,
                                         .can_round = INVAR_ISA_NS::can_round_norm,
                                         .enqueue_rounded = INVAR_ISA_NS::enqueue_rounded};
INVAR_NORM_GRADIENTS(rmsnorm, Rmsnorm, false)

}  // namespace invar::ops
