// Rows are the queries of all heads that share one key head. Scores are tiles of rows x keys, results tiles of rows x
// value columns: as far as all rows of a tile see the block together, then row by row, as a hidden key is never read
// (attention.3). A single query over a long memory is shared out by blocks, whose results are folded in a last phase.
#include "num/contract/lanes.h"
#include "num/exp/exp.h"
#include "num/reduce/lanes.h"
#include "ops/attention/attention.h"
#include "ops/panel.h"
#include "ops/tile.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using attention::Geometry;
using attention::kBlock;
using attention::kKeyPanel;
using attention::kRowGroup;
using attention::kScoreRow;
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
  for (int64_t unit = begin; unit < end;) {
    int64_t head = unit / g.seq, i = unit % g.seq, position = call.past + i, slot = position % kBlock;
    int64_t row = head / g.kv_heads * g.seq + i, h = head % g.kv_heads;
    // A whole panel is turned at once where all its positions are this worker's.
    int64_t left = num::min_i64(end - unit, g.seq - i),
            count = slot % kKeyPanel == 0 && left >= kKeyPanel ? kKeyPanel : 1;
    const float* k = call.in[1].as<const float>() + (row * g.kv_heads + h) * g.d;
    const float* v = call.in[2].as<const float>() + (row * g.kv_heads + h) * g.dv;
    float* keys = attention::keys(g, call, head, position / kBlock) + slot / kKeyPanel * kKeyPanel * g.d +
                  slot % kKeyPanel;
    float* values = attention::values(g, call, head, position / kBlock) + slot * kKeyPanel;
    if (count == kKeyPanel)
      copy_turned<Widen<F32>>(k, g.kv_heads * g.d, g.d, kKeyPanel, keys, kKeyPanel);
    else
      for (int64_t j = 0; j < g.d; ++j) keys[j * kKeyPanel] = k[j];
    for (int64_t n = 0; n < count; ++n) {
      const float* from = v + n * g.kv_heads * g.dv;
      for (int64_t j = 0; j < g.dv_padded; j += kW)
        store(values + j / kKeyPanel * kKeyPanel * kBlock + n * kKeyPanel + j % kKeyPanel,
              j + kW <= g.dv ? load(from + j) : load_n(from + (j < g.dv ? j : 0), within(g.dv - j)));
    }
    unit += count;
  }
}

// Scores of MR rows against the first n keys of a block, and a few more (attention.3).
template <int MR>
void scores(const Geometry& g, const float* q, const float* keys, int64_t n, float* s) {
  constexpr int NV = tile_vectors(MR, 128 / kW);
  for (int64_t v = 0; v * kW < n; v += NV) {
    Columns<F32, kKeyPer> b{keys + v / kKeyPer * kKeyPanel * g.d + v % kKeyPer * kW, kKeyPanel,
                            kKeyPanel * g.d};
    F y[MR * NV];
    num::INVAR_ISA_NS::contract(
        g.d,
        [&](int64_t begin, int64_t end, F(&c)[MR * NV])
            __attribute__((always_inline)) { chains<MR, NV>(q, g.d, b, begin, end, c); },
        y);
    for (int i = 0; i < MR * NV; ++i)
      store(s + i / NV * kScoreRow + (v + i % NV) * kW, mul(y[i], set1(g.scale)));
  }
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

// Scores of n visible keys -> weights, their maximum and sum (attention.5 - 7).
INVAR_INLINE void weigh(float* s, int n, float& mb, float& lb) {
  mb = block_max(s, n);
  if (mb == -kInf) return;
  strip(
      s, n, [&](int64_t i, int) __attribute__((always_inline)) {
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

// A tile of rows at weights p, of which row i sees seen[i] keys of the block: their results (attention.8), each vector
// given to put(row, column, O_b).
template <int MR, int NV, class Put>
INVAR_INLINE void result_columns(const float* p, const int* seen, const float* values, int64_t column,
                                 Put put) {
  F ob[MR * NV];
  int all = seen[0];
  for (int i = 1; i < MR; ++i) all = seen[i] < all ? seen[i] : all;
  Columns<F32, kKeyPer> b{values + column / kKeyPanel * kKeyPanel * kBlock + column % kKeyPanel, kKeyPanel,
                          kKeyPanel * kBlock};
  chains<MR, NV>(p, kScoreRow, b, 0, all, ob);
  for (int i = 0; i < MR; ++i) {
    extend<NV>(p + i * kScoreRow, b, all, seen[i], ob + i * NV);
    for (int v = 0; v < NV; ++v) put(i, column + v * kW, ob[i * NV + v]);
  }
}
template <int MR, class Put>
void results(const Geometry& g, const float* p, const int* seen, const float* values, Put put) {
  constexpr int NV = tile_vectors(MR, 8), kNarrow = tile_vectors(MR, kKeyPer);
  int64_t column = 0;
  for (; column + NV * kW <= g.dv_padded; column += NV * kW)
    result_columns<MR, NV>(p, seen, values, column, put);
  for (; column < g.dv_padded; column += kNarrow * kW)
    result_columns<MR, kNarrow>(p, seen, values, column, put);
}

// The block for `count` rows from q on: weights -> w.p, maxima and sums -> mb, lb, results -> put.
template <class Folded, class Put>
INVAR_INLINE void block_rows(const Geometry& g, const Call& call, const Work& w, int64_t head, int64_t block,
                             const float* q, int count, const int* seen, Folded folded, Put put) {
  int most = 0;
  for (int i = 0; i < count; ++i) most = seen[i] > most ? seen[i] : most;
  with_rows(count, [&](auto mr) {
    constexpr int MR = decltype(mr)::value;
    scores<MR>(g, q, attention::keys(g, call, head, block), most, w.p);
    for (int i = 0; i < MR; ++i) {
      float mb, lb = 0;
      weigh(w.p + i * kScoreRow, seen[i], mb, lb);
      folded(i, mb, lb);
    }
    results<MR>(g, w.p, seen, attention::values(g, call, head, block), put);
  });
}

// Of row `row` of a key head, its place in q, counted in heads.
INVAR_INLINE int64_t place(const Geometry& g, int64_t head, int64_t row) {
  return (head / g.kv_heads * g.seq + row / g.group) * g.q_heads + head % g.kv_heads * g.group +
         row % g.group;
}
// attention.10
INVAR_INLINE void finish(const Geometry& g, const Call& call, int64_t place, const float* o, float m,
                         float l) {
  const bool none = m == -kInf;
  strip(
      call.out[0].as<float>() + place * g.dv, g.dv, [&](int64_t i, int) __attribute__((always_inline)) {
        return none ? zero() : div(load(o + i), set1(l));  // o is padded
      });
}

// Rows [from, to) of one key head.
void attend(const Geometry& g, const Call& call, int64_t head, int64_t from, int64_t to, const Work& w) {
  const int64_t rows = to - from;
  auto visible = [&](int64_t r) { return call.past + (g.causal ? (from + r) / g.group + 1 : g.seq); };
  for (int64_t r = 0; r < rows; ++r) {
    const float* q = call.in[0].as<const float>() + place(g, head, from + r) * g.d;
    for (int64_t i = 0; i < g.d; ++i) w.q[r * g.d + i] = q[i];
    for (int64_t i = 0; i < g.dv_padded; ++i) w.o[r * g.dv_padded + i] = 0;
    w.m[r] = -kInf, w.l[r] = 0;
  }
  int64_t start = 0;  // rows before it see nothing of this block or of later ones
  for (int64_t block = 0; block * kBlock < visible(rows - 1); ++block) {
    while (visible(start) <= block * kBlock) ++start;
    for (int64_t r = start; r < rows; r += kMaxRows) {
      const int count = static_cast<int>(num::min_i64(kMaxRows, rows - r));
      int seen[kMaxRows];
      for (int i = 0; i < count; ++i)
        seen[i] = static_cast<int>(num::min_i64(visible(r + i) - block * kBlock, kBlock));
      Fold by[kMaxRows];
      block_rows(
          g, call, w, head, block, w.q + r * g.d, count, seen,
          [&](int i, float mb, float lb) { by[i] = fold(mb, lb, w.m[r + i], w.l[r + i]); },
          [&](int i, int64_t column, F x) __attribute__((always_inline)) {
            fold_result(by[i], w.o + (r + i) * g.dv_padded + column, x);
          });
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    finish(g, call, place(g, head, from + r), w.o + r * g.dv_padded, w.m[r], w.l[r]);
}

// One block of a single query's heads -> its parts.
void attend_block(const Geometry& g, const Call& call, int64_t head, int64_t block, const Work& w) {
  const int n = static_cast<int>(num::min_i64(call.past + 1 - block * kBlock, kBlock));
  for (int64_t r = 0; r < g.group; r += kMaxRows) {
    const int count = static_cast<int>(num::min_i64(kMaxRows, g.group - r));
    int seen[kMaxRows];
    for (int i = 0; i < count; ++i) seen[i] = n;
    block_rows(
        g, call, w, head, block, call.in[0].as<const float>() + place(g, head, r) * g.d, count, seen,
        [&](int i, float mb, float lb) {
          float* part = attention::part(g, call, head, block, r + i);
          part[0] = mb, part[1] = lb;
        },
        [&](int i, int64_t column, F x) __attribute__((always_inline)) {
          store(attention::part(g, call, head, block, r + i) + attention::kPartHead + column, x);
        });
  }
}
void fold_parts(const Geometry& g, const Call& call, int64_t head, const Work& w) {
  for (int64_t r = 0; r < g.group; ++r) {
    float m = -kInf, l = 0;
    for (int64_t j = 0; j < g.dv_padded; ++j) w.o[j] = 0;
    for (int64_t block = 0; block < g.seen; ++block) {
      const float* part = attention::part(g, call, head, block, r);
      const Fold by = fold(part[0], part[1], m, l);
      for (int64_t j = 0; j < g.dv_padded; j += kW)
        fold_result(by, w.o + j, load(part + attention::kPartHead + j));
    }
    finish(g, call, place(g, head, r), w.o, m, l);
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
      attend_block(g, call, unit / g.seen, unit % g.seen, w);
    } else {
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
