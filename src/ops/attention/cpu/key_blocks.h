// The CPU kernels of attention share this: masks and what is added to scores, online softmax, and
// the run over rows and key blocks. Compiled once per instruction set.
//
// An Arithmetic is the arithmetic of a block: Arithmetic::Scratch with the accumulated results,
// maxima and sums of rows; load_query(), append() and block_rows().
#pragma once
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/gemm_packing.h"
#include "num/exp/exp.h"
#include "num/hyperbolic/hyperbolic_ff.h"
#include "ops/attention/visibility.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using attention::bias_at;
using attention::Geometry;
using attention::kBlock;
using attention::KeyMask;
using attention::kRowGroup;
using attention::kScoreRow;
using attention::VisibleKeys;

constexpr float kInf = __builtin_inff();

// Addends of the scores of a row: its mask row of `columns` elements, if not null, and the
// slope of its head times the distances of the keys, the first of which is `distance`, or what a
// table has for the distances.
struct AddedTerms {
  const float* mask = nullptr;
  int64_t head = 0;
  float slope = 0;
  int64_t distance = 0;
};

// attention.16, attention.19 and attention.14 for n scores: softcap, slopes and additive mask.
void adjust_scores(const Geometry& g, const AddedTerms& added, int64_t columns, float* s, int n) {
  alignas(64) float distance[kBlock];  // or the biases
  for (int i = 0; g.slopes && i < kBlock; ++i)
    distance[i] = g.farthest < 0 ? static_cast<float>(added.distance + i)
                                 : g.slopes->as<const float>()[bias_at(g, added.head, added.distance + i)];
  for (int i = 0; i < n; i += kW) {
    F x = load(s + i);
    if (g.softcap != 0) x = mul(set1(g.softcap), num::INVAR_ISA_NS::tanh_ff(div(x, set1(g.softcap))));
    if (g.slopes) {  // attention.19
      const F by = load(distance + i);
      x = add(x, g.farthest < 0 ? canonicalize(mul(set1(added.slope), by)) : by);
    }
    if (added.mask) x = add(x, load_n(added.mask + i, valid_lanes(columns - i)));  // attention.14
    store(s + i, x);
  }
}

// The keys of a block that a mask row of `columns` elements does not hide (attention.14).
KeyMask unmasked(const float* mask, int64_t columns) {
  const F hides = set1(-kInf);
  bool some = false;
  KeyMask seen = attention::below(columns);
  const int n = attention::end_of(seen);
  for (int i = 0; i < n; i += kW) some = some || any(eq(load_n(mask + i, valid_lanes(n - i)), hides));
  for (int i = 0; some && i < n; ++i)
    if (mask[i] == -kInf) seen.half[i / 64] &= ~(uint64_t{1} << i % 64);
  return seen;
}
KeyMask unmasked(const uint8_t* mask, int64_t columns) {
  KeyMask seen;
  const int n = attention::end_of(attention::below(columns));
  for (int i = 0; i < n; ++i) seen.half[i / 64] |= uint64_t{mask[i] != 0} << i % 64;
  return seen;
}

// attention.5: the maximum of n scores. Up to a vector after them may be overwritten. The sign of a
// zero does not matter here.
float block_max(float* s, int n) {
  for (int i = n; i % kW; ++i) s[i] = -kInf;
  F most = set1(-kInf);
  M nan = unordered(most, most);
  for (int i = 0; i < n; i += kW) {
    F x = load(s + i);
    nan = either(nan, unordered(x, x)), most = select(lt(most, x), x, most);
  }
  alignas(64) float lane[kW];
  store(lane, select(nan, set1(__builtin_nanf("")), most));
  float m = lane[0];
  for (int j = 1; j < kW && m == m; ++j)
    if (!(lane[j] <= m)) m = lane[j];
  return m;
}

// The online softmax step (attention.9): which side is rescaled when a block is accumulated, and by
// what.
struct SoftmaxRescale {
  enum Side { old, fresh, nothing } side = nothing;
  float f = 0;
};
INVAR_INLINE SoftmaxRescale online_softmax(float mb, float lb, float& m, float& l) {
  if (mb == -kInf) return {};
  const bool later = mb > m;
  const F f = canonicalize(num::INVAR_ISA_NS::exp(set1(later ? m - mb : mb - m)));
  l = first(later ? fma(set1(l), f, set1(lb)) : fma(set1(lb), f, set1(l)));
  m = first(maximum(set1(m), set1(mb)));
  return {later ? SoftmaxRescale::old : SoftmaxRescale::fresh, first(f)};
}
INVAR_INLINE void rescale_accumulate(const SoftmaxRescale& by, float* at, F x) {
  if (by.side == SoftmaxRescale::nothing) return;
  const F f = set1(by.f), o = load(at);
  store(at, by.side == SoftmaxRescale::old ? fma(o, f, x) : fma(x, f, o));
}

// Row `row` of a key head: its batch, query and head, its position, and the keys it sees.
struct QueryRow {
  int64_t batch, i, head, position;
  VisibleKeys sight;
};
INVAR_INLINE QueryRow query_row(const Geometry& g, const Call& call, int64_t head, int64_t row) {
  const int64_t batch = head / g.kv_heads, i = row / g.group;
  const int64_t* lengths = g.lengths ? g.lengths->as<const int64_t>() : nullptr;
  const int64_t past = call.sequences[batch].past;
  return {batch, i, head % g.kv_heads * g.group + row % g.group,
          attention::query_position(g, lengths, past, batch, i),
          attention::visible_keys(g, lengths, past, batch, i)};
}

// Finds what rows of a tile see of a block, and what their scores add; returns what any sees.
INVAR_INLINE KeyMask rows_see(const Geometry& g, const Call& call, int64_t head, int64_t block, int64_t row,
                              int count, KeyMask* seen, AddedTerms* added) {
  KeyMask any;
  const int64_t columns = g.mask ? attention::mask_columns(g) - block * kBlock : 0;
  for (int i = 0; i < count; ++i) {
    const QueryRow r = query_row(g, call, head, row + i);
    seen[i] = attention::key_mask(r.sight, block);
    if (g.slopes) {
      added[i].head = r.head;
      if (g.farthest < 0) added[i].slope = g.slopes->as<const float>()[r.head];
      added[i].distance = block * kBlock - r.position;
    }
    if (g.mask && attention::end_of(seen[i])) {
      const int64_t at = attention::mask_row(g, r.batch, r.head, r.i) + block * kBlock;
      const bool adds = g.mask->dtype == DType::f32;
      if (adds && columns > 0) added[i].mask = g.mask->as<const float>() + at;
      seen[i] = seen[i] & (adds ? unmasked(g.mask->as<const float>() + at, columns)
                                : unmasked(g.mask->as<const uint8_t>() + at, columns));
    }
    any = any | seen[i];
  }
  return any;
}
// Scores of a row over keys [0, n) of a block: what is added, and -inf where they are hidden.
INVAR_INLINE void finish_scores(const Geometry& g, int64_t block, const KeyMask& seen,
                                const AddedTerms& added, float* s, int n) {
  const int64_t columns = g.mask ? attention::mask_columns(g) - block * kBlock : 0;
  if (g.softcap != 0 || g.slopes || added.mask) adjust_scores(g, added, columns, s, n);
  attention::each_run(~seen, 0, n, [&](int from, int to) {
    for (int j = from; j < to; ++j) s[j] = -kInf;
  });
}

// Index, in heads, of row `row` of a key head in q and y.
INVAR_INLINE int64_t query_index(const Geometry& g, int64_t head, int64_t row) {
  return attention::head_row(g, head / g.kv_heads, row / g.group, head % g.kv_heads * g.group + row % g.group,
                             g.seq, g.q_heads);
}
// attention.17 and attention.10: sinks, then the division by the sum; o is padded.
INVAR_INLINE void finish(const Geometry& g, const Call& call, int64_t head, int64_t row, float* o, float m,
                         float l) {
  if (g.sinks) {
    const float sink = g.sinks->as<const float>()[head % g.kv_heads * g.group + row % g.group];
    const SoftmaxRescale by = online_softmax(sink, 1, m, l);
    for (int64_t j = 0; j < g.dv_padded; j += kW) rescale_accumulate(by, o + j, zero());
  }
  const bool none = m == -kInf;
  strip(
      call.out[0].as<float>() + query_index(g, head, row) * g.dv,
      g.dv, [&](int64_t i, int) __attribute__((always_inline)) {
        return none ? zero() : div(load(o + i), set1(l));
      });
}

// Rows [from, to) of one key head. The visible range of a row begins and ends no earlier than that
// of the row before it.
template <class Arithmetic>
void attend(const Geometry& g, const Call& call, int64_t head, int64_t from, int64_t to,
            const typename Arithmetic::Scratch& w) {
  const int64_t rows = to - from;
  for (int64_t r = 0; r < rows; ++r) {
    Arithmetic::load_query(g, call.in[0].as<const float>() + query_index(g, head, from + r) * g.d, w, r);
    for (int64_t i = 0; i < g.dv_padded; ++i) w.o[r * g.dv_padded + i] = 0;
    w.m[r] = -kInf, w.l[r] = 0;
  }
  auto high = [&](int64_t r) { return query_row(g, call, head, from + r).sight.high; };
  int64_t start = 0;  // rows before it see no key of this block or of later ones
  for (int64_t block = 0; block * kBlock < high(rows - 1); ++block) {
    while (high(start) <= block * kBlock) ++start;
    for (int64_t r = start; r < rows; r += Arithmetic::kTileRows) {
      const int count = static_cast<int>(num::min_i64(Arithmetic::kTileRows, rows - r));
      SoftmaxRescale by[Arithmetic::kTileRows];
      Arithmetic::block_rows(
          g, call, w, head, block, from + r, r, count,
          [&](int i, float mb, float lb) { by[i] = online_softmax(mb, lb, w.m[r + i], w.l[r + i]); },
          [&](int i, int64_t column, F x) __attribute__((always_inline)) {
            rescale_accumulate(by[i], w.o + (r + i) * g.dv_padded + column, x);
          });
    }
  }
  for (int64_t r = 0; r < rows; ++r) finish(g, call, head, from + r, w.o + r * g.dv_padded, w.m[r], w.l[r]);
}

// One KV block of a single query's heads -> its partial results.
template <class Arithmetic>
void attend_block(const Geometry& g, const Call& call, int64_t head, int64_t block,
                  const typename Arithmetic::Scratch& w) {
  const auto part = [&](int64_t row) { return attention::part(g, call, head, block, row); };
  for (int64_t r = 0; r < g.group; r += Arithmetic::kTileRows) {
    const int count = static_cast<int>(num::min_i64(Arithmetic::kTileRows, g.group - r));
    for (int64_t i = 0; i < count; ++i) {
      Arithmetic::load_query(g, call.in[0].as<const float>() + query_index(g, head, r + i) * g.d, w, i);
      part(r + i)[0] = -kInf;
    }
    Arithmetic::block_rows(
        g, call, w, head, block, r, 0, count,
        [&](int i, float mb, float lb) {
          float* to = part(r + i);
          to[0] = mb, to[1] = lb;
        },
        [&](int i, int64_t column, F x)
            __attribute__((always_inline)) { store(part(r + i) + attention::kPartHead + column, x); });
  }
}
template <class Arithmetic>
void merge_partials(const Geometry& g, const Call& call, int64_t head,
                    const typename Arithmetic::Scratch& w) {
  const int64_t blocks = attention::seen_blocks(g, call.sequences[head / g.kv_heads].past);
  for (int64_t r = 0; r < g.group; ++r) {
    float m = -kInf, l = 0;
    for (int64_t j = 0; j < g.dv_padded; ++j) w.o[j] = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const float* part = attention::part(g, call, head, block, r);
      const SoftmaxRescale by = online_softmax(part[0], part[1], m, l);
      for (int64_t j = 0; j < g.dv_padded; j += kW)
        rescale_accumulate(by, w.o + j, load(part + attention::kPartHead + j));
    }
    finish(g, call, head, r, w.o, m, l);
  }
}

// Units of a split-KV step: the blocks of every head of a sequence, then those of the next
// sequence.
struct HeadBlock {
  int64_t head, block;
};
HeadBlock head_block(const Geometry& g, const Call& call, int64_t unit) {
  for (int64_t batch = 0;; ++batch) {
    const int64_t blocks = attention::seen_blocks(g, call.sequences[batch].past);
    if (unit < g.kv_heads * blocks) return {batch * g.kv_heads + unit / blocks, unit % blocks};
    unit -= g.kv_heads * blocks;
  }
}

template <class Arithmetic>
void run_attention(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const Geometry g = attention::geometry(call);
  const typename Arithmetic::Scratch w(g, scratch);
  if (phase == 0) return Arithmetic::append(g, call, begin, end);
  for (int64_t unit = begin; unit < end; ++unit) {
    if (phase == 2) {
      merge_partials<Arithmetic>(g, call, unit, w);
    } else if (g.split) {
      const HeadBlock piece = head_block(g, call, unit);
      attend_block<Arithmetic>(g, call, piece.head, piece.block, w);
    } else {
      if (g.whole) Arithmetic::append(g, call, unit * g.keys, (unit + 1) * g.keys);
      int64_t from = unit % g.groups * kRowGroup;
      attend<Arithmetic>(g, call, unit / g.groups, from, num::min_i64(from + kRowGroup, g.rows), w);
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
