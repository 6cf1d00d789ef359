// Contraction over lanes: R vectors of outputs at once, profile fp32-1 (spec/contraction.md).
#pragma once

#include "num/contract/schedule.h"
#include "num/lane/lane.h"

namespace invar::num::INVAR_ISA_NS {

// y[0..R) = the contraction over k. chain(k_begin, k_end, c) sets c[0..R) to the FMA chains over
// one block, each starting at +0. It is the caller's inner loop, which loads its operands as it
// likes.
template <int R, class Chain>
INVAR_INLINE void contract(int64_t k, Chain chain, F (&y)[R]) {
  if (k <= kChain) {  // one chain, joined with +0 only
    F c[R];
    chain(0, k, c);
    for (int r = 0; r < R; ++r) y[r] = add(zero(), c[r]);  // contraction.3
    return;
  }
  // Segments join as soon as they are finished: tree[l] holds the sum of the last 2^l segments at
  // an odd position of level l, as in a binary counter. These are the additions of join_segments,
  // with three vectors to keep instead of eight.
  F tree[3][R];
  int used = segments_in_use(k);
  for (int r = 0; r < R; ++r) y[r] = zero();
  for (int s = 0; s < used; ++s) {
    Range blocks = segment_blocks(s, k);
    for (int r = 0; r < R; ++r) y[r] = zero();
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      F c[R];
      Range range = block_range(b, k);
      chain(range.begin, range.end, c);
      for (int r = 0; r < R; ++r) y[r] = add(y[r], c[r]);  // contraction.3
    }
    if (s + 1 == used) break;
    int level = 0;
    for (; s >> level & 1; ++level)
      for (int r = 0; r < R; ++r) y[r] = add(tree[level][r], y[r]);  // contraction.4
    for (int r = 0; r < R; ++r) tree[level][r] = y[r];
  }
  // The last segment climbs to the root. Absent segments to its right are +0 and no sum is -0:
  // nothing to add.
  for (int level = 0; level < 3; ++level)
    if ((used - 1) >> level & 1 && used > 0)
      for (int r = 0; r < R; ++r) y[r] = add(tree[level][r], y[r]);
}

// The contraction over only those of k > 0 terms that each(run) provides: run(first, n, step) for
// ascending runs, where step(c, i) adds term first + i to a chain. Skipped terms are 0 times a
// finite number (contraction.5).
template <class Each>
INVAR_INLINE F contract_some(int64_t k, Each each) {
  F segment[kSegments], chain = zero();
  for (F& s : segment) s = zero();
  int64_t block = 0;
  auto close = [&] {
    F& sum = segment[block_position(block, k).segment];
    sum = add(sum, chain), chain = zero();  // contraction.3
  };
  each([&](int64_t first, int64_t n, auto step) {
    for (int64_t i = 0; i < n;) {
      if (const int64_t b = (first + i) / kChain; b != block) close(), block = b;
      const int64_t end = min_i64(n, (block + 1) * kChain - first);
      for (; i < end; ++i) chain = step(chain, i);
    }
  });
  close();
  return join_segments(segment);  // contraction.4
}

// A finished segment climbs the tree, a binary counter as above: take(l) adds it to the sum that
// waits at level l, keep(l) lets it wait there; the last segment climbs to the root.
template <class Take, class Keep>
INVAR_INLINE void climb(int segment, bool last, Take take, Keep keep) {
  int level = 0;
  for (; last ? level < 3 : segment >> level & 1; ++level)
    if (segment >> level & 1) take(level);  // contraction.4
  if (!last) keep(level);
}

// The same block by block: c[0..R) are the chains of the block at `place`; at(i, s) is the address
// of kept sum s (of kSumsKept) of output vector i between blocks. After the last block c is the
// contraction.
template <int R, class At>
INVAR_INLINE void join_block(const BlockPosition& place, F (&c)[R], At at) {
  if (place.opens)
#pragma GCC unroll 32
    for (int i = 0; i < R; ++i) c[i] = add(zero(), c[i]);  // contraction.3
  else
#pragma GCC unroll 32
    for (int i = 0; i < R; ++i) c[i] = add(load(at(i, 0)), c[i]);
  auto keep = [&](int sum) __attribute__((always_inline)) {
#pragma GCC unroll 32
    for (int i = 0; i < R; ++i) store(at(i, sum), c[i]);
  };
  if (!place.closes) return keep(0);
  climb(
      place.segment, place.last,
      [&](int level) __attribute__((always_inline)) {
#pragma GCC unroll 32
        for (int i = 0; i < R; ++i) c[i] = add(load(at(i, 1 + level)), c[i]);
      },
      [&](int level) __attribute__((always_inline)) { keep(1 + level); });
}

}  // namespace invar::num::INVAR_ISA_NS
