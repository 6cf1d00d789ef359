#include "kernels/norm_shape.h"
#include "kernels/cuda/normalization.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats>
struct RmsNorm : NormRows<kAligned, 1> {
  Weights w;

  INVAR_DEVICE void ahead() const { ask(w, this->n); }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const RowWeights<Row, kFloats> weights(row, w);
    const F squares = row.template reduce<num::INVAR_ISA_NS::Sum>(
        [](F lane, F v) { return fma(v, v, lane); });                // rmsnorm.1
    const F mean = div(squares, set1(static_cast<float>(this->n)));  // rmsnorm.2
    const F scale = inverse_root(mean, this->epsilon);               // rmsnorm.3
    row.each([&](int slot, int64_t i, const F* v) {
      F g[Row::kV];
      weights.get(slot, i, g);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) g[k] = canon(mul(mul(v[k], scale), g[k]));  // rmsnorm.4
      num::INVAR_ISA_NS::store_vector<Row::kV>(this->y + r * this->n + i, g);
    });
  }
};

template <bool kAligned, bool kFloats>
void queue(const Call& call, Stream stream) {
  queue_norm(RmsNorm<kAligned, kFloats>{{call, call.in[1].elements()}, weights_of(call.in[1])},
             covered_rows(call, 0), call, stream);
}
void enqueue(const Call& call, Stream stream) {
  const Weights w = weights_of(call.in[1]);
  if (!aligned_rows(call, call.in[1].elements()) || !aligned(w)) return queue<false, false>(call, stream);
  if (w.format == DType::f32) return queue<true, true>(call, stream);
  queue<true, false>(call, stream);
}

size_t shared_bytes(const Call& call) {
  return row_bytes(covered_rows(call, 0), call.in[1].elements(), 1);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "rmsnorm",
                          .isa = INVAR_ISA,
                          .shared_bytes = INVAR_ISA_NS::shared_bytes,
                          .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
