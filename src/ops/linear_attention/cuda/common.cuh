// What the kernels of linear attention share.
#pragma once
#include "kernels/cuda/launch.h"
#include "num/contract/lanes.h"
#include "num/exp/exp.h"
#include "ops/linear_attention/linear_attention.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using linear_attention::Geometry;
using linear_attention::HeadState;
using linear_attention::kChunkRows;

constexpr int kThreads = 256;

// The parameters of a call. The views in `g` are for the host only.
struct Rows {
  Geometry g;
  const float *q, *k, *v, *decay, *beta;
  float* y;
  std::byte* state;
  int64_t slot_bytes;
  const Sequence* sequences;
  bool vectors;  // rows of q and k are vectors of four floats
};
__device__ inline HeadState head_of(const Rows& p, const Sequence& sequence, int64_t head) {
  return linear_attention::head_state(p.g, p.state + sequence.slot * p.slot_bytes, head);
}
// linear_attention.3
__device__ inline F stored_exp(double x) {
  return canonicalize(num::INVAR_ISA_NS::exp(to_float(set1_d(x))));
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
