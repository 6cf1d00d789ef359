// The kernel of attention_exact16 for Hopper.
#include "ops/attention/cuda/exact16/launch_hopper.h"
#include "ops/attention/cuda/exact16/prefill_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {

template <int kSteps, int kParts>
static void enqueue_of(const AttentionParams& s, Stream stream) {
  const int64_t heads = s.g.batch * s.g.kv_heads, tiles = ceil_div(s.g.rows, kHopperGroups * kHopperRows);
  launch_dependent(exact_prefill_hopper_kernel<kSteps, kParts>, dim3(grid_for(heads * tiles)),
                   dim3(kHopperThreads), kHopperShared<kParts>, stream, s, static_cast<int>(heads),
                   static_cast<int>(tiles));
}
void enqueue_exact_prefill_hopper(const AttentionParams& s, Stream stream) {
  if (s.g.d <= 64 && s.g.dv <= 64) return enqueue_of<2, 1>(s, stream);
  enqueue_of<4, 2>(s, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
