// attention_exact16 for few rows of a key head: persistent thread blocks take key block after key
// block for 16 rows. Each of the four warps scores 32 keys, then multiplies a quarter of the value
// columns. The keys of the next block arrive while this one's values are used.
// combine_splits_kernel folds.
#pragma once
#include "ops/attention/cuda/exact16/block_product.cuh"
#include "ops/attention/cuda/exact16/decode_rows.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// kSteps: of 32 elements of a key. kColumns: of values.
template <int kSteps, int kColumns>
struct ExactDecodeSmem {
  ExactKeySmem<kSteps> keys;
  ExactValueSmem<kColumns> values;
  uint4 high[4][kWarp], low[4][kWarp];  // planes of W: a thread's part of each run
  float m[kDecodeWarps][kMmaRows];
  int32_t sum[kDecodeWarps][kMmaRows], e[kDecodeWarps][kMmaRows];
};

// Units: a key block for a group of 16 rows of a key head; each group has as many units as the
// longest sequence has blocks.
struct ExactDecodeUnit {
  int64_t head, first, block, past, to;  // to: of the first row's block among the partials
  int count;
  bool exists, seen;
  __device__ ExactDecodeUnit(const AttentionParams& s, int64_t unit, int64_t blocks) {
    const Geometry& g = s.g;
    const int64_t groups = ceil_div(g.rows, kMmaRows);
    block = unit % blocks, first = unit / blocks % groups * kMmaRows, head = unit / blocks / groups;
    past = s.sequences[head / g.kv_heads].past;
    count = static_cast<int>(num::min_i64(kMmaRows, g.rows - first));
    to = (head * g.rows + first) * g.seen + block;
    exists = block * kBlock < past + g.keys;
    const QueryRow low_row = query_row(g, head, first), high_row = query_row(g, head, first + count - 1);
    low = attention::visible_keys(g, s.lengths, past, low_row.batch, low_row.i);
    high = attention::visible_keys(g, s.lengths, past, high_row.batch, high_row.i);
    const int64_t base = block * kBlock;
    seen = exists && base < high.high && !(base + kBlock <= low.low && base >= g.first);
  }
  VisibleKeys low, high;
};

// Asks for a key block ahead of the wait: few of its bytes are new, and the L2 cache is coherent.
__device__ inline void prefetch_l2(const AttentionParams& s, const ExactLayout& at, int64_t head,
                                   int64_t block) {
  constexpr int64_t kLine = 128;
  if (block * kBlock >= s.sequences[head / s.g.kv_heads].past + s.g.keys) return;  // it does not exist
  const ExactCacheBlock own = exact_cache_block(s, at, head, block);
  for (int64_t i = threadIdx.x * kLine; i < at.block(); i += kDecodeThreads * kLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(own.keys + i));
}

// Long because it is one pipeline: each step needs what the one before left in registers.
template <int kSteps, int kColumns>
__global__ void __launch_bounds__(kDecodeThreads, kSteps > kDecodeSteps ? 1 : kDecodeBlocks)
    exact_decode_kernel(const __grid_constant__ AttentionParams s) {
  extern __shared__ float4 memory[];
  auto& smem = *reinterpret_cast<ExactDecodeSmem<kSteps, kColumns>*>(memory);
  const Geometry& g = s.g;
  const ExactLayout at(g);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, t = lane % 4;
  constexpr int kStride = ExactKeySmem<kSteps>::kStride;
  for (int i = threadIdx.x; at.dk < kStride && i < 2 * kBlock * kStride / 16; i += kDecodeThreads)
    reinterpret_cast<int4*>(smem.keys.planes)[i] = {};
  __syncthreads();
  trigger_next_grid();
  const int64_t groups = ceil_div(g.rows, kMmaRows), blocks = ceil_div(*s.past + g.keys, kBlock),
                units = g.batch * g.kv_heads * groups * blocks;
  // This thread block's are neighbours, so that queries are rounded once for a run of blocks.
  const int64_t first_unit = units * blockIdx.x / gridDim.x, end = units * (blockIdx.x + 1) / gridDim.x;
  if (first_unit < end) prefetch_l2(s, at, first_unit / blocks / groups, first_unit % blocks);
  wait_for_previous_grid();
  // The first unit from `unit` on of which something is seen; its keys start to arrive.
  const auto start = [&](int64_t unit) {
    for (; unit < end; ++unit) {
      const ExactDecodeUnit next(s, unit, blocks);
      if (next.seen) {
        smem.keys.copy(at, exact_cache_block(s, at, next.head, next.block), threadIdx.x, kDecodeThreads);
        break;
      }
      if (next.exists && threadIdx.x < next.count) s.max_sums[2 * (next.to + threadIdx.x * g.seen)] = -kInf;
    }
    end_copy_group();
    return unit;
  };
  ExactQueries<kSteps> q;
  int64_t of_q = -1;
  int64_t unit = start(first_unit);
  while (unit < end) {
    const ExactDecodeUnit own(s, unit, blocks);
    __syncthreads();  // all have used the values of the last unit
    smem.values.copy(at, exact_cache_block(s, at, own.head, own.block), 0, threadIdx.x, kDecodeThreads);
    end_copy_group();
    QueryRow row[2];
    const float* from[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = lane / 4 + 8 * h;
      row[h] = query_row(g, own.head, own.first + (r < own.count ? r : own.count - 1));
      from[h] = r < own.count ? s.q + row_index(g, row[h]) * g.d : nullptr;
    }
    if (of_q != unit / blocks) q.load(g, from), of_q = unit / blocks;
    const int64_t base = own.block * kBlock;
    const ScoreMask masks[2] = {{s, attention::visible_keys(g, s.lengths, own.past, row[0].batch, row[0].i),
                                 row[0], own.past, own.block},
                                {s, attention::visible_keys(g, s.lengths, own.past, row[1].batch, row[1].i),
                                 row[1], own.past, own.block}};
    RowMasks mask;
    mask.of[0] = masks, mask.of[1] = masks + 1;
    mask.end = static_cast<int>(num::min_i64(kBlock, own.high.high - base));
    mask.plain =
        g.plain_scores && base + kBlock <= own.low.high && (base >= own.high.low || base + kBlock <= g.first);
    ExactBlockProduct<kSteps, kColumns, 1, ExactQueries<kSteps>> product(s, smem.keys, smem.values, q,
                                                                         own.block, warp);
    wait_for_copies<1>();
    __syncthreads();
    BlockSums sums;
    if (mask.plain)
      product.template score<true>(mask);
    else
      product.template score<false>(mask);
    product.maxima(sums.m);
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (t == 0) smem.m[warp][lane / 4 + 8 * h] = sums.m[h];
    wait_for_copies<0>();
    __syncthreads();
    unit = start(unit + 1);
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int i = 0; i < kDecodeWarps; ++i) sums.m[h] = max_nan(sums.m[h], smem.m[i][lane / 4 + 8 * h]);
    if (mask.plain)
      product.template weigh<false>(sums);
    else
      product.template weigh<true>(sums);
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (t == 0) {
        smem.sum[warp][lane / 4 + 8 * h] = sums.sum[h];
        smem.e[warp][lane / 4 + 8 * h] = sums.e[h];
      }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sums.sum[h] = 0, sums.e[h] = kHiddenKey;
#pragma unroll
      for (int i = 0; i < kDecodeWarps; ++i) {
        sums.sum[h] += smem.sum[i][lane / 4 + 8 * h];
        sums.e[h] = max(sums.e[h], smem.e[i][lane / 4 + 8 * h]);
      }
    }
    if (!sums.ordinary()) {  // of all warps, as each has all rows
      exact_decode_rows(s, at, own.head, own.first, own.count, own.block, partial_rows(s, own.to));
      continue;
    }
    uint32_t high[1][4], low[1][4];
    if (mask.plain)
      product.template pack_weights<false>(sums, high, low);
    else
      product.template pack_weights<true>(sums, high, low);
    smem.high[warp][lane] = make_uint4(high[0][0], high[0][1], high[0][2], high[0][3]);
    smem.low[warp][lane] = make_uint4(low[0][0], low[0][1], low[0][2], low[0][3]);
    __syncthreads();
    uint32_t all_high[4][4], all_low[4][4];
#pragma unroll
    for (int run = 0; run < 4; ++run) {
      const uint4 h = smem.high[run][lane], l = smem.low[run][lane];
      all_high[run][0] = h.x, all_high[run][1] = h.y, all_high[run][2] = h.z, all_high[run][3] = h.w;
      all_low[run][0] = l.x, all_low[run][1] = l.y, all_low[run][2] = l.z, all_low[run][3] = l.w;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (const int r = lane / 4 + 8 * h; warp == 0 && t == 0 && r < own.count)
        s.max_sums[2 * (own.to + r * g.seen)] = sums.m[h],
                                     s.max_sums[2 * (own.to + r * g.seen) + 1] = sums.l(h).v;
#pragma unroll
    for (int first = 0; first < kColumns / kDecodeWarps; first += 16) {
      const int begin = warp * (kColumns / kDecodeWarps) + first;
      if (begin >= g.dv) continue;
      exact_results<false>(smem.values, all_high, all_low, sums, mask.end, begin, [&](int tile, int i, F ob) {
        const int r = lane / 4 + i / 2 * 8, column = begin + 8 * tile + 2 * t + i % 2;
        if (r < own.count && column < g.dv)
          store(s.partials + (own.to + r * g.seen) * g.dv_padded + column, ob);
      });
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
