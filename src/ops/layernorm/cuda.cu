// Layer normalization: a block or a warp reduces a row (kernels/cuda/normalization.cuh).
#include "kernels/cuda/norm_gradients.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats>
struct LayerNorm : NormOp<kAligned, 2> {
  WeightVector w, b;

  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const RowWeightLoader<Row, kFloats> gains(row, w), biases(row, b);
    const auto moments = num::INVAR_ISA_NS::moments_of(row, this->n);  // layernorm.2
    const F scale = inverse_sqrt(moments.variance, this->epsilon);     // layernorm.3
    row.each([&](int slot, int64_t i, const F* v) {
      F g[Row::kV], h[Row::kV];
      gains.get(slot, i, g);
      if (b.p) biases.get(slot, i, h);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) {
        const F scaled = mul(mul(sub(v[k], moments.mean), scale), g[k]);  // layernorm.4
        g[k] = canonicalize(b.p ? add(scaled, h[k]) : scaled);
      }
      num::INVAR_ISA_NS::store_vector<Row::kV>(this->y + r * this->n + i, g);
    });
  }
};

template <bool kAligned, bool kFloats>
void launch_aligned(const Call& call, Stream stream) {
  launch_norm(LayerNorm<kAligned, kFloats>{{call, call.in[1].elements()},
                                           weight_vector(call.in[1]),
                                           call.in.size() > 2 ? weight_vector(call.in[2]) : WeightVector{}},
              norm_rows(call, 0), call, stream);
}
void enqueue(const Call& call, Stream stream) {
  bool vectors = rows_are_aligned(call, call.in[1].elements()), floats = true;
  for (const View& weight : call.in.subspan(1)) {
    vectors = vectors && aligned(weight_vector(weight));
    floats = floats && weight.dtype == DType::f32;
  }
  if (!vectors) return launch_aligned<false, false>(call, stream);
  if (floats) return launch_aligned<true, true>(call, stream);
  launch_aligned<true, false>(call, stream);
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
                                           .enqueue = INVAR_ISA_NS::enqueue};
INVAR_NORM_GRADIENTS(layernorm, true)

}  // namespace invar::ops
