// attention_exact16 for many rows: a thread block has 16 rows of a key head for each of its warps
// and goes over the key blocks that they see. The values of a block arrive while its scores are
// computed, and the keys of the next one.
#pragma once
#include "ops/attention/cuda/exact16/block_product.cuh"
#include "ops/attention/cuda/exact16/row_per_warp.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int kSteps, int kColumns, int kWarps>
struct ExactPrefillSmem {
  ExactKeySmem<kSteps> keys[2];
  ExactValueSmem<kColumns> values;
  ExactQuerySmem<kSteps> queries[kWarps];
};

// The 16 rows of a warp, from `first` on: what they see, and their results so far.
template <int kSteps, int kColumns>
struct ExactPrefillWarp {
  const AttentionParams& s;
  int64_t head, past, first;
  VisibleKeys low, high;  // of the first and of the last row
  QueryRow row[2];
  bool exists[2], ordinary = true;
  SharedQueries<kSteps> q;
  OnlineSoftmax running[2];
  float o[kColumns / 8][4] = {};

  __device__ VisibleKeys sight(int64_t r) const {
    const QueryRow own = query_row(s.g, head, r < s.g.rows ? r : s.g.rows - 1);
    return attention::visible_keys(s.g, s.lengths, past, own.batch, own.i);
  }
  __device__ ExactPrefillWarp(const AttentionParams& s, int64_t head, int64_t past, int64_t first,
                              ExactQuerySmem<kSteps>& queries)
      : s(s),
        head(head),
        past(past),
        first(first),
        low(sight(first)),
        high(sight(first + kMmaRows - 1)),
        q{queries, {}} {
    const Geometry& g = s.g;
    const float* from[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64_t r = first + threadIdx.x % kWarp / 4 + 8 * h;
      exists[h] = r < g.rows;
      row[h] = query_row(g, head, exists[h] ? r : g.rows - 1);
      from[h] = exists[h] ? s.q + row_index(g, row[h]) * g.d : nullptr;
    }
    q.load(g, from);
  }

  // Folds a block in (attention.9).
  template <bool kPlain>
  __device__ __forceinline__ void join(const ExactValueSmem<kColumns>& values, const uint32_t (&wh)[4][4],
                                       const uint32_t (&wl)[4][4], const BlockSums& sums, int end) {
    float by[2];
    bool smaller = true;  // than what is there, as most blocks are
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      by[h] = running[h].join(set1(sums.m[h]), sums.l(h));
      smaller = smaller && __float_as_int(by[h]) < 0;
    }
    const auto each = [&](auto put) {
#pragma unroll
      for (int c = 0; c < kColumns; c += 16)
        exact_results<kPlain>(values, wh, wl, sums, end, c,
                              [&](int tile, int i, F ob) { put(o[c / 8 + tile][i], i / 2, ob); });
    };
    if (__all_sync(kFullWarp, smaller))
      each([&](float& at, int h, F ob) { at = __fmaf_rn(ob.v, -by[h], at); });
    else
      each([&](float& at, int h, F ob) { at = fold(by[h], set1(at), ob).v; });
  }

  // A block whose keys are in shared memory and whose values arrive.
  template <bool kPlain>
  __device__ __forceinline__ void attend(const ExactKeySmem<kSteps>& keys,
                                         const ExactValueSmem<kColumns>& values, int64_t block,
                                         const RowMasks& mask) {
    ExactBlockProduct<kSteps, kColumns, 4, SharedQueries<kSteps>> product(s, keys, values, q, block, 0);
    BlockSums sums;
    product.template score<kPlain>(mask);
    product.maxima(sums.m);
    wait_for_copies<1>();
    wait_for_block();
    product.template weigh<!kPlain>(sums);
    ordinary = sums.ordinary();
    if (!ordinary) return;
    uint32_t wh[4][4], wl[4][4];
    product.template pack_weights<!kPlain>(sums, wh, wl);
    join<kPlain>(values, wh, wl, sums, mask.end);
  }
  // All threads of the block call it: it waits for the values.
  __device__ __forceinline__ void attend(const ExactKeySmem<kSteps>& keys,
                                         const ExactValueSmem<kColumns>& values, int64_t block) {
    const Geometry& g = s.g;
    const int64_t base = block * kBlock;
    RowMasks mask;
    mask.end = base >= high.high ? 0 : static_cast<int>(num::min_i64(kBlock, high.high - base));
    if (!ordinary || mask.end == 0) {
      wait_for_copies<1>();
      wait_for_block();
    } else if (g.plain_scores && base + kBlock <= low.high &&
               (base >= high.low || base + kBlock <= g.first)) {
      attend<true>(keys, values, block, mask);
    } else {
      const ScoreMask masks[2] = {
          {s, attention::visible_keys(g, s.lengths, past, row[0].batch, row[0].i), row[0], past, block},
          {s, attention::visible_keys(g, s.lengths, past, row[1].batch, row[1].i), row[1], past, block}};
      mask.of[0] = masks, mask.of[1] = masks + 1;
      attend<false>(keys, values, block, mask);
    }
  }

  // attention.17 and attention.10; `column`: the first one.
  __device__ void finish(int64_t column) {
    const Geometry& g = s.g;
    if (!ordinary) {
      for (int64_t r = first; column == 0 && r < num::min_i64(first + kMmaRows, g.rows); ++r)
        exact_row(s, head, r);
      return;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!exists[h]) continue;
      OnlineSoftmax& all = running[h];
      const float by = s.sinks ? all.join(set1(s.sinks[row[h].head]), set1(1.0f)) : kEmptyBlock;
      float* y = s.y + row_index(g, row[h]) * g.dv;
#pragma unroll
      for (int i = 0; i < kColumns / 4; ++i) {
        const int64_t c = column + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (c < g.dv) store(y + c, normalized(fold(by, set1(o[i / 2][2 * h + i % 2]), zero()), all.m, all.l));
      }
    }
  }
};

template <int kSteps, int kColumns, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp)
    exact_prefill_kernel(const __grid_constant__ AttentionParams s, int tiles) {
  extern __shared__ float4 memory[];
  constexpr int kThreads = kWarps * kWarp, kStride = ExactKeySmem<kSteps>::kStride;
  auto& smem = *reinterpret_cast<ExactPrefillSmem<kSteps, kColumns, kWarps>*>(memory);
  trigger_and_wait();
  const Geometry& g = s.g;
  const ExactLayout at(g);
  const int64_t head = blockIdx.x / tiles, tile = tiles - 1 - blockIdx.x % tiles,
                column = int64_t{blockIdx.y} * kColumns, past = s.sequences[head / g.kv_heads].past,
                first_row = tile * kWarps * kMmaRows;
  for (int i = threadIdx.x; at.dk < kStride && i < 2 * kBlock * kStride / 16; i += kThreads)
    for (auto& keys : smem.keys) reinterpret_cast<int4*>(keys.planes)[i] = {};
  __syncthreads();
  ExactPrefillWarp<kSteps, kColumns> own(s, head, past, first_row + threadIdx.x / kWarp * kMmaRows,
                                         smem.queries[threadIdx.x / kWarp]);
  // What a row sees begins and ends no earlier than what the row before it sees.
  const VisibleKeys low = own.sight(first_row), high = own.sight(first_row + kWarps * kMmaRows - 1);
  const auto next_block = [&](int64_t block) {
    while (block * kBlock + kBlock <= low.low && block * kBlock >= g.first) ++block;
    return block;
  };
  const auto copy_keys = [&](int64_t block, int turn) {
    if (block * kBlock < high.high)
      smem.keys[turn].copy(at, exact_cache_block(s, at, head, block), threadIdx.x, kThreads);
    end_copy_group();
  };
  int64_t block = next_block(0);
  copy_keys(block, 0);
  for (int turn = 0; block * kBlock < high.high; turn ^= 1) {
    wait_for_copies<0>();
    wait_for_block();
    smem.values.copy(at, exact_cache_block(s, at, head, block), column, threadIdx.x, kThreads);
    end_copy_group();
    const int64_t next = next_block(block + 1);
    copy_keys(next, turn ^ 1);
    own.attend(smem.keys[turn], smem.values, block);
    block = next;
  }
  own.finish(column);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
