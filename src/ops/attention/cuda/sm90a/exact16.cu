// The kernels of attention_exact16 for Hopper.
#include "ops/attention/cuda/exact16/decode_hopper.cuh"
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

// A thread block takes all key blocks of a group of rows where groups fill the device; that is 11
// us and 5 us a block. Otherwise key blocks are shared out: 20 us, and 0.04 us a block (H200).
static bool has_whole_rows(int64_t groups, int64_t blocks) {
  return groups >= multiprocessors() || 10 * blocks <= 19 + groups * blocks / 13;
}
template <int kTiles, bool kWhole>
static void enqueue_decode(const AttentionParams& s, int64_t units, Stream stream) {
  const int64_t most = kDecodeHopperBlocks<kTiles, kWhole> * int64_t{multiprocessors()};
  launch_dependent(exact_decode_hopper_kernel<kTiles, kWhole>,
                   dim3(grid_for(kWhole || units < most ? units : most)), dim3(kDecodeThreads),
                   kDecodeHopperShared<kTiles, kWhole>, stream, s);
}
template <int kTiles>
static bool enqueue_decode_of(const AttentionParams& s, Stream stream) {
  const int64_t groups = s.g.batch * s.g.kv_heads * ceil_div(s.g.rows, kTiles * kSideRows);
  const bool whole = has_whole_rows(groups, s.g.seen);
  if (whole)
    enqueue_decode<kTiles, true>(s, groups, stream);
  else
    enqueue_decode<kTiles, false>(s, groups * s.g.seen, stream);
  return whole;
}
bool enqueue_exact_decode_hopper(const AttentionParams& s, Stream stream) {
  return s.g.rows <= kSideRows ? enqueue_decode_of<1>(s, stream) : enqueue_decode_of<2>(s, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
