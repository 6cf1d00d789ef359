// Rounds rows to integers of 16 bits and writes their planes (exact16.1, exact16.2).
#pragma once
#include "kernels/cuda/rounded_rows.cuh"
#include "ops/matmul/cuda/exact16/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGroup = 16;  // elements whose bytes are stored together
constexpr int kColumnThreads = 512;

// Rows of matrices: k elements `step` apart, `row` from row to row.
template <class W>
struct RowsOf {
  const typename W::T* p;
  int64_t k, rows, matrices, row, step;
};

// The integers of a group of a row with scale e, stored as bytes of both planes.
__device__ inline void store_group(const float (&x)[kGroup], int32_t e, const Planes& to, uint8_t* block,
                                   int row, int group) {
  const bool none = e == num::kExact16NoIntegers;
  const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
  uint32_t h[kGroup / 4], l[kGroup / 4];
  for (int w = 0; w < kGroup / 4; ++w) {
    int q[4];
    for (int i = 0; i < 4; ++i) q[i] = none ? 0 : __float2int_rn(x[4 * w + i] * by.first * by.second);
    l[w] = __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
    for (int& one : q) one += 128;  // h = (q + 128) >> 8: the second byte
    h[w] = __byte_perm(__byte_perm(q[0], q[1], 0x0051), __byte_perm(q[2], q[3], 0x0051), 0x5410);
  }
  uint8_t* at = block + row * kBlockK + (group ^ (row & 7)) * kGroup;
  *reinterpret_cast<uint4*>(at) = make_uint4(h[0], h[1], h[2], h[3]);
  *reinterpret_cast<uint4*>(at + to.height * kBlockK) = make_uint4(l[0], l[1], l[2], l[3]);
}

// A group of a row whose elements lie together; zeros behind its end.
template <class W>
__device__ inline void load_group(float (&x)[kGroup], const typename W::T* row, int64_t first, int64_t k) {
  using T = typename W::T;
  constexpr int kPerLoad = 16 / sizeof(T);
  const T* p = row + first;
  if (first + kGroup <= k && reinterpret_cast<uintptr_t>(p) % 16 == 0) {
    for (int i = 0; i < kGroup; i += kPerLoad) {
      const uint4 u = *reinterpret_cast<const uint4*>(p + i);
      const T* one = reinterpret_cast<const T*>(&u);
      for (int j = 0; j < kPerLoad; ++j) x[i + j] = W::one(one[j]);
    }
  } else {
    for (int i = 0; i < kGroup; ++i) x[i] = first + i < k ? W::one(p[i]) : 0.0f;
  }
}

// One row, by all threads of a block; returns its scale. kHeld: a thread has one group and keeps
// it.
template <class W, bool kHeld>
__device__ inline int32_t quantize_row(const typename W::T* from, int64_t k, const Planes& to,
                                       uint8_t* blocks, int row) {
  __shared__ uint32_t warp_largest[32];
  constexpr int kGroups = kBlockK / kGroup;
  const int t = threadIdx.x, threads = blockDim.x, groups = static_cast<int>(to.chunks) * kGroups;
  float x[kGroup];
  uint32_t largest = 0;
  for (int g = t; g < groups; g += threads) {
    load_group<W>(x, from, int64_t{g} * kGroup, k);
    for (const float one : x) largest = largest_of(largest, one);
    if (kHeld) break;
  }
  largest = largest_in_warp(largest);
  if (threads > kWarp) {
    __syncthreads();
    if (t % kWarp == 0) warp_largest[t / kWarp] = largest;
    __syncthreads();
    largest = largest_in_warp(t % kWarp < threads / kWarp ? warp_largest[t % kWarp] : 0);
  }
  const int32_t e = num::exact16_scale(largest);
  for (int g = t; g < groups; g += threads) {
    if (!kHeld) load_group<W>(x, from, int64_t{g} * kGroup, k);
    store_group(x, e, to, blocks + g / kGroups * to.block_bytes(), row, g % kGroups);
    if (kHeld) break;
  }
  return e;
}

// Rows whose elements lie together: a block of threads for each. Zeroes `counters`, too, which the
// product's kernel counts with.
template <class W, bool kHeld>
__global__ void __launch_bounds__(1024)
    quantize_rows_kernel(RowsOf<W> from, Planes to, bool pad_rows, uint32_t* counters, int counter_count) {
  trigger_and_wait();
  const int t = threadIdx.x;
  if (blockIdx.x == 0 && blockIdx.y == 0)
    for (int i = t; i < counter_count; i += blockDim.x) counters[i] = 0;
  const int64_t padded = pad_rows ? to.tiles * to.height : from.rows;
  const int shift = 31 - __clz(to.height);  // a power of two
  for (int64_t matrix = blockIdx.y; matrix < from.matrices; matrix += gridDim.y)
    for (int64_t r = blockIdx.x; r < padded; r += gridDim.x) {
      uint8_t* blocks = to.blocks + (matrix * to.tiles + (r >> shift)) * to.chunks * to.block_bytes();
      const int32_t e =
          quantize_row<W, kHeld>(from.p + (matrix * from.rows + r) * from.row, r < from.rows ? from.k : 0, to,
                                 blocks, static_cast<int>(r & (to.height - 1)));
      if (t == 0) to.scales[matrix * to.tiles * to.height + r] = e;
    }
}

// Columns of matrices [K, N]: a block of threads for each tile of 64.
template <class W>
__global__ void __launch_bounds__(kColumnThreads) quantize_columns_kernel(RowsOf<W> from, Planes to) {
  trigger_and_wait();
  constexpr int kSlices = kColumnThreads / kBlockRows;
  __shared__ uint32_t slice_largest[kSlices][kBlockRows];
  const int column = threadIdx.x % kBlockRows, slice = threadIdx.x / kBlockRows;
  for (int64_t i = blockIdx.x; i < to.tiles * from.matrices; i += gridDim.x) {
    const int64_t matrix = i / to.tiles, n = i % to.tiles * kBlockRows + column;
    const typename W::T* p = from.p + matrix * from.rows * from.k + n;
    const int64_t k = n < from.rows ? from.k : 0;
    uint32_t largest = 0;
    for (int64_t at = slice; at < k; at += kSlices) largest = largest_of(largest, W::one(p[at * from.step]));
    __syncthreads();
    slice_largest[slice][column] = largest;
    __syncthreads();
    for (int s = 0; s < kSlices; ++s) {
      const uint32_t u = slice_largest[s][column];
      largest = u > largest ? u : largest;
    }
    const int32_t e = num::exact16_scale(largest);
    if (slice == 0) to.scales[i * kBlockRows + column] = e;
    uint8_t* blocks = to.blocks + i * to.chunks * to.block_bytes();
    for (int64_t g = slice; g < to.chunks * (kBlockK / kGroup); g += kSlices) {
      float x[kGroup];
      for (int j = 0; j < kGroup; ++j) {
        const int64_t at = g * kGroup + j;
        x[j] = at < k ? W::one(p[at * from.step]) : 0.0f;
      }
      store_group(x, e, to, blocks + g / (kBlockK / kGroup) * to.block_bytes(), column,
                  static_cast<int>(g % (kBlockK / kGroup)));
    }
  }
}

// pad_rows: also the rows that fill the last tile, as zeros. A product's rows of a need none: what
// they would give is never stored.
template <class W>
void enqueue_rows(const RowsOf<W>& from, const Planes& to, bool pad_rows, uint32_t* counters,
                  int counter_count, Stream stream) {
  const int64_t rows = pad_rows ? to.tiles * to.height : from.rows;
  const int64_t warps = ceil_div(to.chunks * (kBlockK / kGroup), kWarp);
  const bool held = warps <= 32;
  const auto kernel = held ? quantize_rows_kernel<W, true> : quantize_rows_kernel<W, false>;
  launch_dependent(kernel,
                   dim3(grid_for(rows), static_cast<unsigned>(from.matrices < 65535 ? from.matrices : 65535)),
                   dim3(static_cast<unsigned>(held ? warps : 32) * kWarp), 0, stream, from, to, pad_rows,
                   counters, counter_count);
}
// b: matrices of [K, N], or [N, K] with trans_b, by columns.
void enqueue_weights(const View& b, bool trans_b, void* memory, Stream stream) {
  const int64_t k = b.dim[b.rank - (trans_b ? 1 : 2)], n = b.dim[b.rank - (trans_b ? 2 : 1)];
  if (b.elements() == 0) return;
  const int64_t matrices = b.elements() / (k * n);
  const Planes to = planes(memory, matrices, n, k, kBlockRows);
  with_format(b.dtype, [&](auto format) {
    using W = decltype(format);
    const RowsOf<W> from{b.as<const typename W::T>(), k, n, matrices, trans_b ? k : 1, trans_b ? 1 : n};
    if (trans_b) return enqueue_rows(from, to, true, nullptr, 0, stream);
    launch_dependent(quantize_columns_kernel<W>, dim3(grid_for(to.tiles * matrices)), dim3(kColumnThreads), 0,
                     stream, from, to);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
