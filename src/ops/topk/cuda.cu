// Pairs key << 32 | index are all different, so any sort of them gives topk.3. Short rows are sorted by one block, in shared
// memory. Of long rows either the few first are selected, by radix, and then sorted, or the row is sorted in Call::shared
// by a bitonic network whose inner steps are blocks' own.
#include "kernels/cuda/block_sort.cuh"
#include "ops/topk/topk.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Pairs of one row.
struct Row {
  const float* x;
  int64_t* out;
  int64_t inner;
  uint32_t turn;
  __device__ uint64_t pair(int64_t i) const {
    return static_cast<uint64_t>(rank_of(x[i * inner]) ^ turn) << 32 | static_cast<uint64_t>(i);
  }
  __device__ void give(int64_t j, uint64_t pair) const {
    out[j * inner] = static_cast<int64_t>(pair & 0xffffffff);
  }
};
struct Rows {
  TopkShape s;
  const float* x;
  int64_t* out;
  __device__ int64_t count() const { return s.outer * s.inner; }
  __device__ Row row(int64_t r) const {
    const int64_t outer = r / s.inner, column = r % s.inner;
    return {x + outer * s.n * s.inner + column, out + outer * s.k * s.inner + column, s.inner,
            s.largest ? 0xffffffff : 0};
  }
};

// Rows that a block sorts; count: n, rounded up to a power of two.
__global__ void __launch_bounds__(kThreads) short_rows(Rows rows, int count) {
  __shared__ uint64_t p[kOwn];
  for (int64_t r = blockIdx.x; r < rows.count(); r += gridDim.x) {
    const Row row = rows.row(r);
    for (int i = threadIdx.x; i < count; i += blockDim.x) p[i] = i < rows.s.n ? row.pair(i) : kLast;
    sort_own(p, count, 0);
    for (int j = threadIdx.x; j < rows.s.k; j += blockDim.x) row.give(j, p[j]);
    __syncthreads();
  }
}

// The k <= kOwn first pairs of long rows.
__global__ void __launch_bounds__(kThreads) select_rows(Rows rows) {
  __shared__ uint64_t p[kOwn];
  __shared__ Selection selection;
  const auto n = static_cast<uint32_t>(rows.s.n), k = static_cast<uint32_t>(rows.s.k);
  for (int64_t r = blockIdx.x; r < rows.count(); r += gridDim.x) {
    const Row row = rows.row(r);
    select_own(p, selection, n, k, [&](uint32_t i) { return row.pair(i); });
    for (uint32_t j = threadIdx.x; j < k; j += kThreads) row.give(j, p[j]);
    __syncthreads();
  }
}

// All pairs of long rows, padded[row * size + i]: filled and sorted by kOwn, one step between blocks, the steps within.
__global__ void __launch_bounds__(kThreads) sort_chunks(Rows rows, uint64_t* padded, int64_t size) {
  __shared__ uint64_t p[kOwn];
  const int64_t chunks = size / kOwn;
  for (int64_t u = blockIdx.x; u < rows.count() * chunks; u += gridDim.x) {
    const Row row = rows.row(u / chunks);
    const int64_t first = u % chunks * kOwn;
    for (int i = threadIdx.x; i < kOwn; i += kThreads)
      p[i] = first + i < rows.s.n ? row.pair(first + i) : kLast;
    sort_own(p, kOwn, first);
    for (int i = threadIdx.x; i < kOwn; i += kThreads) padded[u * kOwn + i] = p[i];
    __syncthreads();
  }
}
__global__ void __launch_bounds__(kThreads)
    merge_chunks(uint64_t* padded, int64_t units, int64_t chunks, int64_t size) {
  __shared__ uint64_t p[kOwn];
  for (int64_t u = blockIdx.x; u < units; u += gridDim.x) {
    for (int i = threadIdx.x; i < kOwn; i += kThreads) p[i] = padded[u * kOwn + i];
    merge_own(p, kOwn, u % chunks * kOwn, size, kOwn / 2);
    __syncthreads();
    for (int i = threadIdx.x; i < kOwn; i += kThreads) padded[u * kOwn + i] = p[i];
    __syncthreads();
  }
}

int64_t power_of_two(int64_t n) {
  int64_t p = 2;
  while (p < n) p *= 2;
  return p;
}
bool sorts(const TopkShape& s) {
  return s.n > kOwn && s.k > kOwn;
}

void enqueue(const Call& call, Stream stream) {
  const TopkShape s = topk_shape(call);
  const int64_t rows = topk_units(call, 0);
  if (rows == 0) return;
  const Rows r{s, call.in[0].as<const float>(), call.out[0].as<int64_t>()};
  if (s.n <= kOwn) {
    const auto count = static_cast<int>(power_of_two(s.n));
    const int threads = count / 2 < kWarp ? kWarp : count / 2 < kThreads ? count / 2 : kThreads;
    return launch(short_rows, dim3(grid_for(rows)), dim3(static_cast<unsigned>(threads)), 0, stream, r,
                  count);
  }
  if (!sorts(s)) return launch(select_rows, dim3(grid_for(rows)), dim3(kThreads), 0, stream, r);
  auto* padded = static_cast<uint64_t*>(call.shared);
  const int64_t all = power_of_two(s.n), chunks = all / kOwn;
  launch(sort_chunks, dim3(grid_for(rows * chunks)), dim3(kThreads), 0, stream, r, padded, all);
  for (int64_t size = 2 * kOwn; size <= all; size *= 2) {
    for (int64_t stride = size / 2; stride >= kOwn; stride /= 2)
      each(stream, rows * all / 2, [=] __device__(int64_t t) {
        const int64_t i = 2 * t - (t & (stride - 1));
        exchange(padded[i], padded[i + stride], (i & (all - 1) & size) == 0);
      });
    launch(merge_chunks, dim3(grid_for(rows * chunks)), dim3(kThreads), 0, stream, padded, rows * chunks,
           chunks, size);
  }
  each(stream, rows * s.k,
       [=] __device__(int64_t t) { r.row(t / s.k).give(t % s.k, padded[t / s.k * all + t % s.k]); });
}

size_t shared_bytes(const Call& call) {
  const TopkShape s = topk_shape(call);
  return sorts(s) ? static_cast<size_t>(topk_units(call, 0) * power_of_two(s.n)) * sizeof(uint64_t) : 0;
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "topk",
                          .isa = INVAR_ISA,
                          .shared_bytes = INVAR_ISA_NS::shared_bytes,
                          .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
