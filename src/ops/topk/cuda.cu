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
constexpr int kDigit = 12,
              kDigits = 1 << kDigit;    // sign, exponent and a little, so that few threads count the same
constexpr uint64_t kLast = UINT64_MAX;  // behind every pair

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

// The digit of the wanted-th of the counted, and how many have lower ones; by one warp, a share of the digits a thread.
__device__ void find_digit(const uint32_t* counts, uint32_t wanted, uint32_t* digit, uint32_t* before) {
  constexpr int kEach = kDigits / kWarp;
  uint32_t own = 0;
  for (int e = 0; e < kEach; ++e) own += counts[threadIdx.x * kEach + e];
  uint32_t until = own;
  for (int d = 1; d < kWarp; d *= 2) {
    const uint32_t other = __shfl_up_sync(kAllLanes, until, d);
    if (threadIdx.x >= d) until += other;
  }
  if (until < wanted || until - own >= wanted) return;
  uint32_t below = until - own;
  uint32_t d = threadIdx.x * kEach;
  while (below + counts[d] < wanted) below += counts[d++];
  *digit = d, *before = below;
}

// The k <= kOwn first pairs of long rows. Digit by digit from the highest the beginning of the k-th pair is found, until no
// more pairs are in front of it or begin like it than a block sorts by itself.
__global__ void __launch_bounds__(kThreads) select_rows(Rows rows) {
  __shared__ uint64_t p[kOwn];
  __shared__ uint32_t digit, before, found;
  auto* counts = reinterpret_cast<uint32_t*>(p);
  static_assert(sizeof(uint32_t) * kDigits <= sizeof p);
  const auto n = static_cast<uint32_t>(rows.s.n), k = static_cast<uint32_t>(rows.s.k);
  for (int64_t r = blockIdx.x; r < rows.count(); r += gridDim.x) {
    const Row row = rows.row(r);
    uint64_t prefix = 0;  // of 64 - shift bits
    int shift = 64;
    uint32_t wanted = k, candidates;
    do {
      const int above = shift;
      shift = above > kDigit ? above - kDigit : 0;
      const int digits = 1 << (above - shift);
      for (int d = threadIdx.x; d < kDigits; d += kThreads) counts[d] = 0;
      __syncthreads();
#pragma unroll 8
      for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
        const uint64_t pair = row.pair(i);
        if (above == 64 || pair >> above == prefix) atomicAdd(&counts[pair >> shift & (digits - 1)], 1u);
      }
      __syncthreads();
      if (threadIdx.x < kWarp) find_digit(counts, wanted, &digit, &before);
      __syncthreads();
      prefix = prefix << (above - shift) | digit;
      wanted -= before;
      candidates = k - wanted + counts[digit];
      __syncthreads();
    } while (candidates > kOwn);
    int size = 2;
    while (size < candidates) size *= 2;
    if (threadIdx.x == 0) found = 0;
    for (int i = threadIdx.x; i < size; i += kThreads) p[i] = kLast;
    __syncthreads();
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
      const uint64_t pair = row.pair(i);
      if (pair >> shift <= prefix) p[atomicAdd(&found, 1u)] = pair;
    }
    sort_own(p, size, 0);
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
