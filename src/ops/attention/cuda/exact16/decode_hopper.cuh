// attention_exact16 for few rows of a key head on Hopper, which are one group. Thread blocks go
// over key blocks: keys are copied while the values of the block before are used, values while
// scores are computed. Copies of what the cache has start before the grids ahead have ended.
#pragma once
#include "ops/attention/cuda/exact16/decode_block_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// whole: values take the place of keys, so that more thread blocks fit.
template <int kTiles>
struct ExactDecodeHopperSmem {
  ExactDecodeRows<kTiles> rows;
  ExactDecodeStage stage;
};
template <int kTiles, bool kWhole>
constexpr size_t kDecodeHopperShared = sizeof(ExactDecodeHopperSmem<kTiles>) -
                                       (kWhole ? sizeof(ExactDecodeStage::values) : 0);
template <int kTiles, bool kWhole>
constexpr int kDecodeHopperBlocks = (kTiles == 1 ? 3 : 2) + (kWhole ? 1 : 0);  // of a multiprocessor

// Some consecutive key blocks of a group of rows of a key head. kWhole: all of the rows', whose
// results it stores; otherwise partial results.
template <int kTiles, bool kWhole>
struct ExactDecodeRun : ExactDecodeBlock<kTiles, kWhole> {
  using Block = ExactDecodeBlock<kTiles, kWhole>;
  using Block::Block, Block::kParts, Block::kKeys, Block::kWarpKeys;
  using Block::copy_keys, Block::copy_values, Block::has_new, Block::next, Block::append;
  using Block::lane, Block::warp, Block::g, Block::t;
  using Block::s, Block::smem, Block::head, Block::first, Block::old, Block::count;
  using Block::stage, Block::parity;
  float o[kTiles][kParts][4];  // of value columns g and g + 8 of the warp's tiles; rows 2 t and 2 t + 1
  OnlineSoftmax running[kTiles][2];
  bool ordinary = true;
  int block, end, now;  // key blocks [block, end), which no other thread block has; the next one

  // Starts to copy the first key block.
  __device__ void start() {
    this->find_visible();
    now = next(block, end);
    if (now < end) copy_keys(now, *stage);
    if (!kWhole && now < end) copy_values(now, *stage);
  }
  __device__ void run() {
    const Geometry& geometry = s.g;
#pragma unroll
    for (int i = 0; kWhole && i < 4 * kTiles * kParts; ++i) o[i / (4 * kParts)][i / 4 % kParts][i % 4] = 0;
    const int64_t to = (head * geometry.rows + first) * geometry.seen;
    const auto unseen = [&](int from, int until) {
      if constexpr (!kWhole)
        for (; from < until; ++from)
          if (threadIdx.x < count) s.max_sums[2 * (to + threadIdx.x * geometry.seen + from)] = -kInf;
    };
    unseen(block, now);
    const int first_fresh = max(block, old / kBlock);
    if (first_fresh < end) this->load_fresh(first_fresh);
    this->load_queries();
    while (now < end) {
      const bool is_new = has_new(now);
      if (is_new) {
        stage->wait_for_keys(parity);
        if (!kWhole) stage->wait_for_values(parity);
        append(now, true, !kWhole, now == first_fresh);
      }
      __syncthreads();
      const int after = next(now + 1, end);
      unseen(now + 1, after);
      float x[kTiles][2 * kKeys];
      BlockSums sums[kTiles];
      stage->wait_for_keys(parity);
      this->score(x);
      this->mask(now, x);
      this->weigh(x, sums, [&] {
        if constexpr (kWhole)
          copy_values(now, *stage);
        else if (after < end)
          copy_keys(after, *stage);
      });
      bool usual = true;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) usual = sums[tile].ordinary() && usual;
      stage->wait_for_values(parity);
      if (kWhole && is_new) {
        append(now, false, true, now == first_fresh);
        __syncthreads();
      }
      if constexpr (kWhole) {
        ordinary = ordinary && usual;
        fold_in(sums);
      } else if (usual) {
        store_partial(sums, to + now);
      } else {  // all warps, as each has all rows
        exact_decode_rows(s, ExactLayout(geometry), head, first, count, now, partial_rows(s, to + now));
      }
      __syncthreads();  // all have used the values and the weights
      if (after < end) kWhole ? copy_keys(after, *stage) : copy_values(after, *stage);
      parity ^= 1, now = after;
    }
  }
  __device__ __forceinline__ void fold_in(const BlockSums (&sums)[kTiles]) {
    float by[kTiles][2];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const bool odd = g % 2;
      const float own = rescale_factor(set1(odd ? sums[tile].m[1] : sums[tile].m[0]),
                                       odd ? running[tile][1].m : running[tile][0].m);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        by[tile][row] = __shfl_sync(kFullWarp, own, 4 * row + t);
        OnlineSoftmax& all = running[tile][row];
        all.l = fold(by[tile][row], all.l, sums[tile].l(row));
        all.m = set1(max_nan(all.m.v, sums[tile].m[row]));
      }
    }
    this->multiply(sums, [&](int tile, int i, int j, F ob) {
      o[tile][i][j] = fold(by[tile][j % 2], set1(o[tile][i][j]), ob).v;
    });
  }
  __device__ __forceinline__ void store_partial(const BlockSums (&sums)[kTiles], int64_t to) const {
    const Geometry& geometry = s.g;
    const auto row_of = [&](int tile, int row) { return tile * kSideRows + 2 * t + row; };
    if (warp == 0 && g == 0)
#pragma unroll
      for (int i = 0; i < 2 * kTiles; ++i)
        if (const int r = row_of(i / 2, i % 2); r < count) {
          s.max_sums[2 * (to + r * geometry.seen)] = sums[i / 2].m[i % 2];
          s.max_sums[2 * (to + r * geometry.seen) + 1] = sums[i / 2].l(i % 2).v;
        }
    this->multiply(sums, [&](int tile, int i, int j, F ob) {
      const int r = row_of(tile, j % 2), column = warp * kWarpKeys + 16 * i + g + j / 2 * 8;
      if (r < count && column < geometry.dv)
        store(s.partials + (to + r * geometry.seen) * geometry.dv_padded + column, ob);
    });
  }
  // attention.17 and attention.10
  __device__ void finish() {
    const Geometry& geometry = s.g;
    if (!ordinary) {
      for (int r = warp; r < count; r += kDecodeWarps) exact_row(s, head, first + r);
      return;
    }
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int r = i / 2 * kSideRows + 2 * t + i % 2;
      if (r >= count) continue;
      const QueryRow to = this->row(r);
      OnlineSoftmax& all = running[i / 2][i % 2];
      const float by = s.sinks ? all.join(set1(s.sinks[to.head]), set1(1.0f)) : kEmptyBlock;
      float* y = s.y + row_index(geometry, to) * geometry.dv;
#pragma unroll
      for (int j = 0; j < 2 * kParts; ++j) {
        const int column = warp * kWarpKeys + j / 2 * 16 + g + j % 2 * 8;
        const F sum = fold(by, set1(o[i / 2][j / 2][j % 2 * 2 + i % 2]), zero());
        if (column < geometry.dv) store(y + column, normalized(sum, all.m, all.l));
      }
    }
  }
};

// kWhole: a thread block has all key blocks of a group of rows; otherwise thread blocks share the
// key blocks of all groups evenly, and combine_splits_kernel follows.
template <int kTiles, bool kWhole>
__global__ void __launch_bounds__(kDecodeThreads, kDecodeHopperBlocks<kTiles, kWhole>)
    exact_decode_hopper_kernel(const __grid_constant__ AttentionParams s) {
  extern __shared__ float4 memory[];
  auto& smem = *reinterpret_cast<ExactDecodeHopperSmem<kTiles>*>(memory);
  const Geometry& g = s.g;
  if (threadIdx.x == 0) smem.stage.init_barriers();
  __syncthreads();
  trigger_next_grid();
  const auto kv_heads = static_cast<uint32_t>(g.kv_heads);
  const auto groups = static_cast<uint32_t>(ceil_div(g.rows, kTiles * kSideRows));
  // Units: a group, or a key block of a group.
  const int64_t blocks = kWhole ? 1 : ceil_div(*s.past + g.keys, kBlock),
                units = g.batch * g.kv_heads * groups * blocks, last = units * (blockIdx.x + 1) / gridDim.x;
  int64_t unit = units * blockIdx.x / gridDim.x;
  ExactDecodeRun<kTiles, kWhole> own(s, smem.rows, &smem.stage);
  const auto begin = [&] {
    const auto group = static_cast<uint32_t>(unit / blocks), head = group / groups;
    const int64_t block = unit % blocks, until = num::min_i64(blocks, block + last - unit);
    own.begin(static_cast<int>(head / kv_heads), static_cast<int>(head % kv_heads), group % groups);
    const int all = (own.total + kBlock - 1) / kBlock;
    own.block = static_cast<int>(block), own.end = kWhole ? all : min(all, static_cast<int>(until));
    unit += until - block;
  };
  bool more = unit < last;
  if (more) begin();
  bool started = more && own.may_start_early();
  if (started) own.start();
  wait_for_previous_grid();
  while (more) {
    if (!started) own.start();
    own.run();
    if constexpr (kWhole) own.finish();
    more = unit < last, started = false;
    if (more) begin();
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
