// Rows are the queries of all heads that share one key head. Scores are tiles of rows x keys, results tiles of rows x
// value columns: runs of keys that all rows of a tile see together, and what lies between row by row, as a hidden key is
// left out (attention.18). A single query over a long memory is shared out by blocks, whose results are folded in a last
// phase.
#include "num/contract/lanes.h"
#include "num/exp/exp.h"
#include "num/hyperbolic/hyperbolic_ff.h"
#include "num/reduce/lanes.h"
#include "ops/attention/visibility.h"
#include "kernels/cpu/gemm_packing.h"
#include "kernels/cpu/gemm_microkernel.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using attention::Geometry;
using attention::kBlock;
using attention::kKeyPanel;
using attention::kRowGroup;
using attention::kScoreRow;
using attention::Seen;
using attention::Sight;
static_assert(kRowGroup % kMaxRows == 0 && kMaxRows <= attention::kTallest);

constexpr int kKeyPer = kKeyPanel / kW;  // vectors of a panel
constexpr float kInf = __builtin_inff();

// What a unit holds in scratch: of each row the query, the folded result, maximum and sum; scores, then weights, of a tile.
struct Work {
  float *q, *o, *m, *l, *p;
};
Work work(const Geometry& g, void* scratch) {
  float* o = static_cast<float*>(scratch);
  return {o + kRowGroup * (g.dv_padded + 2) + attention::kTallest * kScoreRow, o, o + kRowGroup * g.dv_padded,
          o + kRowGroup * (g.dv_padded + 1), o + kRowGroup * (g.dv_padded + 2)};
}

// attention.2
void append(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
  const int64_t next_row = g.heads_first ? 1 : g.kv_heads;
  for (int64_t unit = begin; unit < end;) {
    int64_t head = unit / g.keys, i = unit % g.keys, batch = head / g.kv_heads,
            position = call.sequences[batch].past + i, slot = position % kBlock;
    // A whole panel is turned at once where all its positions are this worker's.
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
      copy_turned<Widen<F32>>(k, next_row * g.d, g.d, kKeyPanel, keys, kKeyPanel);
    else
      for (int64_t j = 0; j < g.d; ++j) keys[j * kKeyPanel] = k[j];
    for (int64_t n = 0; n < count; ++n) {
      const float* from = v + n * next_row * g.dv;
      for (int64_t j = 0; j < g.dv_padded; j += kW)
        store(values + j / kKeyPanel * kKeyPanel * kBlock + n * kKeyPanel + j % kKeyPanel,
              j + kW <= g.dv ? load(from + j) : load_n(from + (j < g.dv ? j : 0), within(g.dv - j)));
    }
    unit += count;
  }
}

// Scores of MR rows against the keys [begin, end) of a block, and a few more (attention.3).
template <int MR>
void scores(const Geometry& g, const float* q, const float* keys, int begin, int end, float* s) {
  constexpr int NV = tile_vectors(MR, 128 / kW);
  for (int v = begin / (NV * kW) * NV; v * kW < end; v += NV) {
    Columns<F32, kKeyPer> b{keys + v / kKeyPer * kKeyPanel * g.d + v % kKeyPer * kW, kKeyPanel,
                            kKeyPanel * g.d};
    F y[MR * NV];
    num::INVAR_ISA_NS::contract(
        g.d,
        [&](int64_t from, int64_t to, F(&c)[MR * NV])
            __attribute__((always_inline)) { chains<MR, NV>(q, g.d, b, from, to, c); },
        y);
    for (int i = 0; i < MR * NV; ++i)
      store(s + i / NV * kScoreRow + (v + i % NV) * kW, mul(y[i], set1(g.scale)));
  }
}

// attention.16 and attention.14 for n scores whose part of the mask begins at `mask` and has `columns` elements.
void adjust(const Geometry& g, const float* mask, int64_t columns, float* s, int n) {
  for (int i = 0; i < n; i += kW) {
    F x = load(s + i);
    if (g.softcap != 0) x = mul(set1(g.softcap), num::INVAR_ISA_NS::tanh_ff(div(x, set1(g.softcap))));
    if (mask) x = add(x, load_n(mask + i, within(columns - i)));
    store(s + i, x);
  }
}

// Of the keys of a block those that this part of a mask, of `columns` elements, does not hide (attention.14).
Seen unmasked(const float* mask, int64_t columns) {
  const F hides = set1(-kInf);
  bool some = false;
  Seen seen = attention::below(columns);
  const int n = attention::end_of(seen);
  for (int i = 0; i < n; i += kW) some = some || any(eq(load_n(mask + i, within(n - i)), hides));
  for (int i = 0; some && i < n; ++i)
    if (mask[i] == -kInf) seen.half[i / 64] &= ~(uint64_t{1} << i % 64);
  return seen;
}
Seen unmasked(const uint8_t* mask, int64_t columns) {
  Seen seen;
  const int n = attention::end_of(attention::below(columns));
  for (int i = 0; i < n; ++i) seen.half[i / 64] |= uint64_t{mask[i] != 0} << i % 64;
  return seen;
}

// attention.5 for n scores, behind which up to a vector may be overwritten. The sign of a zero does not matter here.
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

// Scores of n visible keys -> weights, their maximum and sum (attention.5 - 7). Meanwhile n lines from `ahead` on arrive,
// where it is not null.
INVAR_INLINE void weigh(float* s, int n, const float* ahead, float& mb, float& lb) {
  mb = block_max(s, n);
  if (mb == -kInf) return;
  strip(
      s, n, [&](int64_t i, int) __attribute__((always_inline)) {
        for (int64_t line = i; ahead && line < i + kW; ++line) __builtin_prefetch(ahead + line * kKeyPanel);
        return num::INVAR_ISA_NS::exp(
            sub(load(s + i), set1(mb)));  // attention.6; what lies behind n is not kept
      });
  lb = num::INVAR_ISA_NS::block_sum(s, n);
}

// How a block joins what was folded before (attention.9): which side is rescaled, by what.
struct Fold {
  enum Side { old, fresh, nothing } side = nothing;
  float f = 0;
};
INVAR_INLINE Fold fold(float mb, float lb, float& m, float& l) {
  if (mb == -kInf) return {};
  const bool later = mb > m;
  const F f = canon(num::INVAR_ISA_NS::exp(set1(later ? m - mb : mb - m)));
  l = first(later ? fma(set1(l), f, set1(lb)) : fma(set1(lb), f, set1(l)));
  m = first(maximum(set1(m), set1(mb)));
  return {later ? Fold::old : Fold::fresh, first(f)};
}
INVAR_INLINE void fold_result(const Fold& by, float* at, F x) {
  if (by.side == Fold::nothing) return;
  const F f = set1(by.f), o = load(at);
  store(at, by.side == Fold::old ? fma(o, f, x) : fma(x, f, o));
}

// A tile of rows at weights p, of which row i sees seen[i] of the block: their results (attention.8), each vector given to
// put(row, column, O_b).
template <int MR, int NV, class Put>
INVAR_INLINE void result_columns(const float* p, const Seen* seen, const float* values, int64_t column,
                                 Put put) {
  F ob[MR * NV];
  for (F& x : ob) x = zero();
  Seen all = seen[0];
  for (int i = 1; i < MR; ++i) all = all & seen[i];
  Columns<F32, kKeyPer> b{values + column / kKeyPanel * kKeyPanel * kBlock + column % kKeyPanel, kKeyPanel,
                          kKeyPanel * kBlock};
  for (int at = 0; at < kBlock;) {
    const int from = attention::next(all, at), to = attention::next(~all, from);
    for (int i = 0; from > at && MR > 1 && i < MR; ++i) {
      F row[NV];
      for (int v = 0; v < NV; ++v) row[v] = ob[i * NV + v];
      attention::each_run(
          seen[i], at, from, [&](int begin, int end) __attribute__((always_inline)) {
            extend<1, NV>(p + i * kScoreRow, kScoreRow, b, begin, end, row);
          });
      for (int v = 0; v < NV; ++v) ob[i * NV + v] = row[v];
    }
    extend<MR, NV>(p, kScoreRow, b, from, to, ob);
    at = to;
  }
  for (int i = 0; i < MR * NV; ++i) put(i / NV, column + i % NV * kW, ob[i]);
}
template <int MR, class Put>
void results(const Geometry& g, const float* p, const Seen* seen, const float* values, Put put) {
  constexpr int NV = tile_vectors(MR, 8), kNarrow = tile_vectors(MR, kKeyPer);
  int64_t column = 0;
  for (; column + NV * kW <= g.dv_padded; column += NV * kW)
    result_columns<MR, NV>(p, seen, values, column, put);
  for (; column < g.dv_padded; column += kNarrow * kW)
    result_columns<MR, kNarrow>(p, seen, values, column, put);
}

// Row `row` of a key head: its batch, its query and its head, and what it sees.
struct Row {
  int64_t batch, i, head;
  Sight sight;
};
INVAR_INLINE Row row_of(const Geometry& g, const Call& call, int64_t head, int64_t row) {
  const int64_t batch = head / g.kv_heads, i = row / g.group;
  const int64_t* lengths = g.lengths ? g.lengths->as<const int64_t>() : nullptr;
  return {batch, i, head % g.kv_heads * g.group + row % g.group,
          attention::sight(g, lengths, call.sequences[batch].past, batch, i)};
}

// The block for rows [row, row + count) of a key head, whose queries begin at q: weights -> w.p, maxima and sums ->
// folded, results -> put. Nothing is called where none of them sees anything of it.
template <class Folded, class Put>
INVAR_INLINE void block_rows(const Geometry& g, const Call& call, const Work& w, int64_t head, int64_t block,
                             int64_t row, const float* q, int count, Folded folded, Put put) {
  Seen seen[kMaxRows], any;
  const float* added[kMaxRows] = {};
  const int64_t columns = g.mask ? attention::mask_columns(g) - block * kBlock : 0;
  void* const memory = attention::slot_of(call, head / g.kv_heads);
  for (int i = 0; i < count; ++i) {
    const Row r = row_of(g, call, head, row + i);
    seen[i] = attention::seen_of(r.sight, block);
    if (g.mask && attention::end_of(seen[i])) {
      const int64_t at = attention::mask_row(g, r.batch, r.head, r.i) + block * kBlock;
      const bool adds = g.mask->dtype == DType::f32;
      if (adds && columns > 0) added[i] = g.mask->as<const float>() + at;
      seen[i] = seen[i] & (adds ? unmasked(g.mask->as<const float>() + at, columns)
                                : unmasked(g.mask->as<const uint8_t>() + at, columns));
    }
    any = any | seen[i];
  }
  const int most = attention::end_of(any);
  if (most == 0) return;
  with_rows(count, [&](auto mr) {
    constexpr int MR = decltype(mr)::value;
    const float* const values = attention::values(g, memory, head % g.kv_heads, block);
    scores<MR>(g, q, attention::keys(g, memory, head % g.kv_heads, block), attention::next(any, 0), most,
               w.p);
    for (int i = 0; i < MR; ++i) {
      float *s = w.p + i * kScoreRow, mb, lb = 0;
      const int n = attention::end_of(seen[i]);
      if (g.softcap != 0 || added[i]) adjust(g, added[i], columns, s, n);
      attention::each_run(~seen[i], 0, n, [&](int from, int to) {
        for (int j = from; j < to; ++j) s[j] = -kInf;
      });
      // Each row asks for one panel of values; with many rows the block's values are there soon.
      weigh(s, n, i * kKeyPanel < g.dv_padded ? values + i * kKeyPanel * kBlock : nullptr, mb, lb);
      folded(i, mb, lb);
    }
    results<MR>(g, w.p, seen, values, put);
  });
}

// Of row `row` of a key head, its place in q and y, counted in heads.
INVAR_INLINE int64_t place(const Geometry& g, int64_t head, int64_t row) {
  return attention::head_row(g, head / g.kv_heads, row / g.group, head % g.kv_heads * g.group + row % g.group,
                             g.seq, g.q_heads);
}
// attention.17 and attention.10; o is padded.
INVAR_INLINE void finish(const Geometry& g, const Call& call, int64_t head, int64_t row, float* o, float m,
                         float l) {
  if (g.sinks) {
    const float sink = g.sinks->as<const float>()[head % g.kv_heads * g.group + row % g.group];
    const Fold by = fold(sink, 1, m, l);
    for (int64_t j = 0; j < g.dv_padded; j += kW) fold_result(by, o + j, zero());
  }
  const bool none = m == -kInf;
  strip(
      call.out[0].as<float>() + place(g, head, row) * g.dv,
      g.dv, [&](int64_t i, int) __attribute__((always_inline)) {
        return none ? zero() : div(load(o + i), set1(l));
      });
}

// Rows [from, to) of one key head. What a row sees begins and ends no earlier than what the row before it sees.
void attend(const Geometry& g, const Call& call, int64_t head, int64_t from, int64_t to, const Work& w) {
  const int64_t rows = to - from;
  for (int64_t r = 0; r < rows; ++r) {
    const float* q = call.in[0].as<const float>() + place(g, head, from + r) * g.d;
    for (int64_t i = 0; i < g.d; ++i) w.q[r * g.d + i] = q[i];
    for (int64_t i = 0; i < g.dv_padded; ++i) w.o[r * g.dv_padded + i] = 0;
    w.m[r] = -kInf, w.l[r] = 0;
  }
  auto high = [&](int64_t r) { return row_of(g, call, head, from + r).sight.high; };
  int64_t start = 0;  // rows before it see nothing of this block or of later ones
  for (int64_t block = 0; block * kBlock < high(rows - 1); ++block) {
    while (high(start) <= block * kBlock) ++start;
    for (int64_t r = start; r < rows; r += kMaxRows) {
      const int count = static_cast<int>(num::min_i64(kMaxRows, rows - r));
      Fold by[kMaxRows];
      block_rows(
          g, call, w, head, block, from + r, w.q + r * g.d, count,
          [&](int i, float mb, float lb) { by[i] = fold(mb, lb, w.m[r + i], w.l[r + i]); },
          [&](int i, int64_t column, F x) __attribute__((always_inline)) {
            fold_result(by[i], w.o + (r + i) * g.dv_padded + column, x);
          });
    }
  }
  for (int64_t r = 0; r < rows; ++r) finish(g, call, head, from + r, w.o + r * g.dv_padded, w.m[r], w.l[r]);
}

// One block of a single query's heads -> its parts.
float* part_of(const Geometry& g, const Call& call, int64_t head, int64_t block, int64_t row) {
  return attention::part(g, attention::slot_of(call, head / g.kv_heads), head % g.kv_heads, block, row);
}
void attend_block(const Geometry& g, const Call& call, int64_t head, int64_t block, const Work& w) {
  for (int64_t r = 0; r < g.group; r += kMaxRows) {
    const int count = static_cast<int>(num::min_i64(kMaxRows, g.group - r));
    for (int64_t i = 0; i < count; ++i) part_of(g, call, head, block, r + i)[0] = -kInf;
    block_rows(
        g, call, w, head, block, r, call.in[0].as<const float>() + place(g, head, r) * g.d, count,
        [&](int i, float mb, float lb) {
          float* part = part_of(g, call, head, block, r + i);
          part[0] = mb, part[1] = lb;
        },
        [&](int i, int64_t column, F x) __attribute__((always_inline)) {
          store(part_of(g, call, head, block, r + i) + attention::kPartHead + column, x);
        });
  }
}
void fold_parts(const Geometry& g, const Call& call, int64_t head, const Work& w) {
  const int64_t blocks = attention::seen_blocks(g, call.sequences[head / g.kv_heads].past);
  for (int64_t r = 0; r < g.group; ++r) {
    float m = -kInf, l = 0;
    for (int64_t j = 0; j < g.dv_padded; ++j) w.o[j] = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const float* part = part_of(g, call, head, block, r);
      const Fold by = fold(part[0], part[1], m, l);
      for (int64_t j = 0; j < g.dv_padded; j += kW)
        fold_result(by, w.o + j, load(part + attention::kPartHead + j));
    }
    finish(g, call, head, r, w.o, m, l);
  }
}

// Units of a step that is shared out by blocks: the blocks of every head of a sequence, then those of the next sequence.
struct Piece {
  int64_t head, block;
};
Piece piece_of(const Geometry& g, const Call& call, int64_t unit) {
  for (int64_t batch = 0;; ++batch) {
    const int64_t blocks = attention::seen_blocks(g, call.sequences[batch].past);
    if (unit < g.kv_heads * blocks) return {batch * g.kv_heads + unit / blocks, unit % blocks};
    unit -= g.kv_heads * blocks;
  }
}

void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const Geometry g = attention::geometry(call);
  const Work w = work(g, scratch);
  if (phase == 0) return append(g, call, begin, end);
  for (int64_t unit = begin; unit < end; ++unit) {
    if (phase == 2) {
      fold_parts(g, call, unit, w);
    } else if (g.split) {
      const Piece piece = piece_of(g, call, unit);
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

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "attention",
                          .isa = INVAR_ISA,
                          .phases = 3,
                          .units = attention::units,
                          .run = INVAR_ISA_NS::run,
                          .scratch_bytes = attention::scratch_bytes,
                          .state_bytes = attention::state_bytes};

}  // namespace invar::ops
