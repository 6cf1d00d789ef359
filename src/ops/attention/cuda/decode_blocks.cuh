// Few rows of a key head that see many blocks: thread blocks, some on a processor, take block after block (whole.cuh), values
// where keys were, so that one computes while others wait; fold_kernel joins their parts.
#pragma once
#include "ops/attention/cuda/smem_block.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Units: blocks of runs of R rows of key heads, as many of each as the longest sequence has; m_b and l_b -> marks, results ->
// parts.
template <int R>
__global__ void __launch_bounds__(kWholeThreads) far_kernel(const __grid_constant__ Step s) {
  extern __shared__ float4 room[];
  __shared__ PlacedRow rows[R];
  float* const memory = reinterpret_cast<float*>(room);
  const Geometry& g = s.g;
  const int64_t blocks = ceil_div(*s.past + g.keys, kBlock),
                units = g.batch * g.kv_heads * ceil_div(g.rows, R) * blocks;
  release_next();
  // The first unit from `unit` on that its sequence has; its keys are asked for.
  auto begin = [&](int64_t unit) {
    for (; unit < units; unit += gridDim.x) {
      const WholeBlock<R, false> next(s, unit / blocks, unit % blocks);
      if (!next.exists(g)) continue;
      next.ask_keys(s, memory);
      break;
    }
    return unit;
  };
  int64_t unit = begin(blockIdx.x);
  await_previous();
  while (unit < units) {
    const WholeBlock<R, false> own(s, unit / blocks, unit % blocks);
    own.place_rows(s, rows);
    __syncthreads();
    const int64_t to = (own.head * g.rows + own.first) * g.seen + own.block;
    own.run(s, memory, rows, s.parts + to * g.dv_padded, s.marks + 2 * to, g.seen * g.dv_padded, 2 * g.seen,
            own.count);
    __syncthreads();
    unit = begin(unit + gridDim.x);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
