// A key block of attention_exact16 for few rows of a key head on Hopper. Bulk copies bring it to
// shared memory; a few new keys (attention.2) are written over them, and to the cache. Keys and
// value columns are the rows of the left operand, queries and weights the columns of the right one;
// what is summed over may be in any order, so each thread reads 16 bytes of a row at a time. Each
// warp has as many keys, and then value columns, as others. Positions are of 32 bits: divisions are
// short.
#pragma once
#include "ops/attention/cuda/exact16/append.cuh"
#include "ops/attention/cuda/exact16/block_product.cuh"
#include "ops/attention/cuda/exact16/decode_rows.cuh"
#include "ops/attention/cuda/exact16/hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kSideRows = 8;                 // of a right operand: a tile of query rows
constexpr int kSideBytes = kTileBytes + 16;  // of a row of queries or weights: another bank
constexpr int kDecodePlane = kBlock * kTileBytes;
constexpr int kSpans = kTileBytes / 64;  // of 64 bytes: two steps of 32

// A key block.
struct ExactDecodeStage {
  alignas(128) float powers[kBlock];
  int32_t reaches[kBlock];  // follows the powers, as in the cache
  uint64_t keys_arrived, values_arrived;
  alignas(128) int8_t planes[2][kDecodePlane];  // of keys; of values too if thread blocks have whole rows
  int8_t values[2][kDecodePlane];

  __device__ void init_barriers() {
    init_barrier(shared_address(&keys_arrived), 1), init_barrier(shared_address(&values_arrived), 1);
  }
  __device__ void wait_for_keys(uint32_t parity) { wait_barrier(shared_address(&keys_arrived), parity); }
  __device__ void wait_for_values(uint32_t parity) { wait_barrier(shared_address(&values_arrived), parity); }
};
// What there is of rows. kTiles: of 8 rows.
template <int kTiles, int kWarps = kDecodeWarps>
struct ExactDecodeRows {
  alignas(16) int8_t queries[2][kTiles * kSideRows][kSideBytes];
  alignas(16) int8_t weights[2][kTiles * kSideRows][kSideBytes];
  float factors[kTiles * kSideRows];
  alignas(16) float m[kTiles * kSideRows][kWarps];
  alignas(16) int32_t sum[kTiles * kSideRows][kWarps], e[kTiles * kSideRows][kWarps];
};

// 16 rows of 64 bytes from `from` on, of which this thread has 16 bytes of two: left operands of
// two steps.
__device__ __forceinline__ void load_left(const int8_t* row, const int8_t* next, uint32_t (&a)[2][4]) {
  const uint4 x = *reinterpret_cast<const uint4*>(row), y = *reinterpret_cast<const uint4*>(next);
  a[0][0] = x.x, a[0][1] = y.x, a[0][2] = x.y, a[0][3] = y.y;
  a[1][0] = x.z, a[1][1] = y.z, a[1][2] = x.w, a[1][3] = y.w;
}

// Elements 4 lane ... 4 lane + 3 of a row of a warp; 0 behind its end.
struct LaneElements {
  float x[4];
  __device__ void load(const float* row, int64_t n) {
    const int c = static_cast<int>(threadIdx.x % kWarp) * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = c + i < n ? row[c + i] : 0.0f;
  }
  // The integers, and their scale.
  __device__ PlaneBytes round(int32_t& e) const {
    uint32_t largest = 0;
#pragma unroll
    for (const float v : x) largest = umax(largest, magnitude(v));
    e = scale_of_largest(largest_of_warp(largest));
    const Quantizer by(e);
    const int32_t q[4] = {by.integer(x[0]), by.integer(x[1]), by.integer(x[2]), by.integer(x[3])};
    return plane_bytes(q);
  }
};

// What a thread block has of a group of rows of a key head: a key block at a time. kWhole: values
// take the place of keys.
template <int kTiles, bool kWhole, int kWarps = kDecodeWarps>
struct ExactDecodeBlock {
  // Of a warp: tiles of 16 keys, then of 16 value columns. Of a thread: keys.
  static constexpr int kParts = kBlock / kMmaRows / kWarps, kKeys = 2 * kParts, kWarpKeys = kMmaRows * kParts;
  const AttentionParams& s;
  ExactDecodeRows<kTiles, kWarps>& smem;
  ExactLayout at;
  int64_t head, first, past;
  ExactCache cache;         // of the head
  int batch, kv_head;       // of the head
  int count;                // rows
  int old, total;           // cached positions, and all
  int lane, warp, g, t;     // lane = 4 g + t
  ExactDecodeStage* stage;  // of the key block
  uint32_t parity = 0;      // of its arrival
  // Rows 2 t and 2 t + 1 of a tile see the keys [from, until), and [0, leading) below `until`.
  int from[kTiles][2], until[kTiles][2], leading;
  int least_from, most_from, least_until, most_until;  // of all rows
  LaneElements fresh;                                  // of the first new row that this warp appends

  __device__ ExactDecodeBlock(const AttentionParams& s, ExactDecodeRows<kTiles, kWarps>& smem,
                              ExactDecodeStage* stage)
      : s(s),
        smem(smem),
        at(s.g),
        lane(threadIdx.x % kWarp),
        warp(__shfl_sync(kFullWarp, static_cast<int>(threadIdx.x / kWarp), 0)),
        g(lane / 4),
        t(lane % 4),
        stage(stage) {}

  __device__ void begin(int of_batch, int of_kv_head, int64_t group) {
    const Geometry& geometry = s.g;
    batch = of_batch, kv_head = of_kv_head, head = batch * geometry.kv_heads + kv_head;
    first = group * kTiles * kSideRows;
    count = static_cast<int>(num::min_i64(kTiles * kSideRows, geometry.rows - first));
    cache = ExactCache(s, at, batch, kv_head), past = s.sequences[batch].past;
    old = static_cast<int>(past), total = old + static_cast<int>(geometry.keys);
    for (int r = warp; r < kTiles * kSideRows; r += kWarps)
      if (r >= count) put_query(r, {});
  }
  // Row r of the group.
  __device__ QueryRow row(int r) const {
    const uint32_t at_row = static_cast<uint32_t>(first) + r, group = static_cast<uint32_t>(s.g.group);
    const uint32_t i = at_row / group;
    return {batch, i, static_cast<int64_t>(kv_head * group + (at_row - i * group))};
  }
  __device__ QueryRow existing_row(int r) const { return row(r < count ? r : count - 1); }

  __device__ void find_visible() {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const VisibleKeys keys = attention::visible_keys(s.g, s.lengths, past, batch,
                                                       existing_row(i / 2 * kSideRows + 2 * t + i % 2).i);
      const int low = static_cast<int>(keys.low), high = static_cast<int>(keys.high);
      from[i / 2][i % 2] = low, until[i / 2][i % 2] = high;
      least_from = i ? min(least_from, low) : low, most_from = i ? max(most_from, low) : low;
      least_until = i ? min(least_until, high) : high, most_until = i ? max(most_until, high) : high;
    }
    leading = static_cast<int>(num::min_i64(s.g.first, total));
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      least_from = min(least_from, __shfl_xor_sync(kFullWarp, least_from, step));
      most_from = max(most_from, __shfl_xor_sync(kFullWarp, most_from, step));
      least_until = min(least_until, __shfl_xor_sync(kFullWarp, least_until, step));
      most_until = max(most_until, __shfl_xor_sync(kFullWarp, most_until, step));
    }
  }
  __device__ bool appends() const {
    return s.g.keys < kFewExactKeys;
  }
  // Whether the key blocks are known, and in the cache, before the grids ahead have ended.
  __device__ bool may_start_early() const {
    return appends() && !s.lengths;
  }
  __device__ bool has_new(int block) const {
    return appends() && (block + 1) * kBlock > old;
  }
  // Whether there is something to do for a block.
  __device__ bool has_work(int block) const {
    const int base = block * kBlock;
    return has_new(block) || (base < most_until && (base + kBlock > least_from || base < leading));
  }
  __device__ int next(int block, int end) const {
    while (block < end && !has_work(block)) ++block;
    return block;
  }

  __device__ void put_query(int r, const LaneElements& q) const {
    const float scale = fabsf(s.g.scale);
    int32_t e;
    const PlaneBytes bytes = q.round(e);
    *reinterpret_cast<uint32_t*>(smem.queries[0][r] + 4 * lane) = bytes.high;
    *reinterpret_cast<uint32_t*>(smem.queries[1][r] + 4 * lane) = bytes.low;
    if (lane == 0)
      smem.factors[r] =
          scale >= 0x1p-30f && scale <= 0x1p20f ? s.g.scale * usual_power(e) : __uint_as_float(0x7fc00000);
  }
  __device__ void load_queries() const {
    for (int r = warp; r < count; r += kWarps) {
      LaneElements q;
      q.load(s.q + row_index(s.g, row(r)) * s.g.d, s.g.d);
      put_query(r, q);
    }
  }

  // attention.2 of the new keys and values of a block: jobs 2 i and 2 i + 1 are those of position
  // i, and begin with the warps that have no query.
  __device__ int first_new(int block) const {
    return max(0, block * kBlock - old);
  }
  __device__ int new_jobs(int block) const {
    return 2 * (min(static_cast<int>(s.g.keys), (block + 1) * kBlock - old) - first_new(block));
  }
  __device__ int own_job() const {
    return (warp - count) & (kWarps - 1);
  }
  __device__ void load_new(int block, int job, LaneElements& x) const {
    const Geometry& geometry = s.g;
    const int64_t from = attention::head_row(geometry, batch, first_new(block) + job / 2, kv_head,
                                             geometry.keys, geometry.kv_heads);
    x.load(job % 2 ? s.v + from * geometry.dv : s.k + from * geometry.d, job % 2 ? geometry.dv : geometry.d);
  }
  // Ahead of append(), for `block`.
  __device__ void load_fresh(int block) {
    if (has_new(block) && own_job() < new_jobs(block)) load_new(block, own_job(), fresh);
  }
  // To the cache, and over the copies that have arrived: keys and all scales, values. loaded:
  // whether `fresh` is of this block.
  __device__ void append(int block, bool keys, bool values, bool loaded) const {
    const ExactCacheBlock to = cache.block(at, block);
    const int jobs = new_jobs(block);
    for (int job = own_job(); job < jobs; job += kWarps) {
      if (job % 2 == 0 && !keys) continue;
      LaneElements x = fresh;
      if (!loaded || job != own_job()) load_new(block, job, x);
      int32_t e;
      const PlaneBytes bytes = x.round(e);
      const int j = old + first_new(block) + job / 2 - block * kBlock;
      if (job % 2 == 0)
        append_key(to, j, e, bytes);
      else if (values)
        append_value(to, j, e, bytes);
      if (job % 2 && keys && lane == 0) stage->reaches[j] = usual_reach(e);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // later copies come here, too
  }
  __device__ void append_key(const ExactCacheBlock& to, int j, int32_t e, const PlaneBytes& bytes) const {
    const int64_t own = j * at.dk + 4 * lane;
    if (4 * lane < at.dk) {
      *reinterpret_cast<uint32_t*>(to.keys + own) = bytes.high;
      *reinterpret_cast<uint32_t*>(to.keys + at.key_plane() + own) = bytes.low;
      *reinterpret_cast<uint32_t*>(stage->planes[0] + own) = bytes.high;
      *reinterpret_cast<uint32_t*>(stage->planes[1] + own) = bytes.low;
    }
    if (lane == 0) to.key_scales[j] = e, to.key_powers[j] = stage->powers[j] = usual_power(e);
  }
  __device__ void append_value(const ExactCacheBlock& to, int j, int32_t e, const PlaneBytes& bytes) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int c = 4 * lane + k, own = c * kBlock + j;
      if (c >= s.g.dv) break;
      const auto high = static_cast<int8_t>(bytes.high >> 8 * k),
                 low = static_cast<int8_t>(bytes.low >> 8 * k);
      to.values[own] = values(0)[own] = high, to.values[at.value_plane() + own] = values(1)[own] = low;
    }
    if (lane == 0) append_value_scale(to, j, e);
  }

  __device__ void copy_keys(int block, ExactDecodeStage& to) const {
    if (threadIdx.x) return;
    const ExactCacheBlock own = cache.block(at, block);
    const auto keys = static_cast<uint32_t>(min(kBlock, total - block * kBlock) * at.dk);
    const uint32_t arrived = shared_address(&to.keys_arrived);
    expect_bytes(arrived, 2 * keys + 2 * kBlock * 4);
    for (int plane = 0; plane < 2; ++plane)
      copy_bulk(shared_address(to.planes[plane]), own.keys + plane * at.key_plane(), keys, arrived);
    copy_bulk(shared_address(to.powers), own.key_powers, 2 * kBlock * 4, arrived);
  }
  __device__ int8_t* values(int plane) const {
    return kWhole ? stage->planes[plane] : stage->values[plane];
  }
  __device__ void copy_values(int block, ExactDecodeStage& to) const {
    if (threadIdx.x) return;
    const ExactCacheBlock own = cache.block(at, block);
    const auto bytes = static_cast<uint32_t>(at.value_plane());
    const uint32_t arrived = shared_address(&to.values_arrived);
    expect_bytes(arrived, 2 * bytes);
    for (int plane = 0; plane < 2; ++plane)
      copy_bulk(shared_address(kWhole ? to.planes[plane] : to.values[plane]), own.values + plane * bytes,
                bytes, arrived);
  }

  // The first of a thread's keys. They are neighbours.
  __device__ int first_key() const {
    return warp * kWarpKeys + kKeys * g;
  }
  // Row g of each tile of a plane: right operands of the two steps of a span.
  __device__ __forceinline__ void load_right(const int8_t (&plane)[kTiles * kSideRows][kSideBytes], int span,
                                             uint4 (&b)[kTiles]) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
      b[tile] = *reinterpret_cast<const uint4*>(plane[tile * kSideRows + g] + 64 * span + 16 * t);
  }
  // x[tile][row kKeys + j]: the scores of the thread's key j with row 2 t + row.
  __device__ __forceinline__ void score(float (&x)[kTiles][2 * kKeys]) const {
    PlaneSums sums[kTiles][kParts];
    const int8_t* keys = stage->planes[0] + first_key() * at.dk + 16 * t;
#pragma unroll
    for (int span = 0; span < kSpans; ++span) {
      if (64 * span >= at.dk) break;
      uint4 qh[kTiles], ql[kTiles];
      load_right(smem.queries[0], span, qh), load_right(smem.queries[1], span, ql);
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
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
    float power[kKeys];
    load_of_keys(stage->powers, power);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int row = 0; row < 2; ++row)
#pragma unroll
        for (int j = 0; j < kKeys; ++j)
          x[tile][kKeys * row + j] = sums[tile][j / 2].rounded(j % 2 * 2 + row) * power[j] *
                                     smem.factors[tile * kSideRows + 2 * t + row];
  }
  template <class T>
  __device__ __forceinline__ void load_of_keys(const T* of_block, T (&x)[kKeys]) const {
#pragma unroll
    for (int j = 0; j < kKeys; j += 2) {
      const int2 two = *reinterpret_cast<const int2*>(of_block + first_key() + j);
      x[j] = __builtin_bit_cast(T, two.x), x[j + 1] = __builtin_bit_cast(T, two.y);
    }
  }
  // What attention.13 to attention.16 and attention.19 do to scores; -inf of hidden keys.
  __device__ __forceinline__ void mask(int block, float (&x)[kTiles][2 * kKeys]) const {
    const int base = block * kBlock;
    const bool all = base + kBlock <= least_until && (base >= most_from || base + kBlock <= leading);
    if (all && s.g.plain_scores) return;
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      float* const of = x[i / 2] + i % 2 * kKeys;
      if (!s.g.plain_scores) {
        mask_row(block, existing_row(i / 2 * kSideRows + 2 * t + i % 2), of);
        continue;
      }
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        const int key = base + first_key() + j;
        if (key >= until[i / 2][i % 2] || (key < from[i / 2][i % 2] && key >= leading)) of[j] = -kInf;
      }
    }
  }
  __device__ __forceinline__ void mask_row(int block, const QueryRow& row, float* x) const {
    const ScoreMask of(s, attention::visible_keys(s.g, s.lengths, past, row.batch, row.i), row, past, block);
#pragma unroll
    for (int j = 0; j < kKeys; ++j) x[j] = masked_score(s, of, block, first_key() + j, x[j]);
  }
  template <class T, class Join>
  __device__ __forceinline__ static T over_keys(T x, Join join) {  // of a row, in a warp
#pragma unroll
    for (int step = 4; step < kWarp; step *= 2) x = join(x, __shfl_xor_sync(kFullWarp, x, step));
    return x;
  }
  // Weights of a block -> shared memory. Scores -> maximum, sum and E of rows 2 t and 2 t + 1.
  // after_keys() runs when all have used the keys.
  template <class AfterKeys>
  __device__ __forceinline__ void weigh(float (&x)[kTiles][2 * kKeys], BlockSums (&sums)[kTiles],
                                        AfterKeys after_keys) const {
    const auto larger = [](float a, float b) { return max_nan(a, b); };
    const auto most = [](int32_t a, int32_t b) { return max(a, b); };
    const auto plus = [](int32_t a, int32_t b) { return a + b; };
    int32_t reach[kKeys];
    load_of_keys(stage->reaches, reach);
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const float* of = x[i / 2] + i % 2 * kKeys;
      float m = of[0];
#pragma unroll
      for (int j = 1; j < kKeys; ++j) m = max_nan(m, of[j]);
      m = over_keys(m, larger);
      if (g == 0) smem.m[i / 2 * kSideRows + 2 * t + i % 2][warp] = m;
    }
    __syncthreads();
    after_keys();
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int r = i / 2 * kSideRows + 2 * t + i % 2;
      const float m = over_warps(smem.m[r], larger);
      int32_t sum = 0, e = kHiddenKey;
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        float& at_key = x[i / 2][i % 2 * kKeys + j];
        const bool hidden = at_key == -kInf;
        const ExactWeight w = exact_weight(at_key - m);
        sum += w.fine();
        e = max(e, hidden ? kHiddenKey : w.reach(reach[j]));
        at_key = hidden ? 0.0f : w.p();
      }
      sum = over_keys(sum, plus), e = over_keys(e, most);
      if (g == 0) smem.sum[r][warp] = sum, smem.e[r][warp] = e;
      sums[i / 2].m[i % 2] = m;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int r = i / 2 * kSideRows + 2 * t + i % 2;
      const int32_t e = over_warps(smem.e[r], most);
      sums[i / 2].sum[i % 2] = over_warps(smem.sum[r], plus), sums[i / 2].e[i % 2] = e;
      uint32_t w[4] = {};
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        // As ExactBlockProduct::pack_weights(); 128 last places more, for a signed low plane.
        const float p = x[i / 2][i % 2 * kKeys + j];
        const int32_t by = static_cast<int32_t>(static_cast<uint32_t>(reach[j] - e) << 23);
        w[j] = __float_as_uint(__int_as_float(p == 0 ? 0 : max(__float_as_int(p) + by, 0)) + 768.0078125f);
      }
      PlaneBytes bytes = weight_bytes(w);
      bytes.low ^= 0x80808080;
      using Bytes = std::conditional_t<kKeys == 4, uint32_t, uint16_t>;
      *reinterpret_cast<Bytes*>(smem.weights[0][r] + first_key()) = static_cast<Bytes>(bytes.high);
      *reinterpret_cast<Bytes*>(smem.weights[1][r] + first_key()) = static_cast<Bytes>(bytes.low);
    }
    __syncthreads();
  }
  template <class T, class Join>
  __device__ __forceinline__ static T over_warps(const T (&of)[kWarps], Join join) {
    T x[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; w += 4) {
      const int4 four = *reinterpret_cast<const int4*>(of + w);
      x[w] = __builtin_bit_cast(T, four.x), x[w + 1] = __builtin_bit_cast(T, four.y);
      x[w + 2] = __builtin_bit_cast(T, four.z), x[w + 3] = __builtin_bit_cast(T, four.w);
    }
#pragma unroll
    for (int w = 1; w < kWarps; ++w) x[0] = join(x[0], x[w]);
    return x[0];
  }
  // O_b of the warp's columns -> put(tile, i, element of a tile of 16 columns, O_b).
  template <class Put>
  __device__ __forceinline__ void multiply(const BlockSums (&sums)[kTiles], Put put) const {
    PlaneSums of[kTiles][kParts];
#pragma unroll
    for (int span = 0; span < kSpans; ++span) {
      uint4 wh[kTiles], wl[kTiles];
      load_right(smem.weights[0], span, wh), load_right(smem.weights[1], span, wl);
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        if (warp * kWarpKeys + 16 * i >= at.dvr) break;
        const int8_t* column = values(0) + (warp * kWarpKeys + 16 * i + g) * kBlock + 64 * span + 16 * t;
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
      for (int i = 0; i < 4 * kParts; ++i)
        put(tile, i / 4, i % 4,
            set1(of[tile][i / 4].rounded(i % 4) * num::exact16_power(sums[tile].e[i % 2] - 14)));
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
