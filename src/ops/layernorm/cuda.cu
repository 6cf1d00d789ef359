#include "kernels/norm_shape.h"
#include "kernels/cuda/normalization.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats>
struct LayerNorm : NormRows<kAligned, 2> {
  Weights w, b;

  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const RowWeights<Row, kFloats> gains(row, w), biases(row, b);
    const auto moments = num::INVAR_ISA_NS::moments_of(row, this->n);  // layernorm.2
    const F scale = inverse_root(moments.variance, this->epsilon);     // layernorm.3
    row.each([&](int slot, int64_t i, const F* v) {
      F g[Row::kV], h[Row::kV];
      gains.get(slot, i, g);
      if (b.p) biases.get(slot, i, h);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) {
        const F scaled = mul(mul(sub(v[k], moments.mean), scale), g[k]);  // layernorm.4
        g[k] = canon(b.p ? add(scaled, h[k]) : scaled);
      }
      num::INVAR_ISA_NS::store_vector<Row::kV>(this->y + r * this->n + i, g);
    });
  }
};

template <bool kAligned, bool kFloats>
void queue(const Call& call, Stream stream) {
  queue_norm(LayerNorm<kAligned, kFloats>{{call, call.in[1].elements()},
                                          weights_of(call.in[1]),
                                          call.in.size() > 2 ? weights_of(call.in[2]) : Weights{}},
             covered_rows(call, 0), call, stream);
}
void enqueue(const Call& call, Stream stream) {
  bool vectors = aligned_rows(call, call.in[1].elements()), floats = true;
  for (const View& weight : call.in.subspan(1)) {
    vectors = vectors && aligned(weights_of(weight));
    floats = floats && weight.dtype == DType::f32;
  }
  if (!vectors) return queue<false, false>(call, stream);
  if (floats) return queue<true, true>(call, stream);
  queue<true, false>(call, stream);
}

size_t shared_bytes(const Call& call) {
  return row_bytes(covered_rows(call, 0), call.in[1].elements(), 2);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "layernorm",
                          .isa = INVAR_ISA,
                          .shared_bytes = INVAR_ISA_NS::shared_bytes,
                          .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
