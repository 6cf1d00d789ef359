// Tiles of kRows query rows of a key head, over the key blocks that any of them sees: scores and results are matrix products
// whose tiles lie in registers, 8 x 8 of a thread; what they read comes through a ring in shared memory.
#pragma once
#include "ops/attention/cuda/pipeline.cuh"
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int kRows, int kColumns>
struct Tile {
  static constexpr int kOwn = kColumns / kRun;  // value columns of a thread
  static constexpr int kThreads = kRows / 8 * kRun;
  static constexpr int kWeightStep = kRows + 4;  // floats between the weights of two keys: not in one bank
  struct Shared {
    Ring<kThreads, kBlock, kRows> ring;        // keys with queries, or values
    alignas(16) float p[kBlock][kWeightStep];  // weights; negative: hidden
    int64_t low[kRows], high[kRows];           // what rows see
  };
};

constexpr int kUnroll = 8;  // the code of more does not stay near the processor

// Where a tile stands among its stages: of each block seen, ascending, its keys and then its values.
struct Place {
  int low, high, first;  // blocks: from low on, and before first, up to high
  int keys, end,
      last;  // stages of a block's keys; where blocks end that are seen at all, and stages of the last one's values
  int block, at = 0;

  __device__ void enter() {
    if (block < low && block >= first) block = low;
  }
  __device__ bool done() const { return block >= high; }
  __device__ void next() {
    if (!done() && ++at == all()) ++block, at = 0, enter();
  }
  __device__ int all() const { return keys + (block + 1 < end ? kBlock / kDepth : last); }
};

// c[r][i] += left row r times right column i, 4 of each and 4 more behind kHalf and 64 (contraction.2, attention.8).
template <int kHalf, int kOwn>
__device__ inline void multiply(const float* left, const float* right, F (&c)[8][kOwn]) {
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
// The same, but without rows whose weight says that the key is hidden.
template <int kHalf, int kOwn>
__device__ inline void multiply_seen(const float* left, const float* right, F (&c)[8][kOwn]) {
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

// runs: how many thread blocks share the key blocks of a tile. More than one leave parts and marks for fold_kernel.
template <int kRows, int kColumns>
__global__ void __launch_bounds__(Tile<kRows, kColumns>::kThreads, 2)
    tile_kernel(const __grid_constant__ Step s, int tiles, int runs) {
  using T = Tile<kRows, kColumns>;
  constexpr int kHalf = kRows / 2, kOwn = T::kOwn;  // a thread has 4 rows of each half
  extern __shared__ __align__(16) unsigned char bytes[];
  auto& w = *reinterpret_cast<typename T::Shared*>(bytes);
  const Geometry& g = s.g;
  const int tx = threadIdx.x % kRun, ty = threadIdx.x / kRun;
  const int64_t heads = g.batch * g.kv_heads;
  // The longest tiles first, all heads at the same keys.
  const int64_t head = blockIdx.x % heads, tile = tiles - 1 - blockIdx.x / heads % tiles,
                first_row = tile * kRows;
  const int64_t first_column = int64_t{blockIdx.y} * kColumns;
  const Memory memory = memory_of(s, head);
  const int64_t past = memory.past;
  auto row_at = [&](int r) { return row_of(g, head, num::min_i64(first_row + r, g.rows - 1)); };
  for (int r = threadIdx.x; r < kRows; r += T::kThreads) {
    const Row row = row_at(r);
    const Sight sight = attention::sight(g, s.lengths, past, row.batch, row.i);
    w.low[r] = sight.low, w.high[r] = sight.high;
  }
  const int64_t blocks = ceil_div(past + g.keys, kBlock), run_index = blockIdx.x / heads / tiles;
  const int run_begin = static_cast<int>(blocks * run_index / runs),
            run_end = static_cast<int>(blocks * (run_index + 1) / runs);
  const int row_count = static_cast<int>(num::min_i64(kRows, g.rows - first_row));
  const int64_t part = (head * g.rows + first_row) * g.seen;
  for (int i = threadIdx.x; runs > 1 && i < (run_end - run_begin) * row_count; i += T::kThreads)
    s.marks[2 * (part + i % row_count * g.seen + run_begin + i / row_count)] = -kInf;
  w.ring.open();
  __syncthreads();
  // Rows of a tile are in the order of their positions.
  const int64_t all_low = w.low[kRows - 1], all_high = w.high[0], end = w.high[kRows - 1];
  const int end_block = static_cast<int>(ceil_div(end, kBlock));
  Place now{static_cast<int>(w.low[0] / kBlock),
            end_block < run_end ? end_block : run_end,
            static_cast<int>(ceil_div(num::min_i64(g.first, end), kBlock)),
            static_cast<int>(ceil_div(g.d, kDepth)),
            end_block,
            static_cast<int>(((end - 1) % kBlock + kDepth) / kDepth),
            run_begin};
  now.enter();

  const float* const queries = s.queries + (head * tiles + tile) * g.d * kRows;
  const int width = static_cast<int>(num::min_i64(kColumns, g.dv_padded - first_column));
  Place ahead = now;  // what this thread asks for next
  for (int i = 0; kEngine && i < threadIdx.x / kWarp; ++i) ahead.next();
  auto fetch = [&](int stage) {
    if (!w.ring.fetches(stage)) return;
    const int slot = stage % kStages;
    if (!ahead.done()) {
      const int from = ahead.at * kDepth, after = from - ahead.keys * kDepth;
      if (after < 0)
        w.ring.template fetch<kBlock>(slot, keys_of(s, memory, ahead.block) + from * kBlock, kBlock,
                                      static_cast<int>(num::min_i64(kDepth, g.d - from)), kBlock,
                                      queries + from * kRows);
      else
        w.ring.template fetch<kColumns>(
            slot, values_of(s, memory, ahead.block) + after * g.dv_padded + first_column, g.dv_padded, kDepth,
            width, nullptr);
    }
    for (int i = 0; i < w.ring.kFetchers; ++i) ahead.next();
    w.ring.fetched();
  };
  for (int i = 0; i < kStages - 1; ++i) fetch(i);
  int stage = 0;
  auto next = [&] {  // the slot of the stage that is used next
    const int slot = stage % kStages;
    w.ring.next(stage);
    fetch(stage++ + kStages - 1);
    return slot;
  };

  F o[8][kOwn] = {}, c[8][8];
  Folded folded;  // of row tx % 8 of this thread's
  while (!now.done()) {
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int i = 0; i < 8; ++i) c[r][i] = zero();
    const int64_t base = int64_t{now.block} * kBlock;
    const int value_stages = now.all() - now.keys;
    for (int k = 0; k < now.keys; ++k) {
      const int slot = next();
      const float *left = w.ring.left[slot] + 4 * ty, *right = w.ring.right[slot] + 4 * tx;
      const int n = num::min_i64(kDepth, g.d - k * kDepth);
      int i = 0;
#pragma unroll 1
      for (; i + kUnroll <= n; i += kUnroll)
#pragma unroll
        for (int j = i; j < i + kUnroll; ++j) multiply<kHalf>(left + j * kRows, right + j * kBlock, c);
      for (; i < n; ++i) multiply<kHalf>(left + i * kRows, right + i * kBlock, c);
    }
    // attention.3: the one chain of a contraction with D <= 256 joins +0 (contraction.3).
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int i = 0; i < 8; ++i) c[r][i] = mul(add(zero(), c[r][i]), set1(g.scale));
    const bool plain = !g.mask && g.softcap == 0 && (base >= all_low || base + kBlock <= g.first) &&
                       base + kBlock <= all_high;
    uint64_t hidden = 0;
    if (!plain) {
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const int at = 4 * ty + r % 4 + r / 4 * kHalf;
        const Scores of(s, {w.low[at], w.high[at], g.first}, g.mask ? row_at(at) : Row{}, now.block);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (!of.score(s, now.block, i * kRun + tx, c[r][i]))
            c[r][i] = set1(-kInf), hidden |= uint64_t{1} << (8 * r + i);
      }
    }
    // attention.5 to attention.7. The weight of a hidden key is +0 in the sum by itself, or the sum does not matter.
    float my_max = 0, my_sum = 0;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      float m = c[r][0].v, p[8];
#pragma unroll
      for (int i = 1; i < 8; ++i) m = most(m, c[r][i].v);
#pragma unroll
      for (int step = kRun / 2; step; step /= 2) m = most(m, __shfl_xor_sync(kAllLanes, m, step));
#pragma unroll
      for (int i = 0; i < 8; ++i) c[r][i] = exp_stored(sub(c[r][i], set1(m))), p[i] = c[r][i].v;
      const float sum = num::INVAR_ISA_NS::block_sum<kRun>(p);
      if (tx % 8 == r) my_max = m, my_sum = sum;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float4*>(&w.p[i * kRun + tx][4 * ty + half * kHalf]) =
            make_float4(c[4 * half][i].v, c[4 * half + 1][i].v, c[4 * half + 2][i].v, c[4 * half + 3][i].v);
    const bool some_hidden = __any_sync(kAllLanes, hidden != 0);
    for (int r = 0; hidden && r < 8; ++r)
      for (int i = 0; i < 8; ++i)
        if (hidden >> (8 * r + i) & 1) w.p[i * kRun + tx][4 * ty + r % 4 + r / 4 * kHalf] = -1.0f;
    __syncwarp();
    F ob[8][kOwn] = {};
    for (int k = 0; k < value_stages; ++k) {
      const int slot = next();
      const float *left = &w.p[k * kDepth][4 * ty], *right = w.ring.right[slot] + 4 * tx;
      if (!some_hidden) {
#pragma unroll 1
        for (int i = 0; i < kDepth; i += kUnroll)
#pragma unroll
          for (int j = i; j < i + kUnroll; ++j)
            multiply<kHalf>(left + j * T::kWeightStep, right + j * kColumns, ob);
      } else {
#pragma unroll 2
        for (int i = 0; i < kDepth; ++i)
          multiply_seen<kHalf>(left + i * T::kWeightStep, right + i * kColumns, ob);
      }
    }
    if (runs > 1) {
      const int my_row = 4 * ty + tx % 4 + tx / 4 * kHalf;
      if (tx < 8 && my_row < row_count)
        *reinterpret_cast<float2*>(s.marks + 2 * (part + my_row * g.seen + now.block)) =
            make_float2(my_max, my_sum);
#pragma unroll
      for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int i = 0; i < kOwn; i += 4) {
          const int row = 4 * ty + r % 4 + r / 4 * kHalf;
          const int64_t column = first_column + 4 * tx + i / 4 * (kBlock / 2);
          if (row < row_count && column < g.dv_padded)
            *reinterpret_cast<float4*>(s.parts + (part + row * g.seen + now.block) * g.dv_padded + column) =
                make_float4(ob[r][i].v, ob[r][i + 1].v, ob[r][i + 2].v, ob[r][i + 3].v);
        }
    } else {
      const float my_factor = folded.join(set1(my_max), set1(my_sum));
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const float by = __shfl_sync(kAllLanes, my_factor, r, kRun);
#pragma unroll
        for (int i = 0; i < kOwn; ++i) o[r][i] = fold(by, o[r][i], ob[r][i]);
      }
    }
    ++now.block, now.enter();
  }

  if (runs > 1) return;
  float by_sink = kNothing;
  if (s.sinks) {
    const int at = 4 * ty + tx % 4 + tx % 8 / 4 * kHalf;
    by_sink = folded.join(set1(s.sinks[row_at(at).head]), set1(1.0f));
  }
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const float by = __shfl_sync(kAllLanes, by_sink, r, kRun);
    const F m = set1(__shfl_sync(kAllLanes, folded.m.v, r, kRun)),
            l = set1(__shfl_sync(kAllLanes, folded.l.v, r, kRun));
    const int64_t row = first_row + 4 * ty + r % 4 + r / 4 * kHalf;
    if (row >= g.rows) continue;
    float* y = s.y + place(g, row_of(g, head, row)) * g.dv;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int64_t column = first_column + 4 * tx + i % 4 + i / 4 * (kBlock / 2);
      if (column < g.dv) store(y + column, result(fold(by, o[r][i], zero()), m, l));
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
