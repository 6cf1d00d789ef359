// A query sees keys by attention.3, attention.13 and attention.15 as index arithmetic, masks as
// bit sets.
#pragma once
#include "num/contract/schedule.h"
#include "ops/attention/attention.h"

namespace invar::ops::attention {

// The set of visible keys among the 128 keys of a block.
struct KeyMask {
  uint64_t half[2] = {0, 0};
};
INVAR_INLINE uint64_t low_bits(int64_t n) {
  return n <= 0 ? 0 : n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
}
INVAR_INLINE KeyMask below(int64_t n) {
  return {{low_bits(n), low_bits(n - 64)}};
}
INVAR_INLINE KeyMask operator&(KeyMask a, KeyMask b) {
  return {{a.half[0] & b.half[0], a.half[1] & b.half[1]}};
}
INVAR_INLINE KeyMask operator|(KeyMask a, KeyMask b) {
  return {{a.half[0] | b.half[0], a.half[1] | b.half[1]}};
}
INVAR_INLINE KeyMask operator~(KeyMask a) {
  return {{~a.half[0], ~a.half[1]}};
}
// The first visible key from `at` on, or kBlock; then (end_of) one past the last.
INVAR_INLINE int next(KeyMask s, int at) {
  s = s & ~below(at);
  return s.half[0] ? __builtin_ctzll(s.half[0]) : s.half[1] ? 64 + __builtin_ctzll(s.half[1]) : kBlock;
}
INVAR_INLINE int end_of(KeyMask s) {
  return s.half[1] ? 128 - __builtin_clzll(s.half[1]) : s.half[0] ? 64 - __builtin_clzll(s.half[0]) : 0;
}
// Calls f(from, to) for every run of visible keys in [begin, end), ascending.
template <class Fn>
INVAR_INLINE void each_run(KeyMask s, int begin, int end, Fn f) {
  s = s & below(end);
  for (int from = next(s, begin), to; from < end; from = next(s, to)) f(from, to = next(~s, from));
}

// A query sees the keys [low, high) and, of the keys [0, first), those below `high`. Its mask may
// hide some of them.
struct VisibleKeys {
  int64_t low, high, first;
};
// The position of query i (attention.3, attention.15).
INVAR_INLINE int64_t query_position(const Geometry& g, const int64_t* lengths, int64_t past, int64_t batch,
                                    int64_t i) {
  if (!lengths) return past + i;
  return (lengths[batch] < 0 ? 0 : num::min_i64(lengths[batch], past + g.keys)) - g.seq + i;
}
INVAR_INLINE VisibleKeys visible_keys(const Geometry& g, const int64_t* lengths, int64_t past, int64_t batch,
                                      int64_t i) {
  const int64_t p = query_position(g, lengths, past, batch, i), n = lengths ? p + g.seq - i : past + g.keys;
  VisibleKeys s{0, n, g.first};
  if (g.causal) s.high = num::min_i64(s.high, p + 1);
  if (g.right >= 0 && g.right < n) s.high = num::min_i64(s.high, p + g.right + 1);
  if (s.high < 0) s.high = 0;
  if (g.left >= 0 && g.left < p) s.low = num::min_i64(p - g.left, s.high);
  return s;
}
INVAR_INLINE KeyMask key_mask(const VisibleKeys& s, int64_t block) {
  const int64_t base = block * kBlock;
  return below(s.high - base) & (below(s.first - base) | ~below(s.low - base));
}

// Element of a table of biases (attention.19): that of a head for a key at `distance` behind the
// query.
INVAR_INLINE int64_t bias_at(const Geometry& g, int64_t head, int64_t distance) {
  const int64_t near = num::min_i64(distance, g.farthest);
  return head * (2 * g.farthest + 1) + g.farthest + (near < -g.farthest ? -g.farthest : near);
}

// Element offset of the mask row of a query of a head.
INVAR_INLINE int64_t mask_row(const Geometry& g, int64_t batch, int64_t head, int64_t i) {
  return batch * g.mask_step[0] + head * g.mask_step[1] + i * g.mask_step[2];
}
INVAR_INLINE int64_t mask_columns(const Geometry& g) {
  return g.mask->dim[g.mask->rank - 1];
}

}  // namespace invar::ops::attention
