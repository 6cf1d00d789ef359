// Layer normalization: a block or a warp reduces a row (kernels/cuda/normalization.cuh).
#include "kernels/cuda/norm_gradients.cuh"
#include "ops/layernorm/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats, class Results>
struct LayerNorm : NormOp<kAligned, 2> {
  WeightVector w, b;
  Results results;

  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const RowWeightLoader<Row, kFloats> gains(row, w), biases(row, b);
    const auto moments = num::INVAR_ISA_NS::moments_of(row, this->n);  // layernorm.2
    const F scale = inverse_sqrt(moments.variance, this->epsilon);     // layernorm.3
    typename Results::template Of<Row> to(results, this->y, r, this->n);
    row.each([&](int slot, int64_t i, const F* v) {
      F g[Row::kV], h[Row::kV];
      gains.get(slot, i, g);
      if (b.p) biases.get(slot, i, h);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) {
        const F scaled = mul(mul(sub(v[k], moments.mean), scale), g[k]);  // layernorm.4
        g[k] = canonicalize(b.p ? add(scaled, h[k]) : scaled);
      }
      to.take(row, slot, i, g);
    });
    to.end(row);
  }
};

template <bool kAligned, bool kFloats, class Results>
void launch_aligned(const Call& call, const Results& results, Stream stream) {
  const LayerNorm<kAligned, kFloats, Results> fn{
      {call, call.in[1].elements(), LayernormAttributes(call).epsilon},
      weight_vector(call.in[1]),
      call.in.size() > 2 ? weight_vector(call.in[2]) : WeightVector{},
      results};
  launch_norm(fn, results, norm_rows(call, 0), call, stream);
}
template <class Results>
void launch_results(const Call& call, const Results& results, Stream stream) {
  bool vectors = rows_are_aligned(call, call.in[1].elements()), floats = true;
  for (const View& weight : call.in.subspan(1)) {
    vectors = vectors && aligned(weight_vector(weight));
    floats = floats && weight.dtype == DType::f32;
  }
  if (!vectors) return launch_aligned<false, false>(call, results, stream);
  if (floats) return launch_aligned<true, true>(call, results, stream);
  launch_aligned<true, false>(call, results, stream);
}
void enqueue(const Call& call, Stream stream) {
  launch_results(call, FloatRows{}, stream);
}
void enqueue_rounded(std::span<const Call* const> calls, const RoundedRows& to, Stream stream) {
  launch_results(*calls[0], RoundedNorms{to, norm_rows(*calls[0], 0)}, stream);
}

size_t shared_bytes(const Call& call) {
  return row_bytes(norm_rows(call, 0), call.in[1].elements(), 2);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(layernorm);
const GpuKernel INVAR_ROW_OF(layernorm) = {.op = "layernorm",
                                           .isa = INVAR_ISA,
                                           .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                           .enqueue = INVAR_ISA_NS::enqueue,
                                           .can_round = INVAR_ISA_NS::can_round_norm,
                                           .enqueue_rounded = INVAR_ISA_NS::enqueue_rounded};
INVAR_NORM_GRADIENTS(layernorm, Layernorm, true)

}  // namespace invar::ops
