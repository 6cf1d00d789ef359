// attention_exact16 for many rows: a thread block has 16 rows of a key head for each of its warps
// and goes over the key blocks that they see. The values of a block arrive while its scores are
// computed, and the keys of the next one.
#pragma once
#include "ops/attention/cuda/exact16/block_product.cuh"
#include "ops/attention/cuda/exact16/row_per_warp.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int kColumns>
struct ExactAccumulator {
  OnlineSoftmax running[2];
  float o[kColumns / 8][4] = {};

  // Folds a block in (attention.9).
  __device__ __forceinline__ void join(const ExactValueSmem<kColumns>& values, const uint32_t (&high)[4][4],
                                       const uint32_t (&low)[4][4], const BlockSums& sums, int end) {
    float by[2];
    bool smaller = true;  // than what is there, as most blocks are
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      by[h] = running[h].join(set1(sums.m[h]), sums.l(h));
      smaller = smaller && __float_as_int(by[h]) < 0;
    }
    smaller = __all_sync(kFullWarp, smaller);
#pragma unroll
    for (int first = 0; first < kColumns; first += 16)
      exact_results(values, high, low, sums, end, first, [&](int tile, int i, F ob) {
        float& at = o[first / 8 + tile][i];
        at = smaller ? __fmaf_rn(ob.v, -by[i / 2], at) : fold(by[i / 2], set1(at), ob).v;
      });
  }
};

template <int kSteps, int kColumns>
struct ExactPrefillSmem {
  ExactKeySmem<kSteps> keys[2];
  ExactValueSmem<kColumns> values;
};
template <int kSteps, int kColumns, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp, kWarps <= 4 ? 2 : 1)
    exact_prefill_kernel(const __grid_constant__ AttentionParams s, int tiles) {
  extern __shared__ float4 memory[];
  using Smem = ExactPrefillSmem<kSteps, kColumns>;
  constexpr int kStride = ExactKeySmem<kSteps>::kStride;
  constexpr int kThreads = kWarps * kWarp;
  auto& smem = *reinterpret_cast<Smem*>(memory);
  trigger_and_wait();
  const Geometry& g = s.g;
  const ExactLayout at(g);
  const int64_t head = blockIdx.x / tiles, tile = tiles - 1 - blockIdx.x % tiles,
                column = int64_t{blockIdx.y} * kColumns, past = s.sequences[head / g.kv_heads].past;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  // What a row sees begins and ends no earlier than what the row before it sees.
  const auto sight = [&](int64_t row) {
    const QueryRow r = query_row(g, head, row < g.rows ? row : g.rows - 1);
    return attention::visible_keys(g, s.lengths, past, r.batch, r.i);
  };
  const int64_t first_row = tile * kWarps * kMmaRows, own_row = first_row + warp * kMmaRows;
  const VisibleKeys low = sight(first_row), high = sight(first_row + kWarps * kMmaRows - 1),
                    own_low = sight(own_row), own_high = sight(own_row + kMmaRows - 1);
  QueryRow row[2];
  const float* from[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int64_t r = own_row + lane / 4 + 8 * h;
    row[h] = query_row(g, head, r < g.rows ? r : g.rows - 1);
    from[h] = r < g.rows ? s.q + row_index(g, row[h]) * g.d : nullptr;
  }
  for (int i = threadIdx.x; at.dk < kStride && i < 2 * kBlock * kStride / 16; i += kThreads)
    for (auto& keys : smem.keys) reinterpret_cast<int4*>(keys.planes)[i] = {};
  const auto next_block = [&](int64_t block) {
    while (block * kBlock + kBlock <= low.low && block * kBlock >= g.first) ++block;
    return block;
  };
  __syncthreads();
  int64_t block = next_block(0);
  if (block * kBlock < high.high)
    smem.keys[0].copy(at, exact_cache_block(s, at, head, block), threadIdx.x, kThreads);
  end_copy_group();
  ExactQueries<kSteps> q;
  q.load(g, from);
  ExactAccumulator<kColumns> total;
  bool ordinary = true;
  for (int turn = 0; block * kBlock < high.high; turn ^= 1) {
    const int64_t base = block * kBlock, next = next_block(block + 1);
    const ExactCacheBlock own = exact_cache_block(s, at, head, block);
    wait_for_copies<0>();
    __syncthreads();
    smem.values.copy(at, own, column, threadIdx.x, kThreads);
    end_copy_group();
    if (next * kBlock < high.high)
      smem.keys[turn ^ 1].copy(at, exact_cache_block(s, at, head, next), threadIdx.x, kThreads);
    end_copy_group();
    RowMasks mask;
    mask.end = base >= own_high.high ? 0 : static_cast<int>(num::min_i64(kBlock, own_high.high - base));
    mask.plain =
        g.plain_scores && base + kBlock <= own_low.high && (base >= own_high.low || base + kBlock <= g.first);
    const ScoreMask masks[2] = {
        {s, attention::visible_keys(g, s.lengths, past, row[0].batch, row[0].i), row[0], past, block},
        {s, attention::visible_keys(g, s.lengths, past, row[1].batch, row[1].i), row[1], past, block}};
    mask.of[0] = masks, mask.of[1] = masks + 1;
    ExactBlockProduct<kSteps, kColumns, 4> product(s, smem.keys[turn], smem.values, q, block, 0);
    BlockSums sums;
    if (mask.end && ordinary) {
      product.score(mask);
      product.maxima(sums.m);
    }
    wait_for_copies<1>();
    __syncthreads();
    if (mask.end && ordinary) {
      // NaN as a maximum is caught below; then nothing of this is used.
      if (mask.plain)
        product.template weigh<false>(sums);
      else
        product.template weigh<true>(sums);
      ordinary = sums.ordinary();
      uint32_t weights_high[4][4], weights_low[4][4];
      if (mask.plain)
        product.template pack_weights<false>(sums, weights_high, weights_low);
      else
        product.template pack_weights<true>(sums, weights_high, weights_low);
      if (ordinary) total.join(smem.values, weights_high, weights_low, sums, mask.end);
    }
    block = next;
  }
  if (!ordinary) {
    for (int64_t r = own_row; blockIdx.y == 0 && r < num::min_i64(own_row + kMmaRows, g.rows); ++r)
      exact_row(s, head, r);
    return;
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (!from[h]) continue;
    OnlineSoftmax& all = total.running[h];
    const float by = s.sinks ? all.join(set1(s.sinks[row[h].head]), set1(1.0f)) : kEmptyBlock;
    float* y = s.y + row_index(g, row[h]) * g.dv;
#pragma unroll
    for (int i = 0; i < kColumns / 4; ++i) {
      const int64_t c = column + i / 2 * 8 + lane % 4 * 2 + i % 2;
      if (c < g.dv)
        store(y + c, normalized(fold(by, set1(total.o[i / 2][2 * h + i % 2]), zero()), all.m, all.l));
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
