// Sorts of pairs key << 32 | index (kernels/cpu/row_sort.h) by one block in shared memory: bitonic
// sort, and radix selection of the k first.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kBlockPairs = 4096;  // that a block sorts in shared memory
constexpr int kSortThreads = 1024;
// A digit has the sign, the exponent and some of the mantissa, so that few threads share a counter.
constexpr int kDigitBits = 12, kDigits = 1 << kDigitBits;
constexpr uint64_t kLastPair = UINT64_MAX;  // sorts behind every pair

// Compares and exchanges two pairs of the sorting network.
__device__ void compare_exchange(uint64_t& a, uint64_t& b, bool ascending) {
  if ((a > b) != ascending) return;
  const uint64_t c = a;
  a = b, b = c;
}
// The steps stride ... 1 of the bitonic merge to `size`. first: the position of p[0] in the row;
// pairs whose position has bit `size` clear ascend. count: pairs, a power of two.
__device__ void bitonic_merge(uint64_t* p, int count, int64_t first, int64_t size, int stride) {
  for (; stride >= 1; stride /= 2) {
    __syncthreads();
    for (int t = threadIdx.x; t < count / 2; t += blockDim.x) {
      const int i = 2 * t - (t & (stride - 1));
      compare_exchange(p[i], p[i + stride], ((first + i) & size) == 0);
    }
  }
}
// Sorts `count` pairs, ascending, or descending if bit `count` of first is set.
__device__ void bitonic_sort(uint64_t* p, int count, int64_t first) {
  for (int size = 2; size <= count; size *= 2) bitonic_merge(p, count, first, size, size / 2);
  __syncthreads();
}

// The state of a radix selection, which the threads of a block share.
struct RadixSelectState {
  uint32_t digit, before, found;
};

// One warp finds the digit of the wanted-th pair by its counts, and how many pairs have lower
// digits. Each thread takes a share of the digits.
__device__ void find_digit(const uint32_t* counts, uint32_t wanted, uint32_t* digit, uint32_t* before) {
  constexpr int kEach = kDigits / kWarp;
  uint32_t own = 0;
  for (int e = 0; e < kEach; ++e) own += counts[threadIdx.x * kEach + e];
  uint32_t until = own;
  for (int d = 1; d < kWarp; d *= 2) {
    const uint32_t other = __shfl_up_sync(kFullWarp, until, d);
    if (threadIdx.x >= d) until += other;
  }
  if (until < wanted || until - own >= wanted) return;
  uint32_t below = until - own;
  uint32_t d = threadIdx.x * kEach;
  while (below + counts[d] < wanted) below += counts[d++];
  *digit = d, *before = below;
}

// Selects the k <= kBlockPairs first of n pairs, in order; further pairs may be behind them.
// Returns how many all these are, at most kBlockPairs. Digit by digit from the highest it extends
// the prefix of the k-th pair, until a block can sort all pairs up to that prefix. pair(i): the
// i-th pair, or kLastPair to skip it; at least k are not skipped. For blocks of kSortThreads.
template <class Pair>
__device__ uint32_t radix_select(uint64_t* p, RadixSelectState& at, uint32_t n, uint32_t k, Pair pair) {
  auto* counts = reinterpret_cast<uint32_t*>(p);
  static_assert(sizeof(uint32_t) * kDigits <= sizeof(uint64_t) * kBlockPairs);
  uint64_t prefix = 0;  // the 64 - shift highest bits of the k-th pair
  int shift = 64;
  uint32_t wanted = k, candidates;
  do {
    const int above = shift;
    shift = above > kDigitBits ? above - kDigitBits : 0;
    const int digits = 1 << (above - shift);
    for (int d = threadIdx.x; d < kDigits; d += kSortThreads) counts[d] = 0;
    __syncthreads();
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < n; i += kSortThreads) {
      const uint64_t own = pair(i);
      if (own != kLastPair && (above == 64 || own >> above == prefix))
        atomicAdd(&counts[own >> shift & (digits - 1)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < kWarp) find_digit(counts, wanted, &at.digit, &at.before);
    __syncthreads();
    prefix = prefix << (above - shift) | at.digit;
    wanted -= at.before;
    candidates = k - wanted + counts[at.digit];
    __syncthreads();
  } while (candidates > kBlockPairs);
  int size = 2;
  while (size < candidates) size *= 2;
  if (threadIdx.x == 0) at.found = 0;
  for (int i = threadIdx.x; i < size; i += kSortThreads) p[i] = kLastPair;
  __syncthreads();
#pragma unroll 8
  for (uint32_t i = threadIdx.x; i < n; i += kSortThreads) {
    const uint64_t own = pair(i);
    if (own != kLastPair && own >> shift <= prefix) p[atomicAdd(&at.found, 1u)] = own;
  }
  bitonic_sort(p, size, 0);
  return candidates;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
