// Top-k by pairs key << 32 | index, which are all different, so any sort of them gives topk.3. A
// block sorts short rows in shared memory. Of long rows it selects the k first by radix and sorts
// these, or, if k is large, the row is sorted in Call::shared by a bitonic network.
#include "kernels/cuda/block_sort.cuh"
#include "ops/topk/topk.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// One row of the operand and the result.
struct TopkRow {
  const float* x;
  int64_t* out;
  int64_t inner;
  uint32_t flip;
  __device__ uint64_t pair(int64_t i) const {
    return static_cast<uint64_t>(order_key(x[i * inner]) ^ flip) << 32 | static_cast<uint64_t>(i);
  }
  __device__ void store(int64_t j, uint64_t pair) const {
    out[j * inner] = static_cast<int64_t>(pair & 0xffffffff);
  }
};
struct TopkRows {
  TopkShape s;
  const float* x;
  int64_t* out;
  __device__ int64_t count() const { return s.outer * s.inner; }
  __device__ TopkRow row(int64_t r) const {
    const int64_t outer = r / s.inner, column = r % s.inner;
    return {x + outer * s.n * s.inner + column, out + outer * s.k * s.inner + column, s.inner,
            s.largest ? 0xffffffff : 0};
  }
};

// Sorts short rows, a block each. count: n, rounded up to a power of two.
__global__ void __launch_bounds__(kSortThreads) sort_rows_kernel(TopkRows rows, int count) {
  __shared__ uint64_t p[kBlockPairs];
  for (int64_t r = blockIdx.x; r < rows.count(); r += gridDim.x) {
    const TopkRow row = rows.row(r);
    for (int i = threadIdx.x; i < count; i += blockDim.x) p[i] = i < rows.s.n ? row.pair(i) : kLastPair;
    bitonic_sort(p, count, 0);
    for (int j = threadIdx.x; j < rows.s.k; j += blockDim.x) row.store(j, p[j]);
    __syncthreads();
  }
}

// Selects the k <= kBlockPairs first pairs of long rows, a block each.
__global__ void __launch_bounds__(kSortThreads) select_rows_kernel(TopkRows rows) {
  __shared__ uint64_t p[kBlockPairs];
  __shared__ RadixSelectState selection;
  const auto n = static_cast<uint32_t>(rows.s.n), k = static_cast<uint32_t>(rows.s.k);
  for (int64_t r = blockIdx.x; r < rows.count(); r += gridDim.x) {
    const TopkRow row = rows.row(r);
    radix_select(p, selection, n, k, [&](uint32_t i) { return row.pair(i); });
    for (uint32_t j = threadIdx.x; j < k; j += kSortThreads) row.store(j, p[j]);
    __syncthreads();
  }
}

// Sorts long rows in padded[row * size + i]: sort_chunks_kernel fills and sorts chunks of
// kBlockPairs; merge_chunks_kernel makes the steps of a merge that stay within a chunk.
__global__ void __launch_bounds__(kSortThreads)
    sort_chunks_kernel(TopkRows rows, uint64_t* padded, int64_t size) {
  __shared__ uint64_t p[kBlockPairs];
  const int64_t chunks = size / kBlockPairs;
  for (int64_t u = blockIdx.x; u < rows.count() * chunks; u += gridDim.x) {
    const TopkRow row = rows.row(u / chunks);
    const int64_t first = u % chunks * kBlockPairs;
    for (int i = threadIdx.x; i < kBlockPairs; i += kSortThreads)
      p[i] = first + i < rows.s.n ? row.pair(first + i) : kLastPair;
    bitonic_sort(p, kBlockPairs, first);
    for (int i = threadIdx.x; i < kBlockPairs; i += kSortThreads) padded[u * kBlockPairs + i] = p[i];
    __syncthreads();
  }
}
__global__ void __launch_bounds__(kSortThreads)
    merge_chunks_kernel(uint64_t* padded, int64_t units, int64_t chunks, int64_t size) {
  __shared__ uint64_t p[kBlockPairs];
  for (int64_t u = blockIdx.x; u < units; u += gridDim.x) {
    for (int i = threadIdx.x; i < kBlockPairs; i += kSortThreads) p[i] = padded[u * kBlockPairs + i];
    bitonic_merge(p, kBlockPairs, u % chunks * kBlockPairs, size, kBlockPairs / 2);
    __syncthreads();
    for (int i = threadIdx.x; i < kBlockPairs; i += kSortThreads) padded[u * kBlockPairs + i] = p[i];
    __syncthreads();
  }
}

int64_t power_of_two(int64_t n) {
  int64_t p = 2;
  while (p < n) p *= 2;
  return p;
}
bool sorts_in_memory(const TopkShape& s) {
  return s.n > kBlockPairs && s.k > kBlockPairs;
}

void enqueue(const Call& call, Stream stream) {
  const TopkShape s = topk_shape(call);
  const int64_t rows = topk_units(call, 0);
  if (rows == 0) return;
  const TopkRows r{s, call.in[0].as<const float>(), call.out[0].as<int64_t>()};
  if (s.n <= kBlockPairs) {
    const auto count = static_cast<int>(power_of_two(s.n));
    const int threads = count / 2 < kWarp ? kWarp : count / 2 < kSortThreads ? count / 2 : kSortThreads;
    return launch(sort_rows_kernel, dim3(grid_for(rows)), dim3(static_cast<unsigned>(threads)), 0, stream, r,
                  count);
  }
  if (!sorts_in_memory(s))
    return launch(select_rows_kernel, dim3(grid_for(rows)), dim3(kSortThreads), 0, stream, r);
  auto* padded = static_cast<uint64_t*>(call.shared);
  const int64_t all = power_of_two(s.n), chunks = all / kBlockPairs;
  launch(sort_chunks_kernel, dim3(grid_for(rows * chunks)), dim3(kSortThreads), 0, stream, r, padded, all);
  for (int64_t size = 2 * kBlockPairs; size <= all; size *= 2) {
    for (int64_t stride = size / 2; stride >= kBlockPairs; stride /= 2)
      launch_for_each(stream, rows * all / 2, [=] __device__(int64_t t) {
        const int64_t i = 2 * t - (t & (stride - 1));
        compare_exchange(padded[i], padded[i + stride], (i & (all - 1) & size) == 0);
      });
    launch(merge_chunks_kernel, dim3(grid_for(rows * chunks)), dim3(kSortThreads), 0, stream, padded,
           rows * chunks, chunks, size);
  }
  launch_for_each(stream, rows * s.k, [=] __device__(int64_t t) {
    r.row(t / s.k).store(t % s.k, padded[t / s.k * all + t % s.k]);
  });
}

size_t shared_bytes(const Call& call) {
  const TopkShape s = topk_shape(call);
  return sorts_in_memory(s) ? static_cast<size_t>(topk_units(call, 0) * power_of_two(s.n)) * sizeof(uint64_t)
                            : 0;
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "topk",
                             .isa = INVAR_ISA,
                             .shared_bytes = INVAR_ISA_NS::shared_bytes,
                             .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
