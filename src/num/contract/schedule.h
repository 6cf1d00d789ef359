// The schedule of contraction profile fp32-1 (spec/contraction.md): which products form a chain,
// which chains a segment, and how segments join. Shared by the reference, the lane kernels and
// CUDA.
#pragma once

#include <cstdint>

#include "num/inline.h"

// The loop that follows runs over registers, which a GPU cannot index: it must be unrolled there.
#ifdef __CUDACC__
#define INVAR_UNROLL _Pragma("unroll")
#else
#define INVAR_UNROLL
#endif

namespace invar::num {

constexpr int64_t kChain = 256;  // contraction.2: products of one FMA chain, a block of K
constexpr int kSegments = 8;     // contraction.3: contiguous runs of blocks

struct Range {
  int64_t begin, end;
};

INVAR_INLINE constexpr int64_t min_i64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
INVAR_INLINE constexpr int64_t contraction_blocks(int64_t k) {
  return (k + kChain - 1) / kChain;
}
INVAR_INLINE constexpr int64_t blocks_per_segment(int64_t k) {
  return (contraction_blocks(k) + kSegments - 1) / kSegments;
}
// The k of block b.
INVAR_INLINE constexpr Range block_range(int64_t b, int64_t k) {
  return {b * kChain, min_i64((b + 1) * kChain, k)};
}
// The blocks of segment s; empty for the last segments of a short K.
INVAR_INLINE constexpr Range segment_blocks(int s, int64_t k) {
  int64_t nb = contraction_blocks(k), per = blocks_per_segment(k);
  return {min_i64(s * per, nb), min_i64((s + 1) * per, nb)};
}
// Segments that hold any block. The others are +0 and, as no segment sum is -0, may be left out of
// the tree.
INVAR_INLINE constexpr int segments_in_use(int64_t k) {
  int64_t per = blocks_per_segment(k);
  return per == 0 ? 0 : static_cast<int>((contraction_blocks(k) + per - 1) / per);
}
// The position of block b of k, for kernels that go block by block and keep the sums of many
// outputs in memory between blocks.
struct BlockPosition {
  int segment;
  bool opens, closes;  // it is the first, the last block of its segment
  bool last;           // of all blocks
};
template <class Int>
INVAR_INLINE constexpr BlockPosition block_position(Int b, Int k) {
  const auto nb = static_cast<Int>(contraction_blocks(k)), per = static_cast<Int>(blocks_per_segment(k));
  return {static_cast<int>(b / per), b % per == 0, (b + 1) % per == 0 || b + 1 == nb, b + 1 == nb};
}
constexpr int kSumsKept = 4;  // per output between blocks: its segment, and three levels of the tree

INVAR_INLINE float add(float a, float b) {
  return a + b;
}
INVAR_INLINE double add(double a, double b) {
  return a + b;
}
// contraction.3: a segment of the blocks' chains; chain(b) is that of block b.
template <class Chain>
INVAR_INLINE float join_chains(Range blocks, Chain chain) {
  float sum = 0;
  for (int64_t b = blocks.begin; b < blocks.end; ++b) sum = add(sum, chain(b));
  return sum;
}
// contraction.4: the tree over the 8 segment sums; T is float or a vector of outputs with its own
// add.
template <class T>
INVAR_INLINE T join_segments(const T* s) {
  T low = add(add(s[0], s[1]), add(s[2], s[3]));
  T high = add(add(s[4], s[5]), add(s[6], s[7]));
  return add(low, high);
}

}  // namespace invar::num
