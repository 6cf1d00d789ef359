// RMS normalization: a block or a warp reduces a row (kernels/cuda/normalization.cuh).
#include "kernels/cuda/norm_gradients.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats>
struct RmsNorm : NormOp<kAligned, 1> {
  WeightVector w;

  INVAR_DEVICE void prefetch() const { prefetch_l2(w, this->n); }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const RowWeightLoader<Row, kFloats> weights(row, w);
    const F squares = row.template reduce<num::INVAR_ISA_NS::SumOp>(
        [](F lane, F v) { return fma(v, v, lane); });                // rmsnorm.1
    const F mean = div(squares, set1(static_cast<float>(this->n)));  // rmsnorm.2
    const F scale = inverse_sqrt(mean, this->epsilon);               // rmsnorm.3
    row.each([&](int slot, int64_t i, const F* v) {
      F g[Row::kV];
      weights.get(slot, i, g);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) g[k] = canonicalize(mul(mul(v[k], scale), g[k]));  // rmsnorm.4
      num::INVAR_ISA_NS::store_vector<Row::kV>(this->y + r * this->n + i, g);
    });
  }
};

template <bool kAligned, bool kFloats>
void launch_aligned(const Call& call, Stream stream) {
  launch_norm(RmsNorm<kAligned, kFloats>{{call, call.in[1].elements()}, weight_vector(call.in[1])},
              norm_rows(call, 0), call, stream);
}
void enqueue(const Call& call, Stream stream) {
  const WeightVector w = weight_vector(call.in[1]);
  if (!rows_are_aligned(call, call.in[1].elements()) || !aligned(w))
    return launch_aligned<false, false>(call, stream);
  if (w.format == DType::f32) return launch_aligned<true, true>(call, stream);
  launch_aligned<true, false>(call, stream);
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
                                         .enqueue = INVAR_ISA_NS::enqueue};
INVAR_NORM_GRADIENTS(rmsnorm, false)

}  // namespace invar::ops
