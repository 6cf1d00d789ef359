// attention_exact16 for few rows of a key head on Hopper, which are one group; a few new keys are
// appended first (attention.2). Thread blocks go over key blocks, which
// bulk copies bring to shared memory: keys while the values of the block before are used, values
// while scores are computed. Keys and value columns are the rows of the left operand, queries and
// weights the columns of the right one; what is summed over may be in any order, so each thread
// reads 16 bytes of a row at a time. Each of the four warps has 32 keys, then 32 value columns.
#pragma once
#include "ops/attention/cuda/exact16/append.cuh"
#include "ops/attention/cuda/exact16/block_product.cuh"
#include "ops/attention/cuda/exact16/decode_rows.cuh"
#include "ops/attention/cuda/exact16/hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kSideRows = 8;                   // of a right operand: a tile of query rows
constexpr int kSideBytes = kTileBytes + 16;    // of a row of queries or weights: another bank
constexpr int kDecodeTileKeys = 2 * kMmaRows;  // of a warp
constexpr int kDecodePlane = kBlock * kTileBytes;
constexpr int kSpans = kTileBytes / 64;  // of 64 bytes: two steps of 32

// kTiles: of 8 rows.
template <int kTiles>
struct ExactDecodeHopperSmem {
  alignas(128) float powers[kBlock];
  int32_t reaches[kBlock];  // follows the powers, as in the cache
  alignas(16) int8_t queries[2][kTiles * kSideRows][kSideBytes];
  alignas(16) int8_t weights[2][kTiles * kSideRows][kSideBytes];
  float factors[kTiles * kSideRows];
  float m[kDecodeWarps][kTiles * kSideRows];
  int32_t sum[kDecodeWarps][kTiles * kSideRows], e[kDecodeWarps][kTiles * kSideRows];
  uint64_t keys_arrived, values_arrived;
  alignas(128) int8_t planes[2][kDecodePlane];  // of keys; of values too if thread blocks have whole rows
  int8_t values[2][kDecodePlane];
};
// whole: values take the place of keys, so that more thread blocks fit.
template <int kTiles, bool kWhole>
constexpr size_t kDecodeHopperShared = sizeof(ExactDecodeHopperSmem<kTiles>) -
                                       (kWhole ? 2 * kDecodePlane : 0);
template <int kTiles, bool kWhole>
constexpr int kDecodeHopperBlocks = (kTiles == 1 ? 3 : 2) + (kWhole ? 1 : 0);  // of a multiprocessor

// 16 rows of 64 bytes from `from` on, of which this thread has 16 bytes of two: left operands of
// two steps.
__device__ __forceinline__ void load_left(const int8_t* row, const int8_t* next, uint32_t (&a)[2][4]) {
  const uint4 x = *reinterpret_cast<const uint4*>(row), y = *reinterpret_cast<const uint4*>(next);
  a[0][0] = x.x, a[0][1] = y.x, a[0][2] = x.y, a[0][3] = y.y;
  a[1][0] = x.z, a[1][1] = y.z, a[1][2] = x.w, a[1][3] = y.w;
}

// Some consecutive key blocks of a group of rows of a key head. kWhole: all of the rows', whose
// results it stores; otherwise partial results.
template <int kTiles, bool kWhole>
struct ExactDecodeRun {
  const AttentionParams& s;
  ExactDecodeHopperSmem<kTiles>& smem;
  ExactLayout at;
  int64_t head, first, past;
  int count;            // rows
  uint32_t parity = 0;  // of the next key block's arrival
  int lane, warp, g, t;
  VisibleKeys low, high;  // of the first and of the last row
  float o[kTiles][2][4];  // of value columns 32 warp + 16 i + g, and 8 more; rows 2 t and 2 t + 1
  OnlineSoftmax running[kTiles][2];
  bool ordinary = true;

  __device__ ExactDecodeRun(const AttentionParams& s, ExactDecodeHopperSmem<kTiles>& smem)
      : s(s),
        smem(smem),
        at(s.g),
        lane(threadIdx.x % kWarp),
        warp(__shfl_sync(kFullWarp, static_cast<int>(threadIdx.x / kWarp), 0)),
        g(lane / 4),
        t(lane % 4) {}

  __device__ void begin(int64_t of_head, int64_t group) {
    const Geometry& geometry = s.g;
    head = of_head, first = group * kTiles * kSideRows;
    past = s.sequences[head / geometry.kv_heads].past;
    count = static_cast<int>(num::min_i64(kTiles * kSideRows, geometry.rows - first));
    low = sight(0), high = sight(count - 1);
    ordinary = true;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 8; ++i) o[tile][i / 4][i % 4] = 0, running[tile][i / 4] = {};
  }
  // Rounds the queries.
  __device__ void load_queries() const {
    const Geometry& geometry = s.g;
    const float scale = fabsf(geometry.scale);
    const bool usual = scale >= 0x1p-30f && scale <= 0x1p20f;
    for (int r = warp; r < kTiles * kSideRows; r += kDecodeWarps) {
      const bool exists = r < count;
      const float* from =
          s.q + row_index(geometry, query_row(geometry, head, first + (exists ? r : 0))) * geometry.d;
      float x[4];
      uint32_t largest = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = exists && 4 * lane + i < geometry.d ? from[4 * lane + i] : 0.0f;
        largest = umax(largest, magnitude(x[i]));
      }
      const int32_t e = scale_of_largest(largest_of_warp(largest));
      const Quantizer by(e);
      const int32_t q[4] = {by.integer(x[0]), by.integer(x[1]), by.integer(x[2]), by.integer(x[3])};
      const PlaneBytes bytes = plane_bytes(q);
      *reinterpret_cast<uint32_t*>(smem.queries[0][r] + 4 * lane) = bytes.high;
      *reinterpret_cast<uint32_t*>(smem.queries[1][r] + 4 * lane) = bytes.low;
      if (lane == 0) smem.factors[r] = usual ? geometry.scale * usual_power(e) : __uint_as_float(0x7fc00000);
    }
    __syncthreads();
  }
  __device__ VisibleKeys sight(int r) const {
    const QueryRow row = query_row(s.g, head, first + r);
    return attention::visible_keys(s.g, s.lengths, past, row.batch, row.i);
  }
  __device__ bool sees(int64_t block) const {
    const int64_t base = block * kBlock;
    return base < high.high && !(base + kBlock <= low.low && base >= s.g.first);
  }
  __device__ int64_t next(int64_t block, int64_t end) const {
    while (block < end && !sees(block)) ++block;
    return block;
  }

  __device__ void copy_keys(int64_t block) const {
    if (threadIdx.x) return;
    const ExactCacheBlock own = exact_cache_block(s, at, head, block);
    const auto keys = static_cast<uint32_t>(num::min_i64(kBlock, past + s.g.keys - block * kBlock) * at.dk);
    const uint32_t arrived = shared_address(&smem.keys_arrived);
    expect_bytes(arrived, 2 * keys + 2 * kBlock * 4);
    for (int plane = 0; plane < 2; ++plane)
      copy_bulk(shared_address(smem.planes[plane]), own.keys + plane * at.key_plane(), keys, arrived);
    copy_bulk(shared_address(smem.powers), own.key_powers, 2 * kBlock * 4, arrived);
  }
  __device__ int8_t* values(int plane) const {
    return kWhole ? smem.planes[plane] : smem.values[plane];
  }
  __device__ void copy_values(int64_t block) const {
    if (threadIdx.x) return;
    const ExactCacheBlock own = exact_cache_block(s, at, head, block);
    const auto bytes = static_cast<uint32_t>(at.value_plane());
    const uint32_t arrived = shared_address(&smem.values_arrived);
    expect_bytes(arrived, 2 * bytes);
    for (int plane = 0; plane < 2; ++plane)
      copy_bulk(shared_address(values(plane)), own.values + plane * bytes, bytes, arrived);
  }

  // x[tile][4 row + j]: the scores of key 4 g + j of the warp's with row 2 t + row.
  __device__ __forceinline__ void score(float (&x)[kTiles][8]) const {
    PlaneSums sums[kTiles][2];
    const int8_t* keys = smem.planes[0] + (warp * kDecodeTileKeys + 4 * g) * at.dk + 16 * t;
#pragma unroll
    for (int span = 0; span < kSpans; ++span) {
      if (64 * span >= at.dk) break;
      uint4 qh[kTiles], ql[kTiles];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        qh[tile] =
            *reinterpret_cast<const uint4*>(smem.queries[0][tile * kSideRows + g] + 64 * span + 16 * t);
        ql[tile] =
            *reinterpret_cast<const uint4*>(smem.queries[1][tile * kSideRows + g] + 64 * span + 16 * t);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int8_t* row = keys + 2 * i * at.dk + 64 * span;
        uint32_t h[2][4], l[2][4];
        load_left(row, row + at.dk, h);
        load_left(row + kDecodePlane, row + kDecodePlane + at.dk, l);
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          sums[tile][i].template add<false>(h[0], l[0], qh[tile].x, qh[tile].y, ql[tile].x, ql[tile].y);
          sums[tile][i].template add<false>(h[1], l[1], qh[tile].z, qh[tile].w, ql[tile].z, ql[tile].w);
        }
      }
    }
    const float4 of_keys = *reinterpret_cast<const float4*>(smem.powers + warp * kDecodeTileKeys + 4 * g);
    const float power[4] = {of_keys.x, of_keys.y, of_keys.z, of_keys.w};
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int row = 0; row < 2; ++row)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          x[tile][4 * row + j] = sums[tile][j / 2].rounded(j % 2 * 2 + row) * power[j] *
                                 smem.factors[tile * kSideRows + 2 * t + row];
  }
  // What attention.13 to attention.16 and attention.19 do to scores; -inf of hidden keys.
  __device__ __forceinline__ void mask(int64_t block, float (&x)[kTiles][8]) const {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int r = i / 2 * kSideRows + 2 * t + i % 2;
      const QueryRow row = query_row(s.g, head, first + (r < count ? r : count - 1));
      const ScoreMask of(s, attention::visible_keys(s.g, s.lengths, past, row.batch, row.i), row, past,
                         block);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& at_key = x[i / 2][i % 2 * 4 + j];
        at_key = masked_score(s, of, block, warp * kDecodeTileKeys + 4 * g + j, at_key);
      }
    }
  }
  template <class T, class Join>
  __device__ __forceinline__ static T over_keys(T x, Join join) {  // of a row, in a warp
#pragma unroll
    for (int step = 4; step < kWarp; step *= 2) x = join(x, __shfl_xor_sync(kFullWarp, x, step));
    return x;
  }
  // Weights of a block -> shared memory. Scores -> maximum, sum and E of rows 2 t and 2 t + 1.
  __device__ __forceinline__ void weigh(int64_t block, float (&x)[kTiles][8],
                                        BlockSums (&sums)[kTiles]) const {
    const auto larger = [](float a, float b) { return max_nan(a, b); };
    const auto most = [](int32_t a, int32_t b) { return max(a, b); };
    const auto plus = [](int32_t a, int32_t b) { return a + b; };
    const int4 of_keys = *reinterpret_cast<const int4*>(smem.reaches + warp * kDecodeTileKeys + 4 * g);
    const int32_t reach[4] = {of_keys.x, of_keys.y, of_keys.z, of_keys.w};
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const float* of = x[i / 2] + i % 2 * 4;
      const float m = over_keys(max_nan(max_nan(of[0], of[1]), max_nan(of[2], of[3])), larger);
      if (g == 0) smem.m[warp][i / 2 * kSideRows + 2 * t + i % 2] = m;
    }
    __syncthreads();  // all have used the keys
    if constexpr (kWhole) copy_values(block);
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int r = i / 2 * kSideRows + 2 * t + i % 2;
      float m = smem.m[0][r];
#pragma unroll
      for (int w = 1; w < kDecodeWarps; ++w) m = max_nan(m, smem.m[w][r]);
      int32_t sum = 0, e = kHiddenKey;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& at_key = x[i / 2][i % 2 * 4 + j];
        const bool hidden = at_key == -kInf;
        const ExactWeight w = exact_weight(at_key - m);
        sum += w.fine();
        e = max(e, hidden ? kHiddenKey : w.reach(reach[j]));
        at_key = hidden ? 0.0f : w.p();
      }
      sum = over_keys(sum, plus), e = over_keys(e, most);
      if (g == 0) smem.sum[warp][r] = sum, smem.e[warp][r] = e;
      sums[i / 2].m[i % 2] = m;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int r = i / 2 * kSideRows + 2 * t + i % 2;
      int32_t sum = 0, e = kHiddenKey;
#pragma unroll
      for (int w = 0; w < kDecodeWarps; ++w) sum += smem.sum[w][r], e = max(e, smem.e[w][r]);
      sums[i / 2].sum[i % 2] = sum, sums[i / 2].e[i % 2] = e;
      uint32_t w[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        // As ExactBlockProduct::pack_weights(); 128 last places more, for a signed low plane.
        const float p = x[i / 2][i % 2 * 4 + j];
        const int32_t by = static_cast<int32_t>(static_cast<uint32_t>(reach[j] - e) << 23);
        w[j] = __float_as_uint(__int_as_float(p == 0 ? 0 : max(__float_as_int(p) + by, 0)) + 768.0078125f);
      }
      const PlaneBytes bytes = weight_bytes(w);
      const int to = warp * kDecodeTileKeys + 4 * g;
      *reinterpret_cast<uint32_t*>(smem.weights[0][r] + to) = bytes.high;
      *reinterpret_cast<uint32_t*>(smem.weights[1][r] + to) = bytes.low ^ 0x80808080;
    }
    __syncthreads();
  }
  // O_b of the warp's columns -> put(tile, i, element of a tile of 16 columns, O_b).
  template <class Put>
  __device__ __forceinline__ void multiply(const BlockSums (&sums)[kTiles], Put put) const {
    PlaneSums of[kTiles][2];
#pragma unroll
    for (int span = 0; span < kSpans; ++span) {
      uint4 wh[kTiles], wl[kTiles];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        wh[tile] =
            *reinterpret_cast<const uint4*>(smem.weights[0][tile * kSideRows + g] + 64 * span + 16 * t);
        wl[tile] =
            *reinterpret_cast<const uint4*>(smem.weights[1][tile * kSideRows + g] + 64 * span + 16 * t);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (warp * 32 + 16 * i >= at.dvr) break;
        const int8_t* column = values(0) + (warp * 32 + 16 * i + g) * kBlock + 64 * span + 16 * t;
        uint32_t h[2][4], l[2][4];
        load_left(column, column + 8 * kBlock, h);
        load_left(column + kDecodePlane, column + kDecodePlane + 8 * kBlock, l);
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          of[tile][i].template add<false>(h[0], l[0], wh[tile].x, wh[tile].y, wl[tile].x, wl[tile].y);
          of[tile][i].template add<false>(h[1], l[1], wh[tile].z, wh[tile].w, wl[tile].z, wl[tile].w);
        }
      }
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 8; ++i)
        put(tile, i / 4, i % 4,
            set1(of[tile][i / 4].rounded(i % 4) * num::exact16_power(sums[tile].e[i % 2] - 14)));
  }

  // attention.2 of what is new in blocks [block, end), which no other thread block reads.
  __device__ void append(int64_t block, int64_t end) const {
    const int64_t until = num::min_i64(end * kBlock - past, s.g.keys);
    for (int64_t i = (block * kBlock > past ? block * kBlock - past : 0) + warp; i < until; i += kDecodeWarps)
      append_row(s, at, head, i);
    asm volatile("fence.proxy.async;" ::: "memory");  // bulk copies read it behind the next barrier
  }
  // Blocks [block, end).
  __device__ void run(int64_t block, int64_t end) {
    const Geometry& geometry = s.g;
    const int64_t to = (head * geometry.rows + first) * geometry.seen;
    const auto unseen = [&](int64_t from, int64_t until) {
      if constexpr (!kWhole)
        for (; from < until; ++from)
          if (threadIdx.x < count) s.max_sums[2 * (to + threadIdx.x * geometry.seen + from)] = -kInf;
    };
    int64_t now = next(block, end);
    unseen(block, now);
    const auto start = [&] {
      if (now < end) copy_keys(now);
      if (!kWhole && now < end) copy_values(now);
    };
    const bool appends = geometry.keys < kFewExactKeys, old = !appends || (now + 1) * kBlock <= past;
    if (old) start();
    if (appends) append(block, end);
    load_queries();
    if (!old) start();
    while (now < end) {
      const int64_t after = next(now + 1, end), base = now * kBlock;
      unseen(now + 1, after);
      float x[kTiles][8];
      BlockSums sums[kTiles];
      wait_barrier(shared_address(&smem.keys_arrived), parity);
      score(x);
      if (!(geometry.plain_scores && base + kBlock <= low.high &&
            (base >= high.low || base + kBlock <= geometry.first)))
        mask(now, x);
      weigh(now, x, sums);
      if (!kWhole && after < end) copy_keys(after);
      bool usual = true;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) usual = sums[tile].ordinary() && usual;
      wait_barrier(shared_address(&smem.values_arrived), parity);
      if constexpr (kWhole) {
        ordinary = ordinary && usual;
        fold_in(sums);
      } else if (usual) {
        store_partial(sums, to + now);
      } else {  // all warps, as each has all rows
        exact_decode_rows(s, ExactLayout(geometry), head, first, count, now, to + now);
      }
      __syncthreads();  // all have used the values and the weights
      if (after < end) kWhole ? copy_keys(after) : copy_values(after);
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
    multiply(sums, [&](int tile, int i, int j, F ob) {
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
    multiply(sums, [&](int tile, int i, int j, F ob) {
      const int r = row_of(tile, j % 2), column = warp * 32 + 16 * i + g + j / 2 * 8;
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
      const QueryRow row = query_row(geometry, head, first + r);
      OnlineSoftmax& all = running[i / 2][i % 2];
      const float by = s.sinks ? all.join(set1(s.sinks[row.head]), set1(1.0f)) : kEmptyBlock;
      float* y = s.y + row_index(geometry, row) * geometry.dv;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = warp * 32 + j / 2 * 16 + g + j % 2 * 8;
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
  if (threadIdx.x == 0) {
    init_barrier(shared_address(&smem.keys_arrived), 1);
    init_barrier(shared_address(&smem.values_arrived), 1);
  }
  __syncthreads();
  trigger_and_wait();
  const int64_t groups = ceil_div(g.rows, kTiles * kSideRows);
  ExactDecodeRun<kTiles, kWhole> own(s, smem);
  if constexpr (kWhole) {
    own.begin(blockIdx.x / groups, blockIdx.x % groups);
    own.run(0, ceil_div(own.past + g.keys, kBlock));
    own.finish();
  } else {
    const int64_t blocks = ceil_div(*s.past + g.keys, kBlock), units = g.batch * g.kv_heads * groups * blocks,
                  end = units * (blockIdx.x + 1) / gridDim.x;
    for (int64_t unit = units * blockIdx.x / gridDim.x; unit < end;) {
      const int64_t block = unit % blocks, until = num::min_i64(blocks, block + end - unit);
      own.begin(unit / blocks / groups, unit / blocks % groups);
      own.run(block, num::min_i64(until, ceil_div(own.past + g.keys, kBlock)));
      unit += until - block;
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
