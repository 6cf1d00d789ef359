// CPU attention. Rows are the queries of all heads that share one key head. Scores are tiles of
// rows x keys, results tiles of rows x value columns. Keys that all rows of a tile see are
// processed together, other keys row by row, because a hidden key is left out (attention.18). A
// single query over a long KV cache is split by KV blocks (split-KV, as FlashDecoding), whose
// partial results are merged in a last phase.
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/gemm_packing.h"
#include "num/contract/lanes.h"
#include "num/exp/exp.h"
#include "num/hyperbolic/hyperbolic_ff.h"
#include "num/reduce/lanes.h"
#include "ops/attention/cpu/backward.h"
#include "ops/attention/visibility.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using attention::kBlock;
using attention::KeyMask;
using attention::kRowGroup;
using attention::kScoreRow;
static_assert(kRowGroup % kMaxRows == 0 && kMaxRows <= attention::kTallest);

// Scratch of a unit: per row the query, the accumulated result, maximum and sum; scores, then
// weights, of a tile.
struct UnitScratch {
  float *q, *o, *m, *l, *p;
};
UnitScratch unit_scratch(const Geometry& g, void* scratch) {
  float* o = static_cast<float*>(scratch);
  return {o + kRowGroup * (g.dv_padded + 2) + attention::kTallest * kScoreRow, o, o + kRowGroup * g.dv_padded,
          o + kRowGroup * (g.dv_padded + 1), o + kRowGroup * (g.dv_padded + 2)};
}

// Appends new keys and values to the KV cache (attention.2).
void append(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
  const int64_t next_row = g.heads_first ? 1 : g.kv_heads;
  for (int64_t unit = begin; unit < end;) {
    int64_t head = unit / g.keys, i = unit % g.keys, batch = head / g.kv_heads,
            position = call.sequences[batch].past + i, slot = position % kBlock;
    // A whole panel is transposed at once if this worker has all its positions.
    int64_t left = num::min_i64(end - unit, g.keys - i),
            count = slot % kKeyPanel == 0 && left >= kKeyPanel ? kKeyPanel : 1;
    const int64_t row = attention::head_row(g, batch, i, head % g.kv_heads, g.keys, g.kv_heads);
    const float* k = call.in[1].as<const float>() + row * g.d;
    const float* v = call.in[2].as<const float>() + row * g.dv;
    void* const memory = attention::slot_of(call, batch);
    float* keys = attention::keys(g, memory, head % g.kv_heads, position / kBlock) +
                  slot / kKeyPanel * kKeyPanel * g.d + slot % kKeyPanel;
    float* values = attention::values(g, memory, head % g.kv_heads, position / kBlock) + slot * kKeyPanel;
    if (count == kKeyPanel)
      pack_transposed<PackWidened<F32>>(k, next_row * g.d, g.d, kKeyPanel, keys, kKeyPanel);
    else
      for (int64_t j = 0; j < g.d; ++j) keys[j * kKeyPanel] = k[j];
    for (int64_t n = 0; n < count; ++n) {
      const float* from = v + n * next_row * g.dv;
      for (int64_t j = 0; j < g.dv_padded; j += kW)
        store(values + j / kKeyPanel * kKeyPanel * kBlock + n * kKeyPanel + j % kKeyPanel,
              j + kW <= g.dv ? load(from + j) : load_n(from + (j < g.dv ? j : 0), valid_lanes(g.dv - j)));
    }
    unit += count;
  }
}

// Scores of MR rows against keys [begin, end) of a block, and a few more (attention.3).
template <int MR>
void scores(const Geometry& g, const float* q, const float* keys, int begin, int end, float* s) {
  constexpr int NV = tile_vectors(MR, 128 / kW);
  for (int v = begin / (NV * kW) * NV; v * kW < end; v += NV) {
    PanelsOfB<F32, kVectorsPerKeyPanel> b{
        keys + v / kVectorsPerKeyPanel * kKeyPanel * g.d + v % kVectorsPerKeyPanel * kW, kKeyPanel,
        kKeyPanel * g.d};
    F y[MR * NV];
    num::INVAR_ISA_NS::contract(
        g.d,
        [&](int64_t from, int64_t to, F(&c)[MR * NV])
            __attribute__((always_inline)) { microkernel<MR, NV>(q, g.d, b, from, to, c); },
        y);
    for (int i = 0; i < MR * NV; ++i)
      store(s + i / NV * kScoreRow + (v + i % NV) * kW, mul(y[i], set1(g.scale)));
  }
}

// What is added to the scores of a row: its mask row of `columns` elements, if not null, and the
// slope of its head times the distances of the keys, the first of which is `distance`.
struct AddedTerms {
  const float* mask = nullptr;
  float slope = 0;
  int64_t distance = 0;
};

// attention.16, attention.19 and attention.14 for n scores: softcap, slopes and additive mask.
void adjust_scores(const Geometry& g, const AddedTerms& added, int64_t columns, float* s, int n) {
  alignas(64) float distance[kBlock];
  for (int i = 0; g.slopes && i < kBlock; ++i) distance[i] = static_cast<float>(added.distance + i);
  for (int i = 0; i < n; i += kW) {
    F x = load(s + i);
    if (g.softcap != 0) x = mul(set1(g.softcap), num::INVAR_ISA_NS::tanh_ff(div(x, set1(g.softcap))));
    if (g.slopes) x = add(x, canonicalize(mul(set1(added.slope), load(distance + i))));  // attention.19
    if (added.mask) x = add(x, load_n(added.mask + i, valid_lanes(columns - i)));        // attention.14
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

// Scores of n visible keys -> softmax weights, their maximum and sum (attention.5 - 7). Prefetches
// n lines from `ahead` on, if not null.
INVAR_INLINE void softmax_block(float* s, int n, const float* ahead, float& mb, float& lb) {
  mb = block_max(s, n);
  if (mb == -kInf) return;
  strip(
      s, n, [&](int64_t i, int) __attribute__((always_inline)) {
        for (int64_t line = i; ahead && line < i + kW; ++line) __builtin_prefetch(ahead + line * kKeyPanel);
        return num::INVAR_ISA_NS::exp(
            sub(load(s + i), set1(mb)));  // attention.6; what is beyond n is dropped
      });
  lb = num::INVAR_ISA_NS::block_sum(s, n);
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

// Results of a tile of rows with weights p (attention.8); row i sees keys seen[i] of the block.
// Each vector goes to put(row, column, O_b).
template <int MR, int NV, class Put>
INVAR_INLINE void result_columns(const float* p, const KeyMask* seen, const float* values, int64_t column,
                                 Put put) {
  F ob[MR * NV];
  for (F& x : ob) x = zero();
  KeyMask all = seen[0];
  for (int i = 1; i < MR; ++i) all = all & seen[i];
  PanelsOfB<F32, kVectorsPerKeyPanel> b{values + column / kKeyPanel * kKeyPanel * kBlock + column % kKeyPanel,
                                        kKeyPanel, kKeyPanel * kBlock};
  for (int at = 0; at < kBlock;) {
    const int from = attention::next(all, at), to = attention::next(~all, from);
    for (int i = 0; from > at && MR > 1 && i < MR; ++i) {
      F row[NV];
      for (int v = 0; v < NV; ++v) row[v] = ob[i * NV + v];
      attention::each_run(
          seen[i], at, from, [&](int begin, int end) __attribute__((always_inline)) {
            microkernel_accumulate<1, NV>(p + i * kScoreRow, kScoreRow, b, begin, end, row);
          });
      for (int v = 0; v < NV; ++v) ob[i * NV + v] = row[v];
    }
    microkernel_accumulate<MR, NV>(p, kScoreRow, b, from, to, ob);
    at = to;
  }
  for (int i = 0; i < MR * NV; ++i) put(i / NV, column + i % NV * kW, ob[i]);
}
template <int MR, class Put>
void results(const Geometry& g, const float* p, const KeyMask* seen, const float* values, Put put) {
  constexpr int NV = tile_vectors(MR, 8), kNarrow = tile_vectors(MR, kVectorsPerKeyPanel);
  int64_t column = 0;
  for (; column + NV * kW <= g.dv_padded; column += NV * kW)
    result_columns<MR, NV>(p, seen, values, column, put);
  for (; column < g.dv_padded; column += kNarrow * kW)
    result_columns<MR, kNarrow>(p, seen, values, column, put);
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

// One KV block for rows [row, row + count) of a key head, whose queries begin at q: weights -> w.p,
// maxima and sums -> folded, results -> put. Nothing is called if no row sees any key of the block.
template <class Folded, class Put>
INVAR_INLINE void block_rows(const Geometry& g, const Call& call, const UnitScratch& w, int64_t head,
                             int64_t block, int64_t row, const float* q, int count, Folded folded, Put put) {
  KeyMask seen[kMaxRows], any;
  AddedTerms added[kMaxRows];
  const int64_t columns = g.mask ? attention::mask_columns(g) - block * kBlock : 0;
  void* const memory = attention::slot_of(call, head / g.kv_heads);
  for (int i = 0; i < count; ++i) {
    const QueryRow r = query_row(g, call, head, row + i);
    seen[i] = attention::key_mask(r.sight, block);
    if (g.slopes) {
      added[i].slope = g.slopes->as<const float>()[r.head];
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
  const int most = attention::end_of(any);
  if (most == 0) return;
  dispatch_tile_rows(count, [&](auto mr) {
    constexpr int MR = decltype(mr)::value;
    const float* const values = attention::values(g, memory, head % g.kv_heads, block);
    scores<MR>(g, q, attention::keys(g, memory, head % g.kv_heads, block), attention::next(any, 0), most,
               w.p);
    for (int i = 0; i < MR; ++i) {
      float *s = w.p + i * kScoreRow, mb, lb = 0;
      const int n = attention::end_of(seen[i]);
      if (g.softcap != 0 || g.slopes || added[i].mask) adjust_scores(g, added[i], columns, s, n);
      attention::each_run(~seen[i], 0, n, [&](int from, int to) {
        for (int j = from; j < to; ++j) s[j] = -kInf;
      });
      // Each row prefetches one panel of values; with many rows the block's values arrive soon.
      softmax_block(s, n, i * kKeyPanel < g.dv_padded ? values + i * kKeyPanel * kBlock : nullptr, mb, lb);
      folded(i, mb, lb);
    }
    results<MR>(g, w.p, seen, values, put);
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
void attend(const Geometry& g, const Call& call, int64_t head, int64_t from, int64_t to,
            const UnitScratch& w) {
  const int64_t rows = to - from;
  for (int64_t r = 0; r < rows; ++r) {
    const float* q = call.in[0].as<const float>() + query_index(g, head, from + r) * g.d;
    for (int64_t i = 0; i < g.d; ++i) w.q[r * g.d + i] = q[i];
    for (int64_t i = 0; i < g.dv_padded; ++i) w.o[r * g.dv_padded + i] = 0;
    w.m[r] = -kInf, w.l[r] = 0;
  }
  auto high = [&](int64_t r) { return query_row(g, call, head, from + r).sight.high; };
  int64_t start = 0;  // rows before it see no key of this block or of later ones
  for (int64_t block = 0; block * kBlock < high(rows - 1); ++block) {
    while (high(start) <= block * kBlock) ++start;
    for (int64_t r = start; r < rows; r += kMaxRows) {
      const int count = static_cast<int>(num::min_i64(kMaxRows, rows - r));
      SoftmaxRescale by[kMaxRows];
      block_rows(
          g, call, w, head, block, from + r, w.q + r * g.d, count,
          [&](int i, float mb, float lb) { by[i] = online_softmax(mb, lb, w.m[r + i], w.l[r + i]); },
          [&](int i, int64_t column, F x) __attribute__((always_inline)) {
            rescale_accumulate(by[i], w.o + (r + i) * g.dv_padded + column, x);
          });
    }
  }
  for (int64_t r = 0; r < rows; ++r) finish(g, call, head, from + r, w.o + r * g.dv_padded, w.m[r], w.l[r]);
}

// One KV block of a single query's heads -> its partial results.
float* partial_of(const Geometry& g, const Call& call, int64_t head, int64_t block, int64_t row) {
  return attention::part(g, attention::slot_of(call, head / g.kv_heads), head % g.kv_heads, block, row);
}
void attend_block(const Geometry& g, const Call& call, int64_t head, int64_t block, const UnitScratch& w) {
  for (int64_t r = 0; r < g.group; r += kMaxRows) {
    const int count = static_cast<int>(num::min_i64(kMaxRows, g.group - r));
    for (int64_t i = 0; i < count; ++i) partial_of(g, call, head, block, r + i)[0] = -kInf;
    block_rows(
        g, call, w, head, block, r, call.in[0].as<const float>() + query_index(g, head, r) * g.d, count,
        [&](int i, float mb, float lb) {
          float* part = partial_of(g, call, head, block, r + i);
          part[0] = mb, part[1] = lb;
        },
        [&](int i, int64_t column, F x) __attribute__((always_inline)) {
          store(partial_of(g, call, head, block, r + i) + attention::kPartHead + column, x);
        });
  }
}
void merge_partials(const Geometry& g, const Call& call, int64_t head, const UnitScratch& w) {
  const int64_t blocks = attention::seen_blocks(g, call.sequences[head / g.kv_heads].past);
  for (int64_t r = 0; r < g.group; ++r) {
    float m = -kInf, l = 0;
    for (int64_t j = 0; j < g.dv_padded; ++j) w.o[j] = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const float* part = partial_of(g, call, head, block, r);
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

void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const Geometry g = attention::geometry(call);
  const UnitScratch w = unit_scratch(g, scratch);
  if (phase == 0) return append(g, call, begin, end);
  for (int64_t unit = begin; unit < end; ++unit) {
    if (phase == 2) {
      merge_partials(g, call, unit, w);
    } else if (g.split) {
      const HeadBlock piece = head_block(g, call, unit);
      attend_block(g, call, piece.head, piece.block, w);
    } else {
      if (g.whole) append(g, call, unit * g.keys, (unit + 1) * g.keys);
      int64_t from = unit % g.groups * kRowGroup;
      attend(g, call, unit / g.groups, from, num::min_i64(from + kRowGroup, g.rows), w);
    }
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(attention), INVAR_ROW_OF(attention_backward);
const CpuKernel INVAR_ROW_OF(attention) = {.op = "attention",
                                           .isa = INVAR_ISA,
                                           .phases = 3,
                                           .units = attention::units,
                                           .run = INVAR_ISA_NS::run,
                                           .scratch_bytes = attention::scratch_bytes,
                                           .state_bytes = attention::state_bytes};

const CpuKernel INVAR_ROW_OF(attention_backward) = {.op = "attention_backward",
                                                    .isa = INVAR_ISA,
                                                    .phases = 3,
                                                    .units = attention::backward_units,
                                                    .run = INVAR_ISA_NS::run_backward,
                                                    .scratch_bytes = attention::backward_scratch_bytes,
                                                    .shared_bytes = attention::backward_shared_bytes};

}  // namespace invar::ops
