#include "ops/groupnorm/groupnorm.h"

#include "ops/weights.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// kTogether: the elements of a vector are of one channel.
template <bool kAligned, bool kTogether>
struct GroupNorm {
  static constexpr int kReductions = 2;
  static constexpr bool kGives = true;
  template <int>
  using Join = num::INVAR_ISA_NS::Sum;
  const float* x;
  float* y;
  Weights w, b;
  groupnorm::Geometry g;
  int64_t n;
  float epsilon;

  INVAR_DEVICE num::INVAR_ISA_NS::Line<kAligned> source(int64_t r, int64_t = 0) const { return {x + r * n}; }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const auto moments = num::INVAR_ISA_NS::moments_of(row, n);  // groupnorm.2
    const F scale = inverse_root(moments.variance, epsilon);     // groupnorm.3
    const int64_t first = r % g.groups * g.channels;
    row.each([&](int64_t i, const F* v, int count) {
      F out[Row::kV], gain = zero(), bias = zero();
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) {
        if (k == 0 || (!kTogether && k < count)) {
          const int64_t at = i + k;
          const int64_t c =
              n <= INT32_MAX ? static_cast<uint32_t>(at) / static_cast<uint32_t>(g.spatial) : at / g.spatial;
          gain = weight(w, first + c), bias = weight(b, first + c);
        }
        out[k] = canon(add(mul(mul(sub(v[k], moments.mean), scale), gain), bias));  // groupnorm.4
      }
      row.store_at(y + r * n, i, out, count);
    });
  }
};

template <bool kAligned, bool kTogether>
void queue(const Call& call, const groupnorm::Geometry& g, Stream stream) {
  const int64_t n = g.channels * g.spatial;
  const GroupNorm<kAligned, kTogether> fn{call.in[0].as<const float>(),
                                          call.out[0].as<float>(),
                                          weights_of(call.in[1]),
                                          weights_of(call.in[2]),
                                          g,
                                          n,
                                          attr_f(call, "epsilon", 1e-5f)};
  if constexpr (kAligned)
    queue_rows(fn, groupnorm::units(call, 0), n, call.shared, stream);
  else
    queue_loose_rows(fn, groupnorm::units(call, 0), n, call.shared, stream);
}
void enqueue(const Call& call, Stream stream) {
  const groupnorm::Geometry g = groupnorm::geometry(call);
  if (call.in[0].elements() == 0) return;
  const bool vectors =
      aligned(call.in[0].data) && aligned(call.out[0].data) && g.channels * g.spatial % 4 == 0;
  if (!vectors) return queue<false, false>(call, g, stream);
  if (g.spatial % 4) return queue<true, false>(call, g, stream);
  queue<true, true>(call, g, stream);
}

size_t shared_bytes(const Call& call) {
  const groupnorm::Geometry g = groupnorm::geometry(call);
  const int64_t n = g.channels * g.spatial;
  return shares_rows(n) ? pass_bytes(groupnorm::units(call, 0), n, 2) : 0;
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "groupnorm",
                          .isa = INVAR_ISA,
                          .shared_bytes = INVAR_ISA_NS::shared_bytes,
                          .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
