// Products of bytes on the tensor cores that GPUs have from compute capability 8.0 on (mma.sync).
// Rows of both operands have their k side by side, a multiple of 16 bytes from row to row. The sums
// are exact modulo 2^32 (matmul_integer.2), so splits of K are free: they are added atomically.
#pragma once
#include <type_traits>

#include "num/contract/schedule.h"
#include "kernels/cuda/async_copy.cuh"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {

// What is added to the sums of products: -za times the column's sum of b, -zb times the row's sum
// of a, and K za zb.
struct ByteZeros {
  const uint8_t* p;  // null: 0
  bool one, is_signed;
  int32_t moved;  // what the bytes were moved by
  __device__ uint32_t at(int64_t i) const {
    const int z = p ? p[one ? 0 : i] : 0;
    return static_cast<uint32_t>((is_signed ? static_cast<int8_t>(z) : z) - moved);
  }
};
struct ByteProducts {
  matmul::Shape s;
  const uint8_t *a, *b;  // a: rows of ld_a bytes; b: of each matrix n columns of ld_b bytes
  int64_t ld_a, ld_b;
  const int32_t *sum_a, *sum_b;  // null: not needed
  ByteZeros zero_a, zero_b;
  int64_t rows_a;                           // of a matrix of a, which zero_a has rows for
  int64_t row_tiles, column_tiles, splits;  // of the results, of K
  int32_t* out;
};

namespace {

constexpr int kStepK = 128;           // bytes of k of a stage
constexpr int kPieces = kStepK / 16;  // of 16 bytes

// A tile of kRows x kColumns results: warps of kWarpRows x kWarpColumns.
template <int kRows_, int kColumns_, int kWarpRows_, int kWarpColumns_, int kStages_, int kBlocks_>
struct ByteTile {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kWarpRows = kWarpRows_;
  static constexpr int kWarpColumns = kWarpColumns_, kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = kRows / kWarpRows * (kColumns / kWarpColumns) * kWarp;
  static constexpr int kStageBytes = (kRows + kColumns) * kStepK;
};

__device__ inline uint32_t byte_correction(const ByteProducts& in, int64_t row, int64_t i, int64_t column,
                                           int64_t j) {
  uint32_t y = 0;
  const uint32_t za = in.zero_a.at(i % in.rows_a), zb = in.zero_b.at(j);
  if (in.sum_b) y -= za * static_cast<uint32_t>(in.sum_b[column]);
  if (in.sum_a) y -= zb * static_cast<uint32_t>(in.sum_a[row]);
  return y + za * zb * static_cast<uint32_t>(in.s.k);
}
// The first row of a and the first column of b of a product.
struct FirstRows {
  int64_t a, b;
};
__device__ inline FirstRows first_rows(const matmul::Shape& s, int64_t batch) {
  const matmul::Offsets at = matmul::offsets(s, batch);
  return {at.a / s.k, at.b_matrix * s.n};
}
__global__ void __launch_bounds__(256) byte_corrections_kernel(ByteProducts in) {
  trigger_and_wait();
  const int64_t n = in.s.batches * in.s.m * in.s.n, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n; at += step) {
    const int64_t i = at / in.s.n % in.s.m, j = at % in.s.n;
    const FirstRows first = first_rows(in.s, at / in.s.n / in.s.m);
    in.out[at] = static_cast<int32_t>(byte_correction(in, first.a + i, i, first.b + j, j));
  }
}

// Sums of integers modulo 2^32: no order changes a bit.
template <class T>
__device__ inline void add_integer(T* integer_at, T y) {
  static_assert(std::is_integral_v<T>);
  atomicAdd(integer_at, y);
}

#if __CUDA_ARCH__ >= 800
__device__ inline void load_fragments(uint32_t (&d)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}
template <bool kUnsignedA>
__device__ inline void multiply_bytes(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (kUnsignedA)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The byte of a piece of a row in a stage: banks differ in eight adjacent rows.
__device__ inline uint32_t piece_at(int row, int piece) {
  return static_cast<uint32_t>(row * kStepK + (piece ^ (row & 7)) * 16);
}

// Copies pieces of `kRows` rows from `first` on, bytes [k, k + kStepK), into a stage.
template <int kRows, int kThreads>
__device__ inline void copy_rows(uint8_t* to, const uint8_t* p, int64_t ld, int64_t first, int64_t rows,
                                 int64_t k, int64_t end) {
  const int piece = threadIdx.x % kPieces;
  const bool inside_k = k + piece * 16 < end;
#pragma unroll
  for (int r = threadIdx.x / kPieces; r < kRows; r += kThreads / kPieces) {
    const bool inside = inside_k && first + r < rows;
    copy_async_16(to + piece_at(r, piece), inside ? p + (first + r) * ld + k + piece * 16 : p, inside);
  }
}
#endif

// Stores a thread's results, from (m0, n0) on, or adds them where K is split.
template <class T, int kRowTiles, int kColumnTiles>
__device__ inline void store_products(const ByteProducts& in, const int (&sum)[kRowTiles][kColumnTiles][4],
                                      int64_t batch, const FirstRows& first, int64_t m0, int64_t n0) {
  const bool pairs = in.s.n % 2 == 0 && reinterpret_cast<uintptr_t>(in.out) % 8 == 0;
  const bool corrected = in.splits == 1 && (in.sum_a || in.sum_b);
  uint32_t za[2 * kRowTiles], rest[2 * kRowTiles];  // of rows: the zero point; the sum of a less K of it
#pragma unroll
  for (int r = 0; r < 2 * kRowTiles; ++r) {
    const int64_t m = m0 + 8 * r;
    const bool inside = corrected && m < in.s.m;
    za[r] = inside ? in.zero_a.at(in.zero_a.one ? 0 : m % in.rows_a) : 0;
    rest[r] = (inside && in.sum_a ? static_cast<uint32_t>(in.sum_a[first.a + m]) : 0) -
              za[r] * static_cast<uint32_t>(in.s.k);
  }
#pragma unroll
  for (int j = 0; j < kColumnTiles; ++j) {
    const int64_t n = n0 + 8 * j;
    const bool has[2] = {n < in.s.n, n + 1 < in.s.n};
    uint32_t zb[2], of_b[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      zb[e] = corrected && has[e] ? in.zero_b.at(n + e) : 0;
      of_b[e] = corrected && has[e] && in.sum_b ? static_cast<uint32_t>(in.sum_b[first.b + n + e]) : 0;
    }
#pragma unroll
    for (int r = 0; r < 2 * kRowTiles; ++r) {
      const int64_t m = m0 + 8 * r;
      if (m >= in.s.m) continue;
      int32_t* const to = in.out + (batch * in.s.m + m) * in.s.n + n;
      int y[2];
#pragma unroll
      for (int e = 0; e < 2; ++e)
        y[e] = static_cast<int>(static_cast<uint32_t>(sum[r / 2][j][r % 2 * 2 + e]) - za[r] * of_b[e] -
                                zb[e] * rest[r]);
      if (in.splits > 1) {
        if (has[0]) add_integer(to, y[0]);
        if (has[1]) add_integer(to + 1, y[1]);
      } else if (pairs && has[1]) {
        *reinterpret_cast<int2*>(to) = make_int2(y[0], y[1]);
      } else {
        if (has[0]) to[0] = y[0];
        if (has[1]) to[1] = y[1];
      }
    }
  }
}

template <class T, bool kUnsignedA>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) byte_products_kernel(ByteProducts in) {
#if __CUDA_ARCH__ >= 800
  trigger_and_wait();
  extern __shared__ __align__(128) uint8_t stages[];
  constexpr int kRowTiles = T::kWarpRows / 16, kColumnTiles = T::kWarpColumns / 8;
  constexpr int kBand = 8;  // tiles of rows whose columns are taken together, for the L2 cache
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int warp_row = warp / (T::kColumns / T::kWarpColumns) * T::kWarpRows;
  const int warp_column = warp % (T::kColumns / T::kWarpColumns) * T::kWarpColumns;

  int64_t t = blockIdx.x;
  const int64_t split = t % in.splits;
  t /= in.splits;
  const int64_t per_product = in.row_tiles * in.column_tiles, batch = t / per_product;
  t %= per_product;
  const int64_t band = t / (kBand * in.column_tiles), in_band = t % (kBand * in.column_tiles);
  const int64_t height = num::min_i64(kBand, in.row_tiles - band * kBand);
  const int64_t i0 = (band * kBand + in_band % height) * T::kRows, j0 = in_band / height * T::kColumns;
  const FirstRows first = first_rows(in.s, batch);
  const uint8_t *a = in.a + first.a * in.ld_a, *b = in.b + first.b * in.ld_b;
  const int64_t all = ceil_div(in.s.k, kStepK), per_split = ceil_div(all, in.splits);
  const int64_t begin = split * per_split, steps = num::min_i64(per_split, all - begin);
  if (steps <= 0) return;

  auto load = [&](int64_t step) {
    if (step < steps) {
      uint8_t* const to = stages + step % T::kStages * T::kStageBytes;
      const int64_t k = (begin + step) * kStepK;
      copy_rows<T::kRows, T::kThreads>(to, a, in.ld_a, i0, in.s.m, k, in.ld_a);
      copy_rows<T::kColumns, T::kThreads>(to + T::kRows * kStepK, b, in.ld_b, j0, in.s.n, k, in.ld_b);
    }
    commit_copies();
  };
  int sum[kRowTiles][kColumnTiles][4] = {};
  for (int64_t step = 0; step < T::kStages - 1; ++step) load(step);
  const int row_a = warp_row + lane % 16, half_a = lane / 16;
  const int row_b = warp_column + lane / 16 * 8 + lane % 8, half_b = lane / 8 % 2;
  for (int64_t step = 0; step < steps; ++step) {
    wait_copies<T::kStages - 2>();
    __syncthreads();
    load(step + T::kStages - 1);
    const uint32_t at = shared + static_cast<uint32_t>(step % T::kStages) * T::kStageBytes;
    const uint32_t at_b = at + T::kRows * kStepK;
#pragma unroll
    for (int k = 0; k < kStepK / 32; ++k) {
      uint32_t x[kRowTiles][4], y[kColumnTiles / 2][4];
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) load_fragments(x[i], at + piece_at(row_a + 16 * i, 2 * k + half_a));
#pragma unroll
      for (int j = 0; j < kColumnTiles / 2; ++j)
        load_fragments(y[j], at_b + piece_at(row_b + 16 * j, 2 * k + half_b));
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i)
#pragma unroll
        for (int j = 0; j < kColumnTiles; ++j)
          multiply_bytes<kUnsignedA>(sum[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
    }
  }
  wait_copies<0>();

  store_products<T>(in, sum, batch, first, i0 + warp_row + lane / 4, j0 + warp_column + lane % 4 * 2);
#endif
}

// Sums of rows of signed or unsigned bytes: a warp for each.
__global__ void __launch_bounds__(256)
    byte_sums_kernel(const uint8_t* p, int64_t rows, int64_t ld, bool is_signed, int32_t* sums) {
  trigger_and_wait();
  const int lane = threadIdx.x % kWarp;
  const int64_t step = int64_t{gridDim.x} * (blockDim.x / kWarp);
  for (int64_t r = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; r < rows; r += step) {
    unsigned of_unsigned = 0;
    int of_signed = 0;
    for (int64_t k = lane * 4; k < ld; k += 4 * kWarp) {
      const uint32_t w = *reinterpret_cast<const uint32_t*>(p + r * ld + k);
      if (is_signed)
        of_signed = __dp4a(static_cast<int>(w), 0x01010101, of_signed);
      else
        of_unsigned = __dp4a(w, 0x01010101u, of_unsigned);
    }
    int sum = is_signed ? of_signed : static_cast<int>(of_unsigned);
    for (int s = kWarp / 2; s > 0; s /= 2) sum += __shfl_xor_sync(kFullWarp, sum, s);
    if (lane == 0) sums[r] = sum;
  }
}

// Rows of k bytes, moved, to rows of ld bytes that end in zeros.
__global__ void __launch_bounds__(256)
    pad_rows_kernel(const uint8_t* from, int64_t rows, int64_t k, int64_t ld, uint8_t* to) {
  trigger_and_wait();
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * ld; i += step)
    to[i] = i % ld < k ? from[i / ld * k + i % ld] : 0;
}

// Matrices [K, N] to their columns of ld bytes each, flipped to signed bytes, zeros behind K.
constexpr int kTurnBytes = 64;
__global__ void __launch_bounds__(256) turn_bytes_kernel(const uint8_t* from, int64_t matrices, int64_t k,
                                                         int64_t n, int64_t ld, uint8_t flip, uint8_t* to) {
  trigger_and_wait();
  __shared__ uint8_t tile[kTurnBytes][kTurnBytes + 4];
  const int64_t down = ceil_div(ld, kTurnBytes), across = ceil_div(n, kTurnBytes);
  for (int64_t t = blockIdx.x; t < matrices * down * across; t += gridDim.x) {
    const int64_t matrix = t / (down * across), k0 = t / across % down * kTurnBytes,
                  j0 = t % across * kTurnBytes;
    __syncthreads();
    for (int i = threadIdx.x; i < kTurnBytes * kTurnBytes; i += 256) {
      const int r = i / kTurnBytes, c = i % kTurnBytes;
      const bool inside = k0 + r < k && j0 + c < n;
      tile[c][r] = inside ? from[(matrix * k + k0 + r) * n + j0 + c] ^ flip : 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kTurnBytes * kTurnBytes / 4; i += 256) {
      const int c = i / (kTurnBytes / 4), r = i % (kTurnBytes / 4) * 4;
      if (j0 + c < n && k0 + r < ld)
        *reinterpret_cast<uint32_t*>(to + (matrix * n + j0 + c) * ld + k0 + r) =
            *reinterpret_cast<const uint32_t*>(&tile[c][r]);
    }
  }
}

// How products are tiled: few rows, tiles that fill the machine by splits of K, or large tiles.
using FewRows = ByteTile<16, 64, 16, 16, 6, 2>;
using Medium = ByteTile<64, 64, 32, 32, 4, 3>;
using Wide = ByteTile<128, 128, 64, 32, 3, 2>;

template <class T>
void enqueue_byte_tiles(ByteProducts in, bool unsigned_a, int64_t splits, Stream stream) {
  in.row_tiles = ceil_div(in.s.m, T::kRows), in.column_tiles = ceil_div(in.s.n, T::kColumns),
  in.splits = splits;
  constexpr int kThreads = 256;
  if (splits > 1)
    launch_dependent(byte_corrections_kernel,
                     dim3(grid_for(ceil_div(in.s.batches * in.s.m * in.s.n, kThreads))), dim3(kThreads), 0,
                     stream, in);
  const dim3 grid(grid_for(in.s.batches * in.row_tiles * in.column_tiles * splits)), block(T::kThreads);
  constexpr size_t kShared = T::kStages * T::kStageBytes;
  if (unsigned_a)
    launch_dependent(byte_products_kernel<T, true>, grid, block, kShared, stream, in);
  else
    launch_dependent(byte_products_kernel<T, false>, grid, block, kShared, stream, in);
}
// forced: 1, 2, 3 take the first, the second, the third.
inline void enqueue_byte_products(const ByteProducts& in, bool unsigned_a, int forced, Stream stream) {
  const int64_t most = multiprocessors(), steps = ceil_div(in.s.k, kStepK);
  auto tiles = [&](int64_t rows, int64_t columns) {
    return in.s.batches * ceil_div(in.s.m, rows) * ceil_div(in.s.n, columns);
  };
  // Splits of K that leave each block a few steps, until blocks fill the machine.
  auto splits = [&](int64_t rows, int64_t columns) {
    const int64_t wanted = 2 * most / tiles(rows, columns), limit = ceil_div(steps, 8);
    return wanted < 1 ? 1 : wanted < limit ? wanted : limit;
  };
  if (forced ? forced == 1 : in.s.m <= FewRows::kRows)
    enqueue_byte_tiles<FewRows>(in, unsigned_a, splits(FewRows::kRows, FewRows::kColumns), stream);
  else if (forced ? forced == 2 : tiles(Wide::kRows, Wide::kColumns) < most)
    enqueue_byte_tiles<Medium>(in, unsigned_a, splits(Medium::kRows, Medium::kColumns), stream);
  else
    enqueue_byte_tiles<Wide>(in, unsigned_a, 1, stream);
}
// Whether the code that the calling thread's device runs has these instructions: not if it was made
// from older PTX.
inline bool has_tensor_cores() {
  thread_local int known_device = -1;
  thread_local bool has = false;
  int device = 0;
  cudaGetDevice(&device);
  if (device != known_device) {
    cudaFuncAttributes code{};
    has = cudaFuncGetAttributes(&code, byte_products_kernel<Wide, false>) == cudaSuccess &&
          code.ptxVersion >= 80;
    known_device = device;
  }
  return has;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
