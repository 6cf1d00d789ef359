// Pairs key << 32 | index (kernels/cpu/row_sort.h) put in order by a block, in its own memory.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kOwn = 4096;  // pairs that a block sorts by itself
constexpr int kThreads = 1024;
// Sign, exponent and a little, so that few threads count the same.
constexpr int kDigit = 12, kDigits = 1 << kDigit;
constexpr uint64_t kLast = UINT64_MAX;  // behind every pair

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

// What the threads of a block know of a selection.
struct Selection {
  uint32_t digit, before, found;
};

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

// The k <= kOwn first of n pairs, in order, with further ones behind them; returns how many all these are, kOwn at most. Digit by
// digit from the highest the beginning of the k-th is found, until no more pairs are in front of it or begin like it than a block
// sorts by itself. pair(i): the i-th, or kLast where it is to be left out; k of them are not. For blocks of kThreads.
template <class Pair>
__device__ uint32_t select_own(uint64_t* p, Selection& at, uint32_t n, uint32_t k, Pair pair) {
  auto* counts = reinterpret_cast<uint32_t*>(p);
  static_assert(sizeof(uint32_t) * kDigits <= sizeof(uint64_t) * kOwn);
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
      const uint64_t own = pair(i);
      if (own != kLast && (above == 64 || own >> above == prefix))
        atomicAdd(&counts[own >> shift & (digits - 1)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < kWarp) find_digit(counts, wanted, &at.digit, &at.before);
    __syncthreads();
    prefix = prefix << (above - shift) | at.digit;
    wanted -= at.before;
    candidates = k - wanted + counts[at.digit];
    __syncthreads();
  } while (candidates > kOwn);
  int size = 2;
  while (size < candidates) size *= 2;
  if (threadIdx.x == 0) at.found = 0;
  for (int i = threadIdx.x; i < size; i += kThreads) p[i] = kLast;
  __syncthreads();
#pragma unroll 8
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t own = pair(i);
    if (own != kLast && own >> shift <= prefix) p[atomicAdd(&at.found, 1u)] = own;
  }
  sort_own(p, size, 0);
  return candidates;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
