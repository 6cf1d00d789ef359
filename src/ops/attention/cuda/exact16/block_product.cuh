// A block of keys for 16 query rows of a warp by tensor cores: scores, weights and results
// (attention_exact16.2 to attention_exact16.5).
// These are steps of floats, which are exact where they have to be as long as scales are in the
// ranges of exact16/common.cuh and all is a number. Other rows are for row_per_warp.cuh.
#pragma once
#include "ops/attention/cuda/exact16/tensor_cores.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Keys of a block in shared memory. kSteps: of 32 elements of D.
template <int kSteps>
struct ExactKeySmem {
  static constexpr int kStride = kSteps * kMmaKeys > kTileBytes ? kSteps* kMmaKeys : kTileBytes;
  alignas(128) int8_t planes[2][kBlock][kStride];
  alignas(16) float powers[kBlock];

  // Starts to copy them; what is beyond their elements must be 0.
  __device__ void copy(const ExactLayout& at, const ExactCacheBlock& own, int thread, int threads) {
    const auto copy_chunks = [&](int chunks) {
      for (int i = thread; i < 2 * kBlock * chunks; i += threads) {
        const int chunk = i % chunks, key = i / chunks % kBlock, plane = i / chunks / kBlock;
        copy_async(shared_address(planes[plane][key]) + swizzled(chunk, key_phase(key)),
                   own.keys + plane * at.key_plane() + key * at.dk + chunk * 16);
      }
    };
    if (at.dk == kStride)
      copy_chunks(kStride / 16);  // divisions by a constant
    else
      copy_chunks(static_cast<int>(at.dk / 16));
    for (int i = thread; i < kBlock / 4; i += threads)
      copy_async(shared_address(powers + 4 * i), own.key_powers + 4 * i);
  }
};
// kColumns value columns of a block.
template <int kColumns>
struct ExactValueSmem {
  alignas(128) int8_t planes[2][kColumns][kBlock];
  alignas(16) int32_t reaches[kBlock], shifts[kBlock];

  __device__ void copy(const ExactLayout& at, const ExactCacheBlock& own, int64_t first, int thread,
                       int threads) {
    const int columns = static_cast<int>(num::min_i64(kColumns, at.dvr - first));
    for (int i = thread; i < 2 * columns * 8; i += threads) {
      const int chunk = i % 8, column = i / 8 % columns, plane = i / 8 / columns;
      copy_async(shared_address(planes[plane][column]) + swizzled(chunk, column),
                 own.values + plane * at.value_plane() + (first + column) * kBlock + chunk * 16);
    }
    for (int i = thread; i < kBlock / 4; i += threads) {
      copy_async(shared_address(reaches + 4 * i), own.value_reaches + 4 * i);
      copy_async(shared_address(shifts + 4 * i), own.value_shifts + 4 * i);
    }
  }
};

// The rows lane / 4 and lane / 4 + 8 of a warp, of which this thread has four lanes' share.
template <int kSteps>
struct ExactQueries {
  uint32_t high[kSteps][4], low[kSteps][4];
  float factor[2];  // of scores: the scale of the row and that of attention; NaN if not ordinary

  __device__ void get(int step, uint32_t (&of_high)[4], uint32_t (&of_low)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) of_high[i] = high[step][i], of_low[i] = low[step][i];
  }
  // rows[h] is null beyond the last one.
  __device__ void load(const Geometry& g, const float* const (&rows)[2]) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float x[kSteps][8];  // elements 4 t and 16 + 4 t, and the three behind each, of 32
      uint32_t largest = 0;
#pragma unroll
      for (int i = 0; i < 8 * kSteps; ++i) {
        const int c = i / 8 * kMmaKeys + i / 4 % 2 * 16 + 4 * t + i % 4;
        x[i / 8][i % 8] = rows[h] && c < g.d ? rows[h][c] : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < 8 * kSteps; ++i) largest = umax(largest, magnitude(x[i / 8][i % 8]));
      largest = umax(largest, __shfl_xor_sync(kFullWarp, largest, 1));
      const int32_t e = scale_of_largest(umax(largest, __shfl_xor_sync(kFullWarp, largest, 2)));
      const float scale = fabsf(g.scale);
      factor[h] =
          scale >= 0x1p-30f && scale <= 0x1p20f ? g.scale * usual_power(e) : __uint_as_float(0x7fc00000);
      const Quantizer by(e);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          int32_t q[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) q[i] = by.integer(x[step][4 * part + i]);
          const PlaneBytes bytes = plane_bytes(q);
          high[step][2 * part + h] = bytes.high, low[step][2 * part + h] = bytes.low;
        }
    }
  }
};

// The same in shared memory, which leaves registers for other things.
template <int kSteps>
struct ExactQuerySmem {
  uint4 high[kSteps][kWarp], low[kSteps][kWarp];
};
template <int kSteps>
struct SharedQueries {
  ExactQuerySmem<kSteps>& at;
  float factor[2];
  __device__ void load(const Geometry& g, const float* const (&rows)[2]) {
    ExactQueries<kSteps> q;
    q.load(g, rows);
    factor[0] = q.factor[0], factor[1] = q.factor[1];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      at.high[i][threadIdx.x % kWarp] = make_uint4(q.high[i][0], q.high[i][1], q.high[i][2], q.high[i][3]);
      at.low[i][threadIdx.x % kWarp] = make_uint4(q.low[i][0], q.low[i][1], q.low[i][2], q.low[i][3]);
    }
  }
  __device__ void get(int step, uint32_t (&high)[4], uint32_t (&low)[4]) const {
    const uint4 h = at.high[step][threadIdx.x % kWarp], l = at.low[step][threadIdx.x % kWarp];
    high[0] = h.x, high[1] = h.y, high[2] = h.z, high[3] = h.w;
    low[0] = l.x, low[1] = l.y, low[2] = l.z, low[3] = l.w;
  }
};

// What the rows see of a block: ScoreMask if some key is hidden or something is added to scores.
struct RowMasks {
  bool plain;
  int end;  // keys from here on are hidden from the whole warp
  const ScoreMask* of[2];
};

// Maximum, sum (attention_exact16.4) and E of a block, of the two rows.
struct BlockSums {
  float m[2];
  int32_t sum[2], e[2];
  __device__ F l(int h) const { return exact_block_sum(sum[h], m[h]); }
  __device__ bool ordinary() const {
    bool all = true;
#pragma unroll
    for (int h = 0; h < 2; ++h)
      all = all && (m[h] == -kInf || (m[h] == m[h] && e[h] >= -100 && e[h] <= kUsualValueScale));
    return __all_sync(kFullWarp, all);
  }
};

// What attention.13 to attention.16 and attention.19 make of a score; -inf of a hidden key.
__device__ __noinline__ float masked_score(const AttentionParams& s, const ScoreMask& mask, int64_t block,
                                           int key, float x) {
  F of = set1(x);
  return mask.score(s, block, key, of) ? of.v : -kInf;
}

// kRuns: of 32 keys, from run `first_run` of the block on.
template <int kSteps, int kColumns, int kRuns, class Queries>
struct ExactBlockProduct {
  const AttentionParams& s;
  const ExactKeySmem<kSteps>& keys;
  const ExactValueSmem<kColumns>& values;
  const Queries& q;
  int64_t block;
  int first_run;
  float x[kRuns][4][4];  // scores, then p: of runs of 32 keys, tiles of 8, and a tile's row and column

  __device__ ExactBlockProduct(const AttentionParams& s, const ExactKeySmem<kSteps>& keys,
                               const ExactValueSmem<kColumns>& values, const Queries& q, int64_t block,
                               int first_run)
      : s(s), keys(keys), values(values), q(q), block(block), first_run(first_run) {}

  // The key of element i of a tile of a run.
  __device__ int key(int run, int tile, int i) const {
    return (first_run + run) * kMmaKeys + key_of(tile, threadIdx.x % 4 * 2 + i % 2);
  }

  // attention_exact16.2 and what attention.3 does to scores; -inf of hidden keys. kPlain: none is,
  // and nothing is done.
  template <bool kPlain>
  __device__ __forceinline__ void score(const RowMasks& mask) {
    const int lane = threadIdx.x % kWarp, row = lane % 8, matrix = lane / 8, t = lane % 4;
#pragma unroll
    for (int run = 0; run < kRuns; ++run)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        if (!kPlain && (first_run + run) * kMmaKeys >= mask.end) {
#pragma unroll
          for (int i = 0; i < 8; ++i) x[run][2 * pair + i / 4][i % 4] = -kInf;
          continue;
        }
        PlaneSums sums[2];
#pragma unroll
        for (int part = 0; part < kSteps / 2; ++part) {
          uint32_t qh[2][4], ql[2][4];
          q.get(2 * part, qh[0], ql[0]), q.get(2 * part + 1, qh[1], ql[1]);
#pragma unroll
          for (int tile = 0; tile < 2; ++tile) {
            const int key = (first_run + run) * kMmaKeys + key_of(2 * pair + tile, row);
            uint32_t bh[4], bl[4];
            load_matrices(bh, shared_address(keys.planes[0][key]) + swizzled(4 * part + matrix, row));
            load_matrices(bl, shared_address(keys.planes[1][key]) + swizzled(4 * part + matrix, row));
#pragma unroll
            for (int k = 0; k < 2; ++k)
              sums[tile].template add<false>(qh[k], ql[k], bh[2 * k], bh[2 * k + 1], bl[2 * k],
                                             bl[2 * k + 1]);
          }
        }
        const float4 of_keys =
            *reinterpret_cast<const float4*>(keys.powers + (first_run + run) * kMmaKeys + 16 * pair + 4 * t);
        const float powers[4] = {of_keys.x, of_keys.y, of_keys.z, of_keys.w};
#pragma unroll
        for (int tile = 0; tile < 2; ++tile)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float& to = x[run][2 * pair + tile][i];
            to = sums[tile].rounded(i) * powers[2 * tile + i % 2] * q.factor[i / 2];
          }
      }
    if constexpr (!kPlain) {
#pragma unroll
      for (int run = 0; run < kRuns; ++run)
#pragma unroll
        for (int tile = 0; tile < 4; ++tile)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float& at = x[run][tile][i];
            const int j = key(run, tile, i);
            if (s.g.plain_scores)
              at = mask.of[i / 2]->in_range(j) ? at : -kInf;
            else
              at = masked_score(s, *mask.of[i / 2], block, j, at);
          }
    }
  }

  // attention.5, over the four threads of a row.
  __device__ __forceinline__ void maxima(float (&m)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      m[h] = -kInf;
#pragma unroll
      for (int i = 0; i < 8 * kRuns; ++i) m[h] = max_nan(m[h], x[i / 8][i / 2 % 4][2 * h + i % 2]);
      m[h] = max_nan(m[h], __shfl_xor_sync(kFullWarp, m[h], 1));
      m[h] = max_nan(m[h], __shfl_xor_sync(kFullWarp, m[h], 2));
    }
  }

  // attention_exact16.3 and attention_exact16.4, and E; x: scores -> p, or 0 of hidden keys.
  template <bool kHides>
  __device__ __forceinline__ void weigh(BlockSums& sums) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int32_t sum = 0, most = kHiddenKey;
#pragma unroll
      for (int i = 0; i < 8 * kRuns; ++i) {
        float& at = x[i / 8][i / 2 % 4][2 * h + i % 2];
        const int j = key(i / 8, i / 2 % 4, i % 2);
        const ExactWeight w = exact_weight(at - sums.m[h]);
        const bool hidden = kHides && at == -kInf;
        sum += w.fine();
        const int32_t reach = w.reach(values.reaches[j]);
        most = max(most, hidden ? kHiddenKey : reach);
        at = hidden ? 0.0f : w.p();
      }
      sum += __shfl_xor_sync(kFullWarp, sum, 1), most = max(most, __shfl_xor_sync(kFullWarp, most, 1));
      sum += __shfl_xor_sync(kFullWarp, sum, 2), most = max(most, __shfl_xor_sync(kFullWarp, most, 2));
      sums.sum[h] = sum, sums.e[h] = most;
    }
  }
  // W of attention_exact16.5.
  template <bool kHides>
  __device__ __forceinline__ void pack_weights(const BlockSums& sums, uint32_t (&high)[kRuns][4],
                                               uint32_t (&low)[kRuns][4]) const {
#pragma unroll
    for (int run = 0; run < kRuns; ++run)
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          uint32_t w[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float at = x[run][2 * pair + i / 2][2 * h + i % 2];
            const int j = (first_run + run) * kMmaKeys + 16 * pair + threadIdx.x % 4 * 4 + i;
            // p 2^(e - E), or 0 where its exponent would be negative; at 768 the last place of a
            // float is 2^-14.
            const int32_t u = __float_as_int(at) + values.shifts[j] - (sums.e[h] << 23);
            const float scaled = __int_as_float(kHides && at == 0 ? 0 : max(u, 0));
            w[i] = __float_as_uint(scaled + 768.0f);
          }
          const PlaneBytes bytes = weight_bytes(w);
          high[run][2 * pair + h] = bytes.high, low[run][2 * pair + h] = bytes.low;
        }
  }
};

// O_b of 16 columns from column `first` on of those in shared memory, from planes of W -> put(tile,
// i, O_b). Keys from `end` on are hidden.
template <bool kPlain, int kColumns, class Put>
__device__ __forceinline__ void exact_results(const ExactValueSmem<kColumns>& values,
                                              const uint32_t (&high)[4][4], const uint32_t (&low)[4][4],
                                              const BlockSums& sums, int end, int first, Put put) {
  const int lane = threadIdx.x % kWarp, row = lane % 8, matrix = lane / 8;
  PlaneSums of[2];
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    if (!kPlain && part * 2 * kMmaKeys >= end) continue;
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      const int column = first + 8 * tile + row;
      uint32_t bh[4], bl[4];
      load_matrices(bh, shared_address(values.planes[0][column]) + swizzled(4 * part + matrix, row));
      load_matrices(bl, shared_address(values.planes[1][column]) + swizzled(4 * part + matrix, row));
#pragma unroll
      for (int k = 0; k < 2; ++k)
        of[tile].template add<true>(high[2 * part + k], low[2 * part + k], bh[2 * k], bh[2 * k + 1],
                                    bl[2 * k], bl[2 * k + 1]);
    }
  }
  float power[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) power[h] = num::exact16_power(sums.e[h] - 14);
#pragma unroll
  for (int tile = 0; tile < 2; ++tile)
#pragma unroll
    for (int i = 0; i < 4; ++i) put(tile, i, set1(of[tile].rounded(i) * power[i / 2]));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
