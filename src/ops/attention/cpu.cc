// Rows are the queries of all heads that share one key head. Scores are tiles of rows x keys, results tiles of rows x
// value columns; where rows of a tile see different numbers of keys in a block they are taken one by one, as a hidden
// key is never read (attention.3).
#include "num/contract/lanes.h"
#include "num/exp/exp.h"
#include "num/reduce/lanes.h"
#include "ops/attention/attention.h"
#include "ops/tile.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using attention::Geometry;
using attention::kBlock;
using attention::kRowGroup;
static_assert(kRowGroup % kMaxRows == 0);

constexpr int kKeyVectors = kBlock / kW;
constexpr float kInf = __builtin_inff();

// What a unit holds in scratch, for each of its rows.
struct Work {
  float *q, *p, *o;  // query; scores, then weights; folded result
  float *m, *l, *f;  // folded maximum and sum; the factor of this block's fold
  int32_t* fold;     // which side this block's fold rescales
};
enum Fold : int32_t { rescale_old, rescale_new, nothing };

Work work(const Geometry& g, void* scratch) {
  float* p = static_cast<float*>(scratch);
  Work w{p, p + kRowGroup * g.d, p + kRowGroup * (g.d + kBlock), nullptr, nullptr, nullptr, nullptr};
  w.m = w.o + kRowGroup * g.dv_padded;
  w.l = w.m + kRowGroup, w.f = w.l + kRowGroup;
  w.fold = reinterpret_cast<int32_t*>(w.f + kRowGroup);
  return w;
}

void append(const Geometry& g, const Call& call, int64_t begin, int64_t end) {  // attention.2
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t head = unit / g.seq, i = unit % g.seq, position = call.past + i, slot = position % kBlock;
    int64_t row = head / g.kv_heads * g.seq + i, h = head % g.kv_heads;
    const float* k = call.in[1].as<const float>() + (row * g.kv_heads + h) * g.d;
    const float* v = call.in[2].as<const float>() + (row * g.kv_heads + h) * g.dv;
    float* keys = attention::keys(g, call, head, position / kBlock) + slot;
    float* values = attention::values(g, call, head, position / kBlock) + slot * g.dv_padded;
    for (int64_t j = 0; j < g.d; ++j) keys[j * kBlock] = k[j];
    for (int64_t j = 0; j < g.dv_padded; ++j) values[j] = j < g.dv ? v[j] : 0.0f;
  }
}

// Scores of MR rows against the keys of a block (attention.3).
template <int MR>
void scores(const Geometry& g, const float* q, const float* keys, float* s) {
  constexpr int NV = tile_vectors(MR, kKeyVectors);
  for (int v = 0; v < kKeyVectors; v += NV) {
    Columns<F32, NV> b{keys + v * kW, kBlock, 0};
    F y[MR * NV];
    num::INVAR_ISA_NS::contract(
        g.d,
        [&](int64_t begin, int64_t end, F(&c)[MR * NV])
            __attribute__((always_inline)) { chains<MR, NV>(q, g.d, b, begin, end, c); },
        y);
    for (int i = 0; i < MR * NV; ++i)
      store(s + i / NV * kBlock + (v + i % NV) * kW, mul(y[i], set1(g.scale)));
  }
}

// Scores of n visible keys -> weights; folds maximum and sum and says how to fold the results (attention.5 - 9).
void weigh(const Work& w, int64_t r, int n) {
  float *s = w.p + r * kBlock, m = w.m[r], mb = row_max(s, n);
  w.fold[r] = nothing;
  if (mb == -kInf) return;
  strip(s, n, [&](int64_t i, int lanes) {
    return num::INVAR_ISA_NS::exp(
        sub(lanes == kW ? load(s + i) : load_n(s + i, lanes), set1(mb)));  // attention.6
  });
  F lb = set1(num::INVAR_ISA_NS::block_sum(s, n)), l = set1(w.l[r]);
  bool later = mb > m;
  F f = canon(num::INVAR_ISA_NS::exp(set1(later ? m - mb : mb - m)));
  w.l[r] = first(later ? fma(l, f, lb) : fma(lb, f, l));
  w.f[r] = first(f);
  w.m[r] = first(maximum(set1(m), set1(mb)));
  w.fold[r] = later ? rescale_old : rescale_new;
}

// Rows r ... r + MR, all of which see the first n keys of the block, times NV vectors of value columns, folded.
template <int MR, int NV>
void result_columns(const Geometry& g, const Work& w, int64_t r, const float* values, int64_t n,
                    int64_t column) {
  F ob[MR * NV];
  Columns<F32, NV> b{values + column, g.dv_padded, 0};
  chains<MR, NV>(w.p + r * kBlock, kBlock, b, 0, n, ob);  // attention.8
  for (int i = 0; i < MR; ++i) {
    if (w.fold[r + i] == nothing) continue;
    F f = set1(w.f[r + i]);
    for (int v = 0; v < NV; ++v) {
      float* at = w.o + (r + i) * g.dv_padded + column + v * kW;
      F o = load(at), x = ob[i * NV + v];
      store(at, w.fold[r + i] == rescale_old ? fma(o, f, x) : fma(x, f, o));  // attention.9
    }
  }
}

template <int MR>
void results(const Geometry& g, const Work& w, int64_t r, const float* values, int64_t n) {
  constexpr int NV = tile_vectors(MR, kKeyVectors);
  int64_t column = 0;
  for (; column + NV * kW <= g.dv_padded; column += NV * kW)
    result_columns<MR, NV>(g, w, r, values, n, column);
  for (; column < g.dv_padded; column += kW) result_columns<MR, 1>(g, w, r, values, n, column);
}

// Rows [from, to) of one key head.
void attend(const Geometry& g, const Call& call, int64_t head, int64_t from, int64_t to, void* scratch) {
  Work w = work(g, scratch);
  int64_t rows = to - from, batch = head / g.kv_heads, h = head % g.kv_heads;
  auto place = [&](int64_t row) {  // of a row in q, counted in heads
    return (batch * g.seq + row / g.group) * g.q_heads + h * g.group + row % g.group;
  };
  auto visible = [&](int64_t r) { return call.past + (g.causal ? (from + r) / g.group + 1 : g.seq); };
  for (int64_t r = 0; r < rows; ++r) {
    const float* q = call.in[0].as<const float>() + place(from + r) * g.d;
    for (int64_t i = 0; i < g.d; ++i) w.q[r * g.d + i] = q[i];
    for (int64_t i = 0; i < g.dv_padded; ++i) w.o[r * g.dv_padded + i] = 0;
    w.m[r] = -kInf, w.l[r] = 0;
  }
  int64_t start = 0;  // rows before it see nothing of this block or of later ones
  for (int64_t block = 0; block * kBlock < visible(rows - 1); ++block) {
    auto seen = [&](int64_t r) {
      return static_cast<int>(num::min_i64(visible(r) - block * kBlock, kBlock));
    };
    while (seen(start) <= 0) ++start;
    const float *keys = attention::keys(g, call, head, block),
                *values = attention::values(g, call, head, block);
    for (int64_t r = start; r < rows; r += kMaxRows) {
      int count = static_cast<int>(num::min_i64(kMaxRows, rows - r));
      with_rows(count,
                [&](auto mr) { scores<decltype(mr)::value>(g, w.q + r * g.d, keys, w.p + r * kBlock); });
      for (int i = 0; i < count; ++i) weigh(w, r + i, seen(r + i));
      for (int i = 0; i < count;) {  // runs of rows that see the same number of keys
        int run = 1, n = seen(r + i);
        while (i + run < count && seen(r + i + run) == n) ++run;
        with_rows(run, [&](auto mr) { results<decltype(mr)::value>(g, w, r + i, values, n); });
        i += run;
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* o = w.o + r * g.dv_padded;
    bool none = w.m[r] == -kInf;
    strip(call.out[0].as<float>() + place(from + r) * g.dv, g.dv, [&](int64_t i, int) {  // o is padded
      return none ? zero() : div(load(o + i), set1(w.l[r]));                             // attention.10
    });
  }
}

void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const Geometry g = attention::geometry(call);
  if (phase == 0) return append(g, call, begin, end);
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t from = unit % g.groups * kRowGroup;
    attend(g, call, unit / g.groups, from, num::min_i64(from + kRowGroup, g.rows), scratch);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "attention",
                          .isa = INVAR_ISA,
                          .phases = 2,
                          .units = attention::units,
                          .run = INVAR_ISA_NS::run,
                          .scratch_bytes = attention::scratch_bytes,
                          .state_bytes = attention::state_bytes};

}  // namespace invar::ops
