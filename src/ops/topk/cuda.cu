// Pairs key << 32 | index are all different, so any sort of them gives topk.3. Short rows are sorted by one block, in shared
// memory. Of long rows either the few first are selected, by radix, and then sorted, or the row is sorted in Call::shared
// by a bitonic network whose inner steps are blocks' own.
#include "ops/launch.h"
#include "ops/topk/topk.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kOwn = 4096;  // pairs that a block sorts by itself
constexpr int kThreads = 1024;
constexpr int kDigit = 8, kDigits = 1 << kDigit;
constexpr uint64_t kLast = UINT64_MAX;  // behind every pair

struct Rows {
  TopkShape s;
  const float* x;
  int64_t* out;
  __device__ int64_t rows() const { return s.outer * s.inner; }
  __device__ uint64_t pair(int64_t row, int64_t i) const {
    const float v = x[(row / s.inner * s.n + i) * s.inner + row % s.inner];
    return static_cast<uint64_t>(rank_of(v) ^ (s.largest ? 0xffffffff : 0)) << 32 | static_cast<uint64_t>(i);
  }
  __device__ void give(int64_t row, int64_t j, uint64_t pair) const {
    out[(row / s.inner * s.k + j) * s.inner + row % s.inner] = static_cast<int64_t>(pair & 0xffffffff);
  }
};

// One step of the network on a pair of places: those whose bit `size` is clear ascend.
__device__ void exchange(uint64_t& a, uint64_t& b, bool ascending) {
  if ((a > b) != ascending) return;
  const uint64_t c = a;
  a = b, b = c;
}
// The steps stride ... 1 of the merge to `size`; first: the place of p[0] in the row. count: pairs, a power of two.
__device__ void merge_own(uint64_t* p, int count, int64_t first, int64_t size, int stride) {
  for (; stride >= 1; stride /= 2) {
    __syncthreads();
    for (int t = threadIdx.x; t < count / 2; t += blockDim.x) {
      const int i = 2 * t - (t & (stride - 1));
      exchange(p[i], p[i + stride], ((first + i) & size) == 0);
    }
  }
}
// Afterwards `count` pairs from p on ascend, or, where bit `count` of first is set, descend.
__device__ void sort_own(uint64_t* p, int count, int64_t first) {
  for (int size = 2; size <= count; size *= 2) merge_own(p, count, first, size, size / 2);
  __syncthreads();
}

// Rows that a block sorts; count: n, rounded up to a power of two.
__global__ void __launch_bounds__(kThreads) short_rows(Rows r, int count) {
  __shared__ uint64_t p[kOwn];
  for (int64_t row = blockIdx.x; row < r.rows(); row += gridDim.x) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) p[i] = i < r.s.n ? r.pair(row, i) : kLast;
    sort_own(p, count, 0);
    for (int j = threadIdx.x; j < r.s.k; j += blockDim.x) r.give(row, j, p[j]);
    __syncthreads();
  }
}

// The k <= kOwn first pairs of long rows. count: k, rounded up to a power of two. Digit by digit from the highest the k-th
// pair is found; when as many pairs begin like it as are still wanted, all of them are among the first k.
__global__ void __launch_bounds__(kThreads) select_rows(Rows r, int count) {
  __shared__ uint64_t p[kOwn];
  __shared__ uint32_t counts[kDigits], found, digit, before;
  for (int64_t row = blockIdx.x; row < r.rows(); row += gridDim.x) {
    uint64_t prefix = 0;
    auto wanted = static_cast<uint32_t>(r.s.k);
    int shift = 64;
    while (shift > 0) {
      shift -= kDigit;
      for (int d = threadIdx.x; d < kDigits; d += blockDim.x) counts[d] = 0;
      __syncthreads();
      for (int64_t i = threadIdx.x; i < r.s.n; i += blockDim.x) {
        const uint64_t pair = r.pair(row, i);
        if (shift == 64 - kDigit || pair >> (shift + kDigit) == prefix)
          atomicAdd(&counts[pair >> shift & (kDigits - 1)], 1u);
      }
      __syncthreads();
      if (threadIdx.x <
          kWarp) {  // the digit of the wanted-th: a warp's running totals, eight digits a thread
        constexpr int kEach = kDigits / kWarp;
        uint32_t own = 0;
        for (int e = 0; e < kEach; ++e) own += counts[threadIdx.x * kEach + e];
        uint32_t until = own;
        for (int d = 1; d < kWarp; d *= 2) {
          const uint32_t other = __shfl_up_sync(kAllLanes, until, d);
          if (threadIdx.x >= d) until += other;
        }
        if (until >= wanted && until - own < wanted) {
          uint32_t below = until - own;
          int d = threadIdx.x * kEach;
          while (below + counts[d] < wanted) below += counts[d++];
          digit = d, before = below;
        }
      }
      __syncthreads();
      prefix = prefix << kDigit | digit;
      wanted -= before;
      const bool all = counts[digit] == wanted;
      __syncthreads();
      if (all) break;
    }
    if (threadIdx.x == 0) found = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) p[i] = kLast;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < r.s.n; i += blockDim.x) {
      const uint64_t pair = r.pair(row, i);
      if (pair >> shift <= prefix) p[atomicAdd(&found, 1u)] = pair;
    }
    sort_own(p, count, 0);
    for (int j = threadIdx.x; j < r.s.k; j += blockDim.x) r.give(row, j, p[j]);
    __syncthreads();
  }
}

// All pairs of long rows, padded[row * size + i]: filled and sorted by kOwn, one step between blocks, the steps within.
__global__ void __launch_bounds__(kThreads) sort_chunks(Rows r, uint64_t* padded, int64_t size) {
  __shared__ uint64_t p[kOwn];
  const int64_t chunks = size / kOwn;
  for (int64_t u = blockIdx.x; u < r.rows() * chunks; u += gridDim.x) {
    const int64_t row = u / chunks, first = u % chunks * kOwn;
    for (int i = threadIdx.x; i < kOwn; i += kThreads)
      p[i] = first + i < r.s.n ? r.pair(row, first + i) : kLast;
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
  const auto grid = [](int64_t blocks) {
    return dim3(static_cast<unsigned>(blocks < INT32_MAX ? blocks : INT32_MAX));
  };
  if (s.n <= kOwn) {
    const auto count = static_cast<int>(power_of_two(s.n));
    const int threads = count / 2 < kWarp ? kWarp : count / 2 < kThreads ? count / 2 : kThreads;
    return launch(short_rows, grid(rows), dim3(static_cast<unsigned>(threads)), 0, stream, r, count);
  }
  if (!sorts(s))
    return launch(select_rows, grid(rows), dim3(kThreads), 0, stream, r, static_cast<int>(power_of_two(s.k)));
  auto* padded = static_cast<uint64_t*>(call.shared);
  const int64_t all = power_of_two(s.n), chunks = all / kOwn;
  launch(sort_chunks, grid(rows * chunks), dim3(kThreads), 0, stream, r, padded, all);
  for (int64_t size = 2 * kOwn; size <= all; size *= 2) {
    for (int64_t stride = size / 2; stride >= kOwn; stride /= 2)
      each(stream, rows * all / 2, [=] __device__(int64_t t) {
        const int64_t i = 2 * t - (t & (stride - 1));
        exchange(padded[i], padded[i + stride], (i & (all - 1) & size) == 0);
      });
    launch(merge_chunks, grid(rows * chunks), dim3(kThreads), 0, stream, padded, rows * chunks, chunks, size);
  }
  each(stream, rows * s.k,
       [=] __device__(int64_t t) { r.give(t / s.k, t % s.k, padded[t / s.k * all + t % s.k]); });
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
