// Prefill: a thread block computes a tile of kRows query rows of a key head over the key blocks
// that any of them sees. Scores and results are matrix products that a thread holds in registers,
// 8 x 8 of each; their operands come through a circular pipeline in shared memory.
#pragma once
#include "ops/attention/cuda/common.cuh"
#include "ops/attention/cuda/pipeline.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int kRows, int kColumns>
struct Tile {
  static constexpr int kOwn = kColumns / kKeyThreads;  // value columns of a thread
  static constexpr int kHalf = kRows / 2;              // a thread has 4 rows of each half
  static constexpr int kThreads = kRows / 8 * kKeyThreads;
  static constexpr int kWeightStep = kRows + 4;  // pads the weights of a key against bank conflicts
  struct Shared {
    SmemPipeline<kThreads, kBlock, kRows> pipeline;  // keys with queries, or values
    alignas(16) float p[kBlock][kWeightStep];        // weights; negative: hidden
    int64_t low[kRows], high[kRows];                 // the keys that a row sees
  };
};

constexpr int kUnroll = 8;  // a longer body leaves the instruction cache

// Walks the stages of a tile: for each block that it sees, ascending, its keys and then its values.
struct StageIterator {
  int low, high, first;  // visible blocks: [low, high), and those before `first`
  int key_stages;        // of a block
  int end;               // the end of the blocks that the tile sees in all splits
  int last_stages;       // value stages of the last one of these
  int block, at = 0;

  __device__ void skip_hidden() {
    if (block < low && block >= first) block = low;
  }
  __device__ bool done() const { return block >= high; }
  __device__ void next() {
    if (!done() && ++at == stages()) ++block, at = 0, skip_hidden();
  }
  __device__ int stages() const { return key_stages + (block + 1 < end ? kBlock / kStageRows : last_stages); }
};

// c[r][i] += left row r times right column i: 4 of each, and 4 more kHalf rows and 64 columns
// behind (contraction.2, attention.8).
template <int kHalf, int kOwn>
__device__ inline void mma(const float* left, const float* right, F (&c)[8][kOwn]) {
  float a[8], b[kOwn];
#pragma unroll
  for (int r = 0; r < 8; r += 4)
    *reinterpret_cast<float4*>(a + r) = *reinterpret_cast<const float4*>(left + r / 4 * kHalf);
#pragma unroll
  for (int i = 0; i < kOwn; i += 4)
    *reinterpret_cast<float4*>(b + i) = *reinterpret_cast<const float4*>(right + i / 4 * (kBlock / 2));
#pragma unroll
  for (int r = 0; r < 8; ++r)
#pragma unroll
    for (int i = 0; i < kOwn; ++i) c[r][i] = fma(set1(a[r]), set1(b[i]), c[r][i]);
}
// The same, except for rows whose weight is negative: the key is hidden from them.
template <int kHalf, int kOwn>
__device__ inline void mma_masked(const float* left, const float* right, F (&c)[8][kOwn]) {
  F a[8], b[kOwn];
#pragma unroll
  for (int r = 0; r < 8; ++r) a[r] = load(left + r % 4 + r / 4 * kHalf);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) b[i] = load(right + i % 4 + i / 4 * (kBlock / 2));
#pragma unroll
  for (int r = 0; r < 8; ++r)
#pragma unroll
    for (int i = 0; i < kOwn; ++i) c[r][i] = select(lt(a[r], zero()), c[r][i], fma(a[r], b[i], c[r][i]));
}

// One thread's part of a tile. Its 8 rows are 4 ty ... in each half of the tile. Its keys of a
// block are tx, kKeyThreads + tx ...; its value columns are 4 tx ... in each half of a block.
template <int kRows, int kColumns>
struct PrefillTile {
  using T = Tile<kRows, kColumns>;
  static constexpr int kHalf = T::kHalf, kOwn = T::kOwn;
  const AttentionParams& s;
  const Geometry& g;
  typename T::Shared& w;
  const int tx, ty, splits;
  int64_t head, tile, first_row, first_column;
  HeadCache cache;
  int row_count;
  int64_t partial;  // the first row among the rows of partials
  int64_t all_low, all_high;
  StageIterator now, loading;  // loading: the stage that this thread loads next
  const float* queries;
  int width, stage = 0;

  __device__ __forceinline__ QueryRow row_at(int r) const {
    return query_row(g, head, num::min_i64(first_row + r, g.rows - 1));
  }
  // The tile's row of this thread's row r.
  __device__ __forceinline__ int own_row(int r) const { return 4 * ty + r % 4 + r / 4 * kHalf; }

  __device__ __forceinline__ PrefillTile(const AttentionParams& params, typename T::Shared& shared, int tiles,
                                         int of_splits)
      : s(params),
        g(params.g),
        w(shared),
        tx(threadIdx.x % kKeyThreads),
        ty(threadIdx.x / kKeyThreads),
        splits(of_splits) {
    const int64_t heads = g.batch * g.kv_heads;
    // The longest tiles first, all heads at the same keys.
    head = blockIdx.x % heads, tile = tiles - 1 - blockIdx.x / heads % tiles, first_row = tile * kRows;
    first_column = int64_t{blockIdx.y} * kColumns;
    cache = head_cache(s, head);
    const int64_t past = cache.past;
    for (int r = threadIdx.x; r < kRows; r += T::kThreads) {
      const QueryRow row = row_at(r);
      const VisibleKeys range = attention::visible_keys(g, s.lengths, past, row.batch, row.i);
      w.low[r] = range.low, w.high[r] = range.high;
    }
    const int64_t blocks = ceil_div(past + g.keys, kBlock), split = blockIdx.x / heads / tiles;
    const int split_begin = static_cast<int>(blocks * split / splits),
              split_end = static_cast<int>(blocks * (split + 1) / splits);
    row_count = static_cast<int>(num::min_i64(kRows, g.rows - first_row));
    partial = (head * g.rows + first_row) * g.seen;
    for (int i = threadIdx.x; splits > 1 && i < (split_end - split_begin) * row_count; i += T::kThreads)
      s.max_sums[2 * (partial + i % row_count * g.seen + split_begin + i / row_count)] = -kInf;
    w.pipeline.init_barriers();
    __syncthreads();
    // Rows of a tile are in the order of their positions.
    all_low = w.low[kRows - 1], all_high = w.high[0];
    const int64_t end = w.high[kRows - 1];
    const int end_block = static_cast<int>(ceil_div(end, kBlock));
    now = {static_cast<int>(w.low[0] / kBlock),
           end_block < split_end ? end_block : split_end,
           static_cast<int>(ceil_div(num::min_i64(g.first, end), kBlock)),
           static_cast<int>(ceil_div(g.d, kStageRows)),
           end_block,
           static_cast<int>(((end - 1) % kBlock + kStageRows) / kStageRows),
           split_begin};
    now.skip_hidden();
    queries = s.queries_t + (head * tiles + tile) * g.d * kRows;
    width = static_cast<int>(num::min_i64(kColumns, g.dv_padded - first_column));
    loading = now;
    for (int i = 0; kBulkCopy && i < threadIdx.x / kWarp; ++i) loading.next();
    for (int i = 0; i < kStages - 1; ++i) load_stage(i);
  }

  // Starts the copies of stage n of the pipeline.
  __device__ __forceinline__ void load_stage(int n) {
    if (!w.pipeline.is_producer(n)) return;
    const int slot = n % kStages;
    if (!loading.done()) {
      const int from = loading.at * kStageRows, after = from - loading.key_stages * kStageRows;
      if (after < 0)
        w.pipeline.template load_async<kBlock>(slot, key_block(s, cache, loading.block) + from * kBlock,
                                               kBlock, static_cast<int>(num::min_i64(kStageRows, g.d - from)),
                                               kBlock, queries + from * kRows);
      else
        w.pipeline.template load_async<kColumns>(
            slot, value_block(s, cache, loading.block) + after * g.dv_padded + first_column, g.dv_padded,
            kStageRows, width, nullptr);
    }
    for (int i = 0; i < w.pipeline.kProducers; ++i) loading.next();
    w.pipeline.commit();
  }
  // Waits for the next stage, starts the copies of a further one, and returns the slot of the next.
  __device__ __forceinline__ int next_slot() {
    const int slot = stage % kStages;
    w.pipeline.wait(stage);
    load_stage(stage++ + kStages - 1);
    return slot;
  }

  // attention.3: c = the scores of the block; returns which are hidden, a bit each.
  __device__ __forceinline__ uint64_t score_block(F (&c)[8][8]) {
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int i = 0; i < 8; ++i) c[r][i] = zero();
    const int64_t base = int64_t{now.block} * kBlock;
    for (int k = 0; k < now.key_stages; ++k) {
      const int slot = next_slot();
      const float *left = w.pipeline.left[slot] + 4 * ty, *right = w.pipeline.right[slot] + 4 * tx;
      const int n = num::min_i64(kStageRows, g.d - k * kStageRows);
      int i = 0;
#pragma unroll 1
      for (; i + kUnroll <= n; i += kUnroll)
#pragma unroll
        for (int j = i; j < i + kUnroll; ++j) mma<kHalf>(left + j * kRows, right + j * kBlock, c);
      for (; i < n; ++i) mma<kHalf>(left + i * kRows, right + i * kBlock, c);
    }
    // attention.3: the one chain of a contraction with D <= 256 joins +0 (contraction.3).
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int i = 0; i < 8; ++i) c[r][i] = mul(add(zero(), c[r][i]), set1(g.scale));
    const bool plain =
        g.plain_scores && (base >= all_low || base + kBlock <= g.first) && base + kBlock <= all_high;
    uint64_t hidden = 0;
    if (!plain) {
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const int at = own_row(r);
        const ScoreMask of(s, {w.low[at], w.high[at], g.first}, g.mask || g.slopes ? row_at(at) : QueryRow{},
                           cache.past, now.block);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (!of.score(s, now.block, i * kKeyThreads + tx, c[r][i]))
            c[r][i] = set1(-kInf), hidden |= uint64_t{1} << (8 * r + i);
      }
    }
    return hidden;
  }

  // attention.5 to attention.7: scores -> weights, in c and in shared memory. my_max, my_sum: those
  // of this thread's row tx % 8. The weight of a hidden key is +0 in the sum by itself, or the sum
  // does not matter.
  __device__ __forceinline__ void weigh_block(F (&c)[8][8], float& my_max, float& my_sum) {
    my_max = 0, my_sum = 0;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      float m = c[r][0].v, p[8];
#pragma unroll
      for (int i = 1; i < 8; ++i) m = max_nan(m, c[r][i].v);
#pragma unroll
      for (int step = kKeyThreads / 2; step; step /= 2) m = max_nan(m, __shfl_xor_sync(kFullWarp, m, step));
#pragma unroll
      for (int i = 0; i < 8; ++i) c[r][i] = exp_stored(sub(c[r][i], set1(m))), p[i] = c[r][i].v;
      const float sum = num::INVAR_ISA_NS::block_sum<kKeyThreads>(p);
      if (tx % 8 == r) my_max = m, my_sum = sum;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float4*>(&w.p[i * kKeyThreads + tx][4 * ty + half * kHalf]) =
            make_float4(c[4 * half][i].v, c[4 * half + 1][i].v, c[4 * half + 2][i].v, c[4 * half + 3][i].v);
  }

  // attention.8: ob = the weights times the values of the block.
  __device__ __forceinline__ void multiply_values(uint64_t hidden, int value_stages, F (&ob)[8][kOwn]) {
    const bool some_hidden = __any_sync(kFullWarp, hidden != 0);
    for (int r = 0; hidden && r < 8; ++r)
      for (int i = 0; i < 8; ++i)
        if (hidden >> (8 * r + i) & 1) w.p[i * kKeyThreads + tx][own_row(r)] = -1.0f;
    __syncwarp();
    for (int k = 0; k < value_stages; ++k) {
      const int slot = next_slot();
      const float *left = &w.p[k * kStageRows][4 * ty], *right = w.pipeline.right[slot] + 4 * tx;
      if (!some_hidden) {
#pragma unroll 1
        for (int i = 0; i < kStageRows; i += kUnroll)
#pragma unroll
          for (int j = i; j < i + kUnroll; ++j)
            mma<kHalf>(left + j * T::kWeightStep, right + j * kColumns, ob);
      } else {
#pragma unroll 2
        for (int i = 0; i < kStageRows; ++i)
          mma_masked<kHalf>(left + i * T::kWeightStep, right + i * kColumns, ob);
      }
    }
  }

  // Stores the block's partial results for combine_splits_kernel.
  __device__ __forceinline__ void store_partials(const F (&ob)[8][kOwn], float my_max, float my_sum) const {
    const int my_row = 4 * ty + tx % 4 + tx / 4 * kHalf;
    if (tx < 8 && my_row < row_count)
      *reinterpret_cast<float2*>(s.max_sums + 2 * (partial + my_row * g.seen + now.block)) =
          make_float2(my_max, my_sum);
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int i = 0; i < kOwn; i += 4) {
        const int row = own_row(r);
        const int64_t column = first_column + 4 * tx + i / 4 * (kBlock / 2);
        if (row < row_count && column < g.dv_padded)
          *reinterpret_cast<float4*>(s.partials + (partial + row * g.seen + now.block) * g.dv_padded +
                                     column) =
              make_float4(ob[r][i].v, ob[r][i + 1].v, ob[r][i + 2].v, ob[r][i + 3].v);
      }
  }

  // attention.17 and attention.10: the sink, and the results.
  __device__ __forceinline__ void store_results(const F (&o)[8][kOwn], OnlineSoftmax& running) const {
    float by_sink = kEmptyBlock;
    if (s.sinks) {
      const int at = 4 * ty + tx % 4 + tx % 8 / 4 * kHalf;
      by_sink = running.join(set1(s.sinks[row_at(at).head]), set1(1.0f));
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const float by = __shfl_sync(kFullWarp, by_sink, r, kKeyThreads);
      const F m = set1(__shfl_sync(kFullWarp, running.m.v, r, kKeyThreads)),
              l = set1(__shfl_sync(kFullWarp, running.l.v, r, kKeyThreads));
      const int64_t row = first_row + own_row(r);
      if (row >= g.rows) continue;
      float* y = s.y + row_index(g, query_row(g, head, row)) * g.dv;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int64_t column = first_column + 4 * tx + i % 4 + i / 4 * (kBlock / 2);
        if (column < g.dv) store(y + column, normalized(fold(by, o[r][i], zero()), m, l));
      }
    }
  }
};

// splits: how many thread blocks share the key blocks of a tile. If there are several, they leave
// partial results for combine_splits_kernel.
template <int kRows, int kColumns>
__global__ void __launch_bounds__(Tile<kRows, kColumns>::kThreads, 2)
    prefill_tile_kernel(const __grid_constant__ AttentionParams s, int tiles, int splits) {
  constexpr int kOwn = Tile<kRows, kColumns>::kOwn;
  extern __shared__ __align__(16) unsigned char bytes[];
  PrefillTile<kRows, kColumns> t(s, *reinterpret_cast<typename Tile<kRows, kColumns>::Shared*>(bytes), tiles,
                                 splits);
  F o[8][kOwn] = {}, c[8][8];
  OnlineSoftmax running;  // of this thread's row tx % 8
  while (!t.now.done()) {
    const int value_stages = t.now.stages() - t.now.key_stages;
    const uint64_t hidden = t.score_block(c);
    float my_max, my_sum;
    t.weigh_block(c, my_max, my_sum);
    F ob[8][kOwn] = {};
    t.multiply_values(hidden, value_stages, ob);
    if (splits > 1) {
      t.store_partials(ob, my_max, my_sum);
    } else {  // attention.9
      const float my_factor = running.join(set1(my_max), set1(my_sum));
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const float by = __shfl_sync(kFullWarp, my_factor, r, kKeyThreads);
#pragma unroll
        for (int i = 0; i < kOwn; ++i) o[r][i] = fold(by, o[r][i], ob[r][i]);
      }
    }
    ++t.now.block, t.now.skip_hidden();
  }
  if (splits == 1) t.store_results(o, running);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
