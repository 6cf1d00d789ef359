// matmul_nbits_exact16 on tensor cores: rows of a as two planes of signed bytes, h and l, columns
// of b as signed bytes or as halves of bytes, which are widened on their way to shared memory. The
// sums of a piece of k, within one group, are 256 h + l less the zero point times the row's sum;
// times the group's t they are added in int64 (matmul_nbits_exact16.3).
#pragma once
#include "ops/matmul/cuda/exact16/round_rows.cuh"
#include "ops/matmul/cuda/integer/tensor_cores.cuh"
#include "ops/matmul/nbits.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using NbitsTile = ByteTile<64, 64, 32, 32, 4, 2>;
constexpr int kLongestPiece = 256;  // 32639 * 255 * 256 < 2^31

struct NbitsPlanes {
  matmul::Nbits l;
  int64_t rows, ld, ld_b;    // bytes of a row of a plane, integers of a column of b
  const uint8_t* a;          // h of all rows, then l
  const int32_t *ea, *of_a;  // scales; sums of pieces, [rows][pieces]; null: no zero points
  const uint8_t* b;
  const int32_t *t, *zeros;  // [groups][n]; zeros of one group for all where zero_groups is 1
  int64_t piece, pieces, zero_groups;
  int64_t row_tiles, column_tiles;
  int64_t steps, splits;       // of kStepK of K, and parts of K with so many, each of whole pieces
  unsigned long long* totals;  // [rows][n], where there are several
};

// One block for each row: the planes' bytes, zeros from k on, and its scale.
__global__ void __launch_bounds__(kRoundThreads)
    round_planes_kernel(RowsToRound<F32> rows, int64_t ld, uint8_t* planes, int32_t* scales) {
  trigger_and_wait();
  __shared__ uint32_t warp_largest[kRoundThreads / kWarp];
  for (int64_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
    const float* x = rows.p + i * rows.row;
    const int32_t e = scale_of_block(rows, x, warp_largest);
    if (threadIdx.x == 0) scales[i] = e;
    const bool none = e == num::kExact16NoIntegers;
    const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
    for (int64_t k = 4 * threadIdx.x; k < ld; k += 4 * kRoundThreads) {
      uint32_t h = 0, l = 0;
      for (int j = 0; j < 4; ++j) {
        const int q = none || k + j >= rows.k ? 0 : __float2int_rn(x[k + j] * by.first * by.second);
        h |= (static_cast<uint32_t>(q + 128) >> 8 & 0xff) << 8 * j;
        l |= (static_cast<uint32_t>(q) & 0xff) << 8 * j;
      }
      *reinterpret_cast<uint32_t*>(planes + i * ld + k) = h;
      *reinterpret_cast<uint32_t*>(planes + (rows.count + i) * ld + k) = l;
    }
  }
}
// The sums of the pieces of rows: a warp for each.
__global__ void __launch_bounds__(256) piece_sums_kernel(NbitsPlanes in, int32_t* sums) {
  trigger_and_wait();
  const int lane = threadIdx.x % kWarp;
  const int64_t step = int64_t{gridDim.x} * (blockDim.x / kWarp), all = in.rows * in.pieces;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; i < all; i += step) {
    const int64_t row = i / in.pieces, first = i % in.pieces * in.piece;
    int h = 0, l = 0;
    for (int64_t k = first + 4 * lane; k < first + in.piece && k < in.ld; k += 4 * kWarp) {
      h = __dp4a(*reinterpret_cast<const int*>(in.a + row * in.ld + k), 0x01010101, h);
      l = __dp4a(*reinterpret_cast<const int*>(in.a + (in.rows + row) * in.ld + k), 0x01010101, l);
    }
    int sum = 256 * h + l;
    for (int s = kWarp / 2; s > 0; s /= 2) sum += __shfl_xor_sync(kFullWarp, sum, s);
    if (lane == 0) sums[i] = sum;
  }
}

#if __CUDA_ARCH__ >= 800
// Two integers of each byte, the low half first.
__device__ inline uint4 widen_halves(uint2 x) {
  constexpr uint32_t kLow = 0x0f0f0f0f;
  const uint32_t even[2] = {x.x & kLow, x.y & kLow}, odd[2] = {x.x >> 4 & kLow, x.y >> 4 & kLow};
  return {__byte_perm(even[0], odd[0], 0x5140), __byte_perm(even[0], odd[0], 0x7362),
          __byte_perm(even[1], odd[1], 0x5140), __byte_perm(even[1], odd[1], 0x7362)};
}

struct NbitsSums {
  int h[2][4][4], l[2][4][4];
  int64_t all[2][4][4];
};
// What the sums of a piece are multiplied by and lose, of rows from m and columns from n on.
struct PieceFactors {
  int of_a[4], t[4][2], z[4][2];
};
__device__ inline void load_factors(const NbitsPlanes& in, PieceFactors& f, int64_t piece, int64_t m,
                                    int64_t n) {
  const int64_t group = in.l.block ? piece * in.piece / in.l.block : 0;
#pragma unroll
  for (int r = 0; r < 4; ++r)
    f.of_a[r] = in.of_a && m + 8 * r < in.rows ? in.of_a[(m + 8 * r) * in.pieces + piece] : 0;
  const int32_t *t = in.t + group * in.l.n, *z = in.zeros + (in.zero_groups == 1 ? 0 : group) * in.l.n;
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int64_t c = n + 8 * j + e;
      f.t[j][e] = c < in.l.n ? t[c] : 0;
      f.z[j][e] = in.of_a && c < in.l.n ? z[c] : 0;
    }
}
__device__ inline void join_piece(NbitsSums& s, const PieceFactors& f) {
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        int &h = s.h[r / 2][j][r % 2 * 2 + e], &l = s.l[r / 2][j][r % 2 * 2 + e];
        s.all[r / 2][j][r % 2 * 2 + e] += int64_t{f.t[j][e]} * (256 * h + l - f.z[j][e] * f.of_a[r]);
        h = l = 0;
      }
}
__device__ inline void store_sums(const NbitsPlanes& in, const NbitsSums& s, int64_t m, int64_t n,
                                  float* out) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int64_t to = m + 16 * i + q / 2 * 8, c = n + 8 * j + q % 2;
        if (to >= in.rows || c >= in.l.n) continue;
        if (in.totals)
          add_integer(in.totals + to * in.l.n + c, static_cast<unsigned long long>(s.all[i][j][q]));
        else
          out[to * in.l.n + c] = rounded_result(s.all[i][j][q], in.ea[to], in.t[in.l.blocks * in.l.n + c]);
      }
}
#endif

// A tile of 64 x 64 results of 4 warps.
template <int kBits, class T = NbitsTile>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) nbits_mma_kernel(NbitsPlanes in, float* out) {
#if __CUDA_ARCH__ >= 800
  trigger_and_wait();
  constexpr int kPlaneBytes = T::kRows * kStepK, kStage = 3 * kPlaneBytes;
  constexpr int kHalves = T::kColumns * kPieces / T::kThreads;  // of a thread, to widen
  extern __shared__ __align__(128) uint8_t stages[];
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / 64 * 32, column = threadIdx.x / 32 % 2 * 32;
  const int64_t tile = blockIdx.x / in.splits, first = blockIdx.x % in.splits * in.steps;
  const int64_t i0 = tile % in.row_tiles * T::kRows, j0 = tile / in.row_tiles * T::kColumns;
  const int64_t steps = num::min_i64(first + in.steps, ceil_div(in.l.k, kStepK));
  auto load = [&](int64_t step) {
    if (step < steps) {
      uint8_t* const to = stages + step % T::kStages * kStage;
      const int64_t k = step * kStepK;
      copy_rows<T::kRows, T::kThreads>(to, in.a, in.ld, i0, in.rows, k, in.ld);
      copy_rows<T::kRows, T::kThreads>(to + kPlaneBytes, in.a + in.rows * in.ld, in.ld, i0, in.rows, k,
                                       in.ld);
      if constexpr (kBits == 8)
        copy_rows<T::kColumns, T::kThreads>(to + 2 * kPlaneBytes, in.b, in.ld_b, j0, in.l.n, k, in.ld_b);
    }
    commit_copies();
  };
  uint2 halves[kHalves] = {};
  auto load_halves = [&](int64_t step) {
    const int64_t k = step * kStepK + threadIdx.x % kPieces * 16;
#pragma unroll
    for (int i = 0; i < kHalves; ++i) {
      const int64_t j = j0 + threadIdx.x / kPieces + i * (T::kThreads / kPieces);
      halves[i] = j < in.l.n && k < in.ld_b
                      ? __ldg(reinterpret_cast<const uint2*>(in.b + j * (in.ld_b / 2) + k / 2))
                      : uint2{};
    }
  };
  auto store_halves = [&](int64_t step) {
    uint8_t* const to = stages + step % T::kStages * kStage + 2 * kPlaneBytes;
#pragma unroll
    for (int i = 0; i < kHalves; ++i)
      *reinterpret_cast<uint4*>(to + piece_at(threadIdx.x / kPieces + i * (T::kThreads / kPieces),
                                              threadIdx.x % kPieces)) = widen_halves(halves[i]);
  };
  NbitsSums s{};
  const int64_t m = i0 + row + lane / 4, n = j0 + column + lane % 4 * 2;
  const int row_a = row + lane % 16, row_b = column + lane / 16 * 8 + lane % 8;
  const int half_a = lane / 16, half_b = lane / 8 % 2;
  for (int i = 0; i < T::kStages - 1; ++i) load(first + i);
  if (kBits == 4) load_halves(first);
  for (int64_t step = first; step < steps; ++step) {
    if constexpr (kBits == 4) store_halves(step);
    wait_copies<T::kStages - 2>();
    __syncthreads();
    load(step + T::kStages - 1);
    if (kBits == 4 && step + 1 < steps) load_halves(step + 1);
    const auto at = shared + static_cast<uint32_t>(step % T::kStages) * kStage;
#pragma unroll
    for (int k = 0; k < kStepK / 32; ++k) {
      const int64_t begin = step * kStepK + 32 * k, end = begin + 32;
      const bool joins = begin < in.l.k && (end % in.piece == 0 || end >= in.l.k);
      PieceFactors factors;
      if (joins) load_factors(in, factors, begin / in.piece, m, n);
      uint32_t h[2][4], l[2][4], y[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        load_fragments(h[i], at + piece_at(row_a + 16 * i, 2 * k + half_a));
        load_fragments(l[i], at + kPlaneBytes + piece_at(row_a + 16 * i, 2 * k + half_a));
        load_fragments(y[i], at + 2 * kPlaneBytes + piece_at(row_b + 16 * i, 2 * k + half_b));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          multiply_bytes<false>(s.h[i][j], h[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
          multiply_bytes<false>(s.l[i][j], l[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
      if (joins) join_piece(s, factors);
    }
  }
  store_sums(in, s, m, n, out);
#endif
}

// One group for all of K: the results from the sums of both planes, `rows` rows of n each, which
// begin at row `first`.
__global__ void __launch_bounds__(256)
    join_planes_kernel(NbitsPlanes in, const int32_t* sums, int64_t first, int64_t rows, float* out) {
  trigger_and_wait();
  const int64_t step = int64_t{gridDim.x} * blockDim.x, n = in.l.n;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < rows * n; at += step) {
    const int64_t row = first + at / n, j = at % n;
    int64_t sum = int64_t{256} * sums[at] + sums[rows * n + at];
    if (in.of_a) sum -= int64_t{in.zeros[j]} * in.of_a[row];
    out[row * n + j] = rounded_result(in.t[j] * sum, in.ea[row], in.t[n + j]);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
