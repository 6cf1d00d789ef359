// attention_exact16 for many rows on Hopper: two warpgroups of 64 rows of a key head go over the
// key blocks that they see; a third one copies these. Sums of 32 bits come from wgmma, weights go
// to it from registers. One warpgroup multiplies while the other makes weights. These are steps of
// floats, which are exact where they have to be as long as scales are in the ranges of
// exact16/common.cuh and all is a number. Other rows are for row_per_warp.cuh. A hidden key has the
// score -inf, so its n is at most -125; where no scale of a value is 2^100 times E's, it neither
// sets E nor has a weight.
#pragma once
#include "ops/attention/cuda/exact16/hopper.cuh"
#include "ops/attention/cuda/exact16/row_per_warp.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kHopperGroups = 2, kHopperRows = 64, kHopperPart = 64, kHopperStages = 2;
constexpr int kHopperThreads = (kHopperGroups + 1) * kWarpgroup;
constexpr int32_t kFarthestReach = 100;  // of E below the largest scale of a value

// What weights are made of, by key.
struct ExactKeyTable {
  alignas(16) float powers[kBlock];     // 2^e of keys
  alignas(16) int32_t reaches[kBlock];  // e of values, less the bits of an ExactWeight's n = 0
  alignas(16) float shares[kBlock];     // 2^(e - top) of values; 0 of a row of zeros
  int32_t top;                          // the largest usual e
};
struct ExactRowTable {
  float factors[kHopperRows];  // of scores
  int32_t low[kHopperRows], high[kHopperRows];
  uint32_t float_half;  // of rounded_sum(): what is read from memory stays in a register
};
// kParts: of 64 value columns. Rows of 128 bytes are in the 128-byte swizzle.
template <int kParts>
struct ExactHopperSmem {
  alignas(1024) int8_t keys[kHopperStages][2][kBlock][kTileBytes];
  int8_t values[kHopperStages][2][kParts * kHopperPart][kTileBytes];
  int8_t queries[kHopperGroups][2][kHopperRows][kTileBytes];
  ExactKeyTable tables[kHopperStages];
  ExactRowTable rows[kHopperGroups];
  uint64_t full_keys[kHopperStages], full_values[kHopperStages], empty_keys[kHopperStages],
      empty_values[kHopperStages];
};
template <int kParts>
constexpr size_t kHopperShared = sizeof(ExactHopperSmem<kParts>) + 1024;

// The key blocks that the rows of a thread block see, in order.
struct ExactKeyBlocks {
  VisibleKeys low, high;  // of the first and of the last row
  __device__ int next(int block) const {
    while (int64_t{block} * kBlock + kBlock <= low.low && int64_t{block} * kBlock >= low.first) ++block;
    return block;
  }
  __device__ bool contain(int block) const { return int64_t{block} * kBlock < high.high; }
};
__device__ inline VisibleKeys exact_sight(const AttentionParams& s, int64_t head, int64_t row) {
  const QueryRow own = query_row(s.g, head, row < s.g.rows ? row : s.g.rows - 1);
  return attention::visible_keys(s.g, s.lengths, s.sequences[own.batch].past, own.batch, own.i);
}

// The warpgroup that copies.
template <int kParts>
struct ExactHopperProducer {
  const AttentionParams& s;
  ExactHopperSmem<kParts>& smem;
  ExactLayout at;
  ExactCache cache;  // of the head
  int64_t total;

  // Copies 16 bytes of every 16th row of both planes; rows are `stride` bytes apart in the cache.
  __device__ __forceinline__ static void copy(uint32_t to, int64_t plane_to, const int8_t* from,
                                              int64_t plane, int64_t stride, int rows) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (16 * i < rows)
          copy_async(to + static_cast<uint32_t>(h * plane_to) + i * 16 * kTileBytes,
                     from + h * plane + i * 16 * stride);
  }
  __device__ void copy_keys(int block, int stage) const {
    const ExactCacheBlock own = cache.block(at, block);
    const int t = threadIdx.x % kWarpgroup, chunk = t % 8, key = t / 8;
    // The key of column c of a tile is that of key_of().
    const int row = (key >> 1 & 1) * 8 + static_cast<int>(key_phase(key));
    if (chunk < at.dk / 16)
      copy(shared_address(smem.keys[stage][0][row]) + swizzled(chunk, row), kBlock * kTileBytes,
           own.keys + key * at.dk + chunk * 16, at.key_plane(), at.dk, kBlock);
    end_copy_group();
    fill(own, static_cast<int>(num::min_i64(kBlock, total - int64_t{block} * kBlock)), smem.tables[stage]);
  }
  // What is in the cache behind the last key is of no key.
  __device__ void fill(const ExactCacheBlock& own, int keys, ExactKeyTable& to) const {
    const int key = threadIdx.x % kWarpgroup;
    int32_t top = kZeroRow;
#pragma unroll
    for (int i = 0; i < kBlock / kWarp; ++i) {
      const int j = i * kWarp + threadIdx.x % kWarp;
      const int32_t e = j < keys ? own.value_reaches[j] : kZeroRow;
      if (e <= kUsualValueScale) top = max(top, e);
    }
    top = __reduce_max_sync(kFullWarp, top);
    const int32_t e = key < keys ? own.value_reaches[key] : kZeroRow;
    to.powers[key] = key < keys ? own.key_powers[key] : 0.0f;
    to.reaches[key] = e - 0x4b400000;
    to.shares[key] = e == kZeroRow || e > kUsualValueScale ? 0.0f : num::exact16_power(e - top);
    if (key == 0) to.top = top;
  }
  __device__ void copy_values(int block, int stage) const {
    const ExactCacheBlock own = cache.block(at, block);
    const int t = threadIdx.x % kWarpgroup, chunk = t % 8, column = t / 8;
    const int columns = static_cast<int>(num::min_i64(kParts * kHopperPart, at.dvr));
    copy(shared_address(smem.values[stage][0][column]) + swizzled(chunk, column),
         kParts * kHopperPart * kTileBytes, own.values + column * kBlock + chunk * 16, at.value_plane(),
         kBlock, columns);
    end_copy_group();
  }
  __device__ void run(const ExactKeyBlocks& blocks) const {
    int block = blocks.next(0);
    if (blocks.contain(block)) copy_keys(block, 0), copy_values(block, 0);
    for (int turn = 0; blocks.contain(block); ++turn) {
      const int stage = turn % kHopperStages, after = (turn + 1) % kHopperStages,
                parity = (turn + 1) / kHopperStages % 2 ^ 1, next = blocks.next(block + 1);
      const bool more = blocks.contain(next);
      wait_for_copies<1>();
      publish_to_products();
      arrive(shared_address(&smem.full_keys[stage]));
      if (more) {
        wait_barrier(shared_address(&smem.empty_keys[after]), parity);
        copy_keys(next, after);
        wait_for_copies<1>();
      } else {
        wait_for_copies<0>();
      }
      publish_to_products();
      arrive(shared_address(&smem.full_values[stage]));
      if (more) {
        wait_barrier(shared_address(&smem.empty_values[after]), parity);
        copy_values(next, after);
      }
      block = next;
    }
  }
};

// A warpgroup of 64 rows, from `first` on. A thread has four lanes' share of two rows.
template <int kSteps, int kParts>
struct ExactHopperRows {
  const AttentionParams& s;
  ExactHopperSmem<kParts>& smem;
  int64_t head, first;
  int group;
  bool ordinary = true;
  OnlineSoftmax running[2];
  float o[kParts][32] = {};

  __device__ int thread_row(int h) const {
    return threadIdx.x % kWarpgroup / kWarp * 16 + threadIdx.x % kWarp / 4 + 8 * h;
  }
  // Planes of the queries, and what each row sees; a warp takes a row at a time.
  __device__ void load() const {
    const Geometry& g = s.g;
    const int lane = threadIdx.x % kWarp, t = threadIdx.x % kWarpgroup;
    ExactRowTable& rows = smem.rows[group];
    const float attention_scale = fabsf(g.scale);
    const bool usual = attention_scale >= 0x1p-30f && attention_scale <= 0x1p20f;
#pragma unroll 4
    for (int r = t / kWarp; r < kHopperRows; r += kWarpgroup / kWarp) {
      const bool exists = first + r < g.rows;
      const float* from = s.q + row_index(g, query_row(g, head, exists ? first + r : g.rows - 1)) * g.d;
      float x[4];
      uint32_t largest = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = exists && 4 * lane + i < g.d ? from[4 * lane + i] : 0.0f;
        largest = umax(largest, magnitude(x[i]));
      }
      const int32_t e = scale_of_largest(largest_of_warp(largest));
      const Quantizer by(e);
      const int32_t q[4] = {by.integer(x[0]), by.integer(x[1]), by.integer(x[2]), by.integer(x[3])};
      const PlaneBytes bytes = plane_bytes(q);
      const uint32_t to = swizzled(lane / 4, r) + lane % 4 * 4;
      *reinterpret_cast<uint32_t*>(smem.queries[group][0][r] + to) = bytes.high;
      *reinterpret_cast<uint32_t*>(smem.queries[group][1][r] + to) = bytes.low;
      if (lane == 0) rows.factors[r] = usual ? g.scale * usual_power(e) : __uint_as_float(0x7fc00000);
    }
    if (t == 0) rows.float_half = 0x4b00;
    if (t < kHopperRows) {
      const VisibleKeys sight = exact_sight(s, head, first + t);
      rows.low[t] = static_cast<int32_t>(sight.low), rows.high[t] = static_cast<int32_t>(sight.high);
    }
    publish_to_products();
    sync_warpgroup(group);
  }

  // Scores of 64 keys. Tile T of the block's 16 has key 16 (T / 2) + 4 t + T % 2 * 2 + i % 2 of row
  // i / 2 in x[4 T + i].
  __device__ __forceinline__ void score(int stage, int half, const float (&factor)[2], float* x) const {
    const uint32_t keys = shared_address(smem.keys[stage][0][half * kHopperPart]),
                   queries = shared_address(smem.queries[group][0]);
    const uint64_t qh = operand(queries), ql = operand(queries + kHopperRows * kTileBytes),
                   kh = operand(keys), kl = operand(keys + kBlock * kTileBytes);
    WidePlaneSums sums;
    begin_products();
    sums.template add<true>(qh, ql, kh, kl);
#pragma unroll
    for (int step = 1; step < kSteps; ++step)  // 32 bytes are 2 in an operand's address
      sums.template add<false>(qh + 2 * step, ql + 2 * step, kh + 2 * step, kl + 2 * step);
    commit_products();
    sums.wait();
    const uint32_t float_half = smem.rows[group].float_half;
    const float* powers = smem.tables[stage].powers + half * kHopperPart + threadIdx.x % 4 * 4;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const float4 of_keys = *reinterpret_cast<const float4*>(powers + 16 * pair);
      const float power[4] = {of_keys.x, of_keys.y, of_keys.z, of_keys.w};
#pragma unroll
      for (int i = 0; i < 8; ++i)
        x[8 * pair + i] =
            sums.rounded(8 * pair + i, float_half) * power[i / 4 * 2 + i % 2] * factor[i / 2 % 2];
    }
  }
  __device__ __forceinline__ void hide(int64_t base, float (&x)[64]) const {
    const ExactRowTable& rows = smem.rows[group];
    const auto within = [&](int64_t position) {
      return static_cast<int>(num::min_i64(position > base ? position - base : 0, kBlock));
    };
    const int t = threadIdx.x % 4;
    const int leading = within(s.g.first);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int low = within(rows.low[thread_row(h)]), high = within(rows.high[thread_row(h)]);
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const int key = i / 4 * 16 + 4 * t + i % 4;
        if (key >= high || (key < low && key >= leading)) x[i / 2 * 4 + 2 * h + i % 2] = -kInf;
      }
    }
  }
  // attention.5, over the four threads of a row.
  __device__ __forceinline__ void maxima(const float (&x)[64], float (&m)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      m[h] = -kInf;
#pragma unroll
      for (int i = 0; i < 32; ++i) m[h] = max_nan(m[h], x[i / 2 * 4 + 2 * h + i % 2]);
      m[h] = max_nan(m[h], __shfl_xor_sync(kFullWarp, m[h], 1));
      m[h] = max_nan(m[h], __shfl_xor_sync(kFullWarp, m[h], 2));
    }
  }
  // attention_exact16.3 and attention_exact16.4, and E: scores -> p.
  __device__ __forceinline__ void weigh(const ExactKeyTable& table, float (&x)[64], const float (&m)[2],
                                        int32_t (&sum)[2], int32_t (&e)[2]) const {
    uint32_t total[2] = {0, 0};
    e[0] = e[1] = kHiddenKey;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int4 of_keys = *reinterpret_cast<const int4*>(table.reaches + 16 * i + threadIdx.x % 4 * 4);
      const int32_t reach[4] = {of_keys.x, of_keys.y, of_keys.z, of_keys.w};
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int h = j / 2 % 2;
        const ExactWeight w = exact_weight(x[8 * i + j] - m[h]);
        const float p = w.p();
        total[h] += __float_as_uint(p + 3.0f);
        e[h] = __viaddmax_s32(w.power, reach[j / 4 * 2 + j % 2], e[h]);
        x[8 * i + j] = p;
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sum[h] = static_cast<int32_t>(total[h] - 32u * 0x40400000u);
      sum[h] += __shfl_xor_sync(kFullWarp, sum[h], 1), e[h] = max(e[h], __shfl_xor_sync(kFullWarp, e[h], 1));
      sum[h] += __shfl_xor_sync(kFullWarp, sum[h], 2), e[h] = max(e[h], __shfl_xor_sync(kFullWarp, e[h], 2));
    }
  }
  // W of attention_exact16.5 as planes of signed bytes: a step's left operand.
  __device__ __forceinline__ void pack(const ExactKeyTable& table, const float (&p)[64],
                                       const int32_t (&e)[2], uint32_t (&high)[4][4],
                                       uint32_t (&low)[4][4]) const {
    float by[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) by[h] = num::exact16_power(table.top - e[h]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float4 of_keys = *reinterpret_cast<const float4*>(table.shares + 16 * i + threadIdx.x % 4 * 4);
      const float share[4] = {of_keys.x, of_keys.y, of_keys.z, of_keys.w};
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        uint32_t w[4];
        // At 768 the last place of a float is 2^-14; 128 of it more, and the low byte is that of a
        // signed low plane, plus 128.
#pragma unroll
        for (int j = 0; j < 4; ++j)
          w[j] = __float_as_uint(
              __fmaf_rn(p[8 * i + j / 2 * 4 + 2 * h + j % 2] * by[h], share[j], 768.0078125f));
        const PlaneBytes bytes = weight_bytes(w);
        high[i / 2][i % 2 * 2 + h] = bytes.high, low[i / 2][i % 2 * 2 + h] = bytes.low ^ 0x80808080;
      }
    }
  }
  // Folds maxima and sums in (attention.9) -> the factors for results; a thread computes that of
  // one row.
  __device__ __forceinline__ void join(const float (&m)[2], const int32_t (&sum)[2], float (&by)[2]) {
    const bool odd = threadIdx.x % 2;
    const float own = rescale_factor(set1(odd ? m[1] : m[0]), odd ? running[1].m : running[0].m);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      by[h] = __shfl_sync(kFullWarp, own, (threadIdx.x & 28) + h);
      running[h].l = fold(by[h], running[h].l, exact_block_sum(sum[h], m[h]));
      running[h].m = set1(max_nan(running[h].m.v, m[h]));
    }
  }
  // O_b of 64 columns, folded in (attention.9).
  __device__ __forceinline__ void multiply(int stage, const uint32_t (&high)[4][4],
                                           const uint32_t (&low)[4][4], const int32_t (&e)[2],
                                           const float (&by)[2]) {
    float power[2], factor[2];
    bool simple[2];  // the block's maximum is no new one, as is usual, and the factor is exact
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      power[h] = num::exact16_power(e[h] - 14), factor[h] = power[h] * -by[h];
      simple[h] = __all_sync(kFullWarp,
                             __float_as_int(by[h]) < 0 && e[h] >= -46 && (by[h] <= -0x1p-60f || by[h] == 0));
    }
    const uint32_t float_half = smem.rows[group].float_half;
    // One copy of the code, which the instruction cache holds: the parts of `o` change places.
#pragma unroll 1
    for (int part = 0; part < kParts; ++part) {
      const uint32_t values = shared_address(smem.values[stage][0][part * kHopperPart]);
      const uint64_t vh = operand(values), vl = operand(values + kParts * kHopperPart * kTileBytes);
      WidePlaneSums sums;
      begin_products();
      sums.template add<true>(high[0], low[0], vh, vl);
#pragma unroll
      for (int step = 1; step < 4; ++step)
        sums.template add<false>(high[step], low[step], vh + 2 * step, vl + 2 * step);
      commit_products();
      sums.wait();
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float v[16], own[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const int at = i / 2 * 4 + 2 * h + i % 2;
          v[i] = sums.rounded(at, float_half), own[i] = o[0][at];
          if (kParts == 2) o[0][at] = o[kParts - 1][at];
        }
        if (simple[h]) {
#pragma unroll
          for (int i = 0; i < 16; ++i) own[i] = __fmaf_rn(v[i], factor[h], own[i]);
        } else {
#pragma unroll
          for (int i = 0; i < 16; ++i) own[i] = fold(by[h], set1(own[i]), set1(v[i] * power[h])).v;
        }
#pragma unroll
        for (int i = 0; i < 16; ++i) o[kParts - 1][i / 2 * 4 + 2 * h + i % 2] = own[i];
      }
    }
  }

  __device__ __forceinline__ void run(const ExactKeyBlocks& blocks) {
    const ExactRowTable& rows = smem.rows[group];
    constexpr int kLast = kHopperRows - 1;
    const bool exists = first < s.g.rows;
    const float factor[2] = {rows.factors[thread_row(0)], rows.factors[thread_row(1)]};
    int turn = 0;
    for (int block = blocks.next(0); blocks.contain(block); block = blocks.next(block + 1), ++turn) {
      const int stage = turn % kHopperStages, parity = turn / kHopperStages % 2;
      const int64_t base = int64_t{block} * kBlock;
      const bool seen =
          exists && base < rows.high[kLast] && !(base + kBlock <= rows.low[0] && base >= s.g.first);
      const ExactKeyTable& table = smem.tables[stage];
      uint32_t high[4][4], low[4][4];
      int32_t e[2];
      float by[2];
      wait_barrier(shared_address(&smem.full_keys[stage]), parity);
      if (seen) {
        float x[64], m[2];
        int32_t sum[2];
        score(stage, 0, factor, x), score(stage, 1, factor, x + 32);
        if (!(base + kBlock <= rows.high[0] && (base >= rows.low[kLast] || base + kBlock <= s.g.first)))
          hide(base, x);
        maxima(x, m);
        weigh(table, x, m, sum, e);
        pack(table, x, e, high, low);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          ordinary =
              ordinary && (m[h] == -kInf || (m[h] == m[h] && e[h] >= -100 && e[h] <= kUsualValueScale &&
                                             table.top - e[h] <= kFarthestReach));
        }
        join(m, sum, by);
      }
      // All lanes arrive: a tool that finds races does not see that __syncwarp() orders one after
      // all.
      arrive(shared_address(&smem.empty_keys[stage]));
      wait_barrier(shared_address(&smem.full_values[stage]), parity);
      if (seen) multiply(stage, high, low, e, by);
      arrive(shared_address(&smem.empty_values[stage]));
    }
  }

  // attention.17 and attention.10
  __device__ void finish() {
    const Geometry& g = s.g;
    if (!__all_sync(kFullWarp, ordinary)) {
      const int64_t from = first + threadIdx.x % kWarpgroup / kWarp * kMmaRows;
      for (int64_t r = from; r < num::min_i64(from + kMmaRows, g.rows); ++r)
        attend_exact_row<true>(s, head, r);
      return;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (first + thread_row(h) >= g.rows) continue;
      const QueryRow row = query_row(g, head, first + thread_row(h));
      OnlineSoftmax& all = running[h];
      const float by = s.sinks ? all.join(set1(s.sinks[row.head]), set1(1.0f)) : kEmptyBlock;
      float* y = s.y + row_index(g, row) * g.dv;
#pragma unroll
      for (int part = 0; part < kParts; ++part)
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const int c = part * kHopperPart + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
          const F sum = fold(by, set1(o[part][i / 2 * 4 + 2 * h + i % 2]), zero());
          if (c < g.dv) store(y + c, normalized(sum, all.m, all.l));
        }
    }
  }
};

// The thread blocks of the last rows, which see the most keys, are the first ones.
template <int kSteps, int kParts>
__global__ void __launch_bounds__(kHopperThreads, 1)
    exact_prefill_hopper_kernel(const __grid_constant__ AttentionParams s, int heads, int tiles) {
  extern __shared__ int8_t unaligned[];
  auto& smem = *reinterpret_cast<ExactHopperSmem<kParts>*>(unaligned +
                                                           (1024 - shared_address(unaligned) % 1024) % 1024);
  const int group = __shfl_sync(kFullWarp, static_cast<int>(threadIdx.x / kWarpgroup), 0),
            head = blockIdx.x % heads;
  const int64_t tile = tiles - 1 - blockIdx.x / heads, first = tile * kHopperGroups * kHopperRows;
  const ExactLayout at(s.g);
  if (threadIdx.x < kHopperStages) {
    init_barrier(shared_address(&smem.full_keys[threadIdx.x]), kWarpgroup);
    init_barrier(shared_address(&smem.full_values[threadIdx.x]), kWarpgroup);
    init_barrier(shared_address(&smem.empty_keys[threadIdx.x]), kHopperGroups * kWarpgroup);
    init_barrier(shared_address(&smem.empty_values[threadIdx.x]), kHopperGroups * kWarpgroup);
  }
  // What is beyond the elements of keys must be 0.
  if (at.dk < kSteps * kMmaKeys)
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(smem.keys) / 16); i += kHopperThreads)
      reinterpret_cast<int4*>(smem.keys)[i] = {};
  __syncthreads();
  trigger_and_wait();
  const int64_t past = s.sequences[head / s.g.kv_heads].past;
  const ExactKeyBlocks blocks{exact_sight(s, head, first),
                              exact_sight(s, head, first + kHopperGroups * kHopperRows - 1)};
  if (group == kHopperGroups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    ExactHopperProducer<kParts>{s, smem, at, ExactCache(s, at, head / s.g.kv_heads, head % s.g.kv_heads),
                                past + s.g.keys}
        .run(blocks);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    ExactHopperRows<kSteps, kParts> own{s, smem, head, first + group * kHopperRows, group};
    own.load();
    own.run(blocks);
    own.finish();
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
