// Group normalization: a block or a warp reduces the row of a group
// (kernels/cuda/normalization.cuh).
#include "ops/groupnorm/groupnorm.h"

#include "kernels/cuda/normalization.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// kOneChannelVectors: all elements of a vector belong to one channel.
template <bool kAligned, bool kOneChannelVectors>
struct GroupNorm : NormOp<kAligned, 2> {
  WeightVector w, b;
  groupnorm::Geometry g;

  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const auto moments = num::INVAR_ISA_NS::moments_of(row, this->n);  // groupnorm.2
    const F scale = inverse_sqrt(moments.variance, this->epsilon);     // groupnorm.3
    const int64_t first = r % g.groups * g.channels;
    row.each([&](int, int64_t i, const F* v) {
      F out[Row::kV], gain = zero(), bias = zero();
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) {
        if (k == 0 || !kOneChannelVectors) {
          const int64_t at = i + k;
          const int64_t c = this->n <= INT32_MAX
                                ? static_cast<uint32_t>(at) / static_cast<uint32_t>(g.spatial)
                                : at / g.spatial;
          gain = weight(w, first + c), bias = weight(b, first + c);
        }
        out[k] = canonicalize(add(mul(mul(sub(v[k], moments.mean), scale), gain), bias));  // groupnorm.4
      }
      num::INVAR_ISA_NS::store_vector<Row::kV>(this->y + r * this->n + i, out);
    });
  }
};

template <bool kAligned, bool kOneChannelVectors>
void launch_aligned(const Call& call, const groupnorm::Geometry& g, Stream stream) {
  launch_norm(GroupNorm<kAligned, kOneChannelVectors>{{call, g.channels * g.spatial,
                                                       GroupnormAttributes(call).epsilon},
                                                      weight_vector(call.in[1]),
                                                      weight_vector(call.in[2]),
                                                      g},
              groupnorm::units(call, 0), call, stream);
}
void enqueue(const Call& call, Stream stream) {
  const groupnorm::Geometry g = groupnorm::geometry(call);
  if (call.in[0].elements() == 0) return;
  if (!rows_are_aligned(call, g.channels * g.spatial)) return launch_aligned<false, false>(call, g, stream);
  if (g.spatial % 4) return launch_aligned<true, false>(call, g, stream);
  launch_aligned<true, true>(call, g, stream);
}

size_t shared_bytes(const Call& call) {
  const groupnorm::Geometry g = groupnorm::geometry(call);
  return row_bytes(groupnorm::units(call, 0), g.channels * g.spatial, 2);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "groupnorm",
                             .isa = INVAR_ISA,
                             .shared_bytes = INVAR_ISA_NS::shared_bytes,
                             .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
