// Decoding with many key blocks: persistent thread blocks take key block after key block
// (smem_block.cuh). Values replace keys in shared memory, so several thread blocks fit on a
// multiprocessor and one computes while others load. combine_splits_kernel combines the partials.
#pragma once
#include "ops/attention/cuda/smem_block.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Units: a key block for a group of R rows of a key head; each group has as many units as the
// longest sequence has blocks. m_b and l_b -> max_sums, unscaled results -> partials.
template <int R>
__global__ void __launch_bounds__(kSmemThreads)
    decode_blocks_kernel(const __grid_constant__ AttentionParams s) {
  extern __shared__ float4 smem[];
  __shared__ IndexedRow rows[R];
  float* const memory = reinterpret_cast<float*>(smem);
  const Geometry& g = s.g;
  const int64_t blocks = ceil_div(*s.past + g.keys, kBlock),
                units = g.batch * g.kv_heads * ceil_div(g.rows, R) * blocks;
  trigger_next_grid();
  // Finds the first unit from `unit` on that its sequence has, and starts to load its keys.
  auto start_unit = [&](int64_t unit) {
    for (; unit < units; unit += gridDim.x) {
      const SmemKvBlock<R, false> next(s, unit / blocks, unit % blocks);
      if (!next.exists(g)) continue;
      next.load_keys_async(s, memory);
      break;
    }
    return unit;
  };
  int64_t unit = start_unit(blockIdx.x);
  wait_for_previous_grid();
  while (unit < units) {
    const SmemKvBlock<R, false> own(s, unit / blocks, unit % blocks);
    own.index_rows(s, rows);
    __syncthreads();
    const int64_t to = (own.head * g.rows + own.first) * g.seen + own.block;
    own.run(s, memory, rows, s.partials + to * g.dv_padded, s.max_sums + 2 * to, g.seen * g.dv_padded,
            2 * g.seen, own.count);
    __syncthreads();
    unit = start_unit(unit + gridDim.x);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
