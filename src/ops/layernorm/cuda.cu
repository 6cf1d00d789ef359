#include "ops/norm.h"
#include "ops/weights.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats>
struct LayerNorm {
  static constexpr int kReductions = 2;
  static constexpr bool kGives = true;
  template <int>
  using Join = num::INVAR_ISA_NS::Sum;
  const float* x;
  float* y;
  Weights w, b;
  int64_t n;
  float epsilon;

  INVAR_DEVICE num::INVAR_ISA_NS::Line<kAligned> source(int64_t r, int64_t = 0) const { return {x + r * n}; }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const auto moments = num::INVAR_ISA_NS::moments_of(row, n);  // layernorm.2
    const F scale = inverse_root(moments.variance, epsilon);     // layernorm.3
    row.each([&](int64_t i, const F* v, int count) {
      F g[Row::kV], h[Row::kV], out[Row::kV];
      load_weights<Row::kV, kAligned, kFloats>(w, i, count, g);
      if (b.p) load_weights<Row::kV, kAligned, kFloats>(b, i, count, h);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) {
        const F scaled = mul(mul(sub(v[k], moments.mean), scale), g[k]);  // layernorm.4
        out[k] = canon(b.p ? add(scaled, h[k]) : scaled);
      }
      row.store_at(y + r * n, i, out, count);
    });
  }
};

template <bool kAligned, bool kFloats>
void queue(const Call& call, Stream stream) {
  const int64_t n = call.in[1].elements();
  const LayerNorm<kAligned, kFloats> fn{call.in[0].as<const float>(),
                                        call.out[0].as<float>(),
                                        weights_of(call.in[1]),
                                        call.in.size() > 2 ? weights_of(call.in[2]) : Weights{},
                                        n,
                                        attr_f(call, "epsilon", 1e-5f)};
  if constexpr (kAligned)
    queue_rows(fn, covered_rows(call, 0), n, call.shared, stream);
  else
    queue_loose_rows(fn, covered_rows(call, 0), n, call.shared, stream);
}
void enqueue(const Call& call, Stream stream) {
  bool vectors = aligned(call.in[0].data) && aligned(call.out[0].data) && call.in[1].elements() % 4 == 0;
  bool floats = true;
  for (const View& weight : call.in.subspan(1)) {
    vectors = vectors && aligned(weights_of(weight));
    floats = floats && weight.dtype == DType::f32;
  }
  if (!vectors) return queue<false, false>(call, stream);
  if (floats) return queue<true, true>(call, stream);
  queue<true, false>(call, stream);
}

size_t shared_bytes(const Call& call) {
  const int64_t n = call.in[1].elements();
  return shares_rows(n) ? pass_bytes(covered_rows(call, 0), n, 2) : 0;
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "layernorm",
                          .isa = INVAR_ISA,
                          .shared_bytes = INVAR_ISA_NS::shared_bytes,
                          .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
