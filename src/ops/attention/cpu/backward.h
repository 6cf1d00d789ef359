// The gradients of attention (attention.20 to attention.24). Included by cpu.cc only. Operands of a
// key head are packed first. Then tiles of rows see all their keys at once, which gives what rows
// keep and dq; then tiles of keys see the rows in blocks of a chain, which gives dk and dv. Scores
// are computed twice and never kept. A pair that is hidden is left out where contraction.5 allows.
#pragma once
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/gemm_packing.h"
#include "num/contract/lanes.h"
#include "num/exp/exp.h"
#include "num/hyperbolic/hyperbolic_ff.h"
#include "num/reduce/lanes.h"
#include "ops/attention/cpu/key_blocks.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using attention::BackwardLayout;
using attention::BackwardOperands;
using attention::Geometry;
using attention::kKeyPanel;
using attention::VisibleKeys;

constexpr int kVectorsPerKeyPanel = kKeyPanel / kW;  // vectors per key panel

// A key head and the scratch of a unit.
struct GradientHead {
  const BackwardOperands& o;
  const Geometry& g;
  const BackwardLayout& at;
  int64_t head;
  float *memory, *out;
  float *s, *dp, *bend, *kept;  // scratch: tiles with rows `stride` apart, and kept sums
  int64_t stride, width;        // width: of a row of kept sums

  float* operator()(int64_t part) const { return memory + part; }
  int64_t batch() const { return head / g.kv_heads; }
  int64_t q_head(int64_t row) const { return head % g.kv_heads * g.group + row / g.seq; }
  const int64_t* lengths() const { return g.lengths ? g.lengths->as<const int64_t>() : nullptr; }
  VisibleKeys sight(int64_t row) const {
    return attention::visible_keys(g, lengths(), 0, batch(), row % g.seq);
  }
  int64_t position(int64_t row) const {
    return attention::query_position(g, lengths(), 0, batch(), row % g.seq);
  }
};

enum GradientOperand { kOfQ, kOfGrad, kOfK, kOfV };

// Rows of an operand, padded, and its panels; whether any element is infinite or NaN.
INVAR_INLINE void pack_operand(const GradientHead& h, int which) {
  const bool by_row = which == kOfQ || which == kOfGrad, wide = which == kOfGrad || which == kOfV;
  const View& from = *(which == kOfQ ? h.o.q : which == kOfGrad ? h.o.grad : which == kOfK ? h.o.k : h.o.v);
  float* const rows = h(which == kOfQ      ? h.at.q
                        : which == kOfGrad ? h.at.grad
                        : which == kOfK    ? h.at.k
                                           : h.at.v);
  float* const panels = h(which == kOfQ      ? h.at.q_t
                          : which == kOfGrad ? h.at.grad_t
                          : which == kOfK    ? h.at.k_t
                                             : h.at.v_t);
  const int64_t n = by_row ? h.g.rows : h.g.keys, size = wide ? h.g.dv : h.g.d;
  const int64_t padded = wide ? h.g.dv_padded : h.at.d_padded, all = attention::up_to(n, kKeyPanel);
  bool finite = true;
  for (int64_t r = 0; r < all; ++r) {
    const int64_t row =
        r < n ? by_row ? attention::gradient_row(h.g, h.head, r) : attention::gradient_key(h.g, h.head, r)
              : 0;
    const float* const x = from.as<const float>() + row * size;
    for (int64_t i = 0; i < padded; i += kW) {
      const F v = r < n && i < size ? load_n(x + i, valid_lanes(size - i)) : zero(), none = sub(v, v);
      finite = finite && !any(unordered(none, none));
      store(rows + r * padded + i, v);
    }
  }
  for (int64_t p = 0; p < all; p += kKeyPanel)
    pack_transposed<PackWidened<F32>>(rows + p * padded, padded, size, kKeyPanel, panels + p * size,
                                      kKeyPanel);
  h(h.at.flags)[which] = finite ? 0.0f : 1.0f;
}

// out[i][c] = the contraction, stored, of row i of a with column c of panels, for columns
// [from, to), multiples of a panel; column `from` goes to the start of a row of out plus `put`.
template <int MR>
[[gnu::noinline]] void gradient_products(const GradientHead& h, const float* a, int64_t lda, int64_t size,
                                         const float* panels, int64_t from, int64_t to, float* out) {
  constexpr int NV = tile_vectors(MR, kVectorsPerKeyPanel);
  for (int64_t column = from; column < to; column += NV * kW) {
    PanelsOfB<F32, kVectorsPerKeyPanel> b{panels + column / kKeyPanel * kKeyPanel * size + column % kKeyPanel,
                                          kKeyPanel, kKeyPanel * size};
    F y[MR * NV];
    num::INVAR_ISA_NS::contract(
        size,
        [&](int64_t begin, int64_t end, F(&c)[MR * NV])
            __attribute__((always_inline)) { microkernel<MR, NV>(a, lda, b, begin, end, c); },
        y);
    for (int i = 0; i < MR * NV; ++i)
      store(out + i / NV * h.stride + column - from + i % NV * kW, canonicalize(y[i]));
  }
}

// attention.21: the score of a scaled product, and its bend.
INVAR_INLINE F gradient_score(const Geometry& g, F product, float* bend) {
  F s = canonicalize(mul(product, set1(g.scale)));
  if (g.softcap != 0) {
    const F t = canonicalize(num::INVAR_ISA_NS::tanh_ff(canonicalize(div(s, set1(g.softcap)))));
    store(bend, t);
    s = canonicalize(mul(t, set1(g.softcap)));
  }
  return s;
}
// attention.19 and attention.14, each sum stored.
INVAR_INLINE float gradient_bias(const GradientHead& h, float s, int64_t row, int64_t j) {
  const auto stored = [](float x) { return first(canonicalize(set1(x))); };
  if (h.g.slopes)
    s = stored(
        s + stored(h.g.slopes->as<const float>()[h.q_head(row)] * static_cast<float>(j - h.position(row))));
  if (h.g.mask && h.g.mask->dtype == DType::f32 && j < attention::mask_columns(h.g))
    s = stored(
        s +
        h.g.mask->as<const float>()[attention::mask_row(h.g, h.batch(), h.q_head(row), row % h.g.seq) + j]);
  return s;
}
INVAR_INLINE bool in_sight(const GradientHead& h, const VisibleKeys& see, int64_t row, int64_t j) {
  if (j >= see.high || (j < see.low && j >= see.first)) return false;
  if (!h.g.mask) return true;
  if (j >= attention::mask_columns(h.g)) return false;
  const int64_t at = attention::mask_row(h.g, h.batch(), h.q_head(row), row % h.g.seq) + j;
  return h.g.mask->dtype == DType::f32 ? h.g.mask->as<const float>()[at] != -kInf
                                       : h.g.mask->as<const uint8_t>()[at] != 0;
}
INVAR_INLINE F gradient_weight(F s, F top, F total) {  // attention.22
  const F w = num::INVAR_ISA_NS::exp_stored(canonicalize(sub(s, top)));
  return canonicalize(div(w, total));
}
INVAR_INLINE F gradient_of_score(const Geometry& g, F weight, F dp, F mean, const float* bend) {
  F d = canonicalize(mul(weight, canonicalize(sub(dp, mean))));  // attention.23
  if (g.softcap != 0) {
    const F t = load(bend), one = set1(1.0f);
    d = canonicalize(mul(d, canonicalize(mul(canonicalize(sub(one, t)), canonicalize(add(one, t))))));
  }
  return canonicalize(mul(d, set1(g.scale)));
}

// x[j - from] = value for the keys of [from, to) that a row does not see.
INVAR_INLINE void fill_hidden(const GradientHead& h, const VisibleKeys& see, int64_t row, int64_t from,
                              int64_t to, float value, float* x) {
  if (h.g.mask) {
    for (int64_t j = from; j < to; ++j)
      if (!in_sight(h, see, row, j)) x[j - from] = value;
    return;
  }
  const int64_t kept = num::min_i64(see.first, see.high), begin = kept > from ? kept : from;
  for (int64_t j = begin; j < num::min_i64(see.low, to); ++j) x[j - from] = value;
  for (int64_t j = see.high > from ? see.high : from; j < to; ++j) x[j - from] = value;
}

// The largest of n floats, n a multiple of the lanes, and of `start`.
INVAR_INLINE float largest(const float* x, int64_t n, float start) {
  F most = set1(start);
  for (int64_t i = 0; i < n; i += kW) most = maximum(most, load(x + i));
  alignas(64) float lane[kW];
  store(lane, most);
  for (int i = 1; i < kW; ++i) lane[0] = first(maximum(set1(lane[0]), set1(lane[i])));
  return lane[0];
}

// attention.21 to attention.23 for the scores of a row over keys [from, to): what the row keeps.
[[gnu::noinline]] void row_weights(const GradientHead& h, const VisibleKeys& see, int64_t row, int64_t from,
                                   int64_t to, float* s, float* bend) {
  for (int64_t j = 0; j < to - from; j += kW) store(s + j, gradient_score(h.g, load(s + j), bend + j));
  if (h.g.slopes || h.g.mask)
    for (int64_t j = from; j < to; ++j) s[j - from] = gradient_bias(h, s[j - from], row, j);
  fill_hidden(h, see, row, from, to, -kInf, s);
  const float* const sink = h.g.sinks ? h.g.sinks->as<const float>() + h.q_head(row) : nullptr;
  float top = largest(s, to - from, sink ? *sink : -kInf);
  top = top == -kInf ? 0 : first(canonicalize(set1(top)));
  for (int64_t j = 0; j < to - from; j += kW)
    store(s + j, num::INVAR_ISA_NS::exp_stored(canonicalize(sub(load(s + j), set1(top)))));
  // Keys before `from` are +0 in the sum; those beyond the last one are not part of it.
  F total = canonicalize(set1(num::INVAR_ISA_NS::reduce_row(
      num::min_i64(to, h.g.keys), [&](F acc, int64_t j, int lanes) __attribute__((always_inline)) {
        return j + kW <= from ? acc : add(acc, load_part(s + j - from, lanes));
      })));
  if (sink)
    total =
        canonicalize(add(total, num::INVAR_ISA_NS::exp_stored(canonicalize(sub(set1(*sink), set1(top))))));
  if (first(total) == 0) total = set1(1.0f);
  for (int64_t j = 0; j < to - from; j += kW) store(s + j, canonicalize(div(load(s + j), total)));
  const int64_t at = attention::gradient_row(h.g, h.head, row) * h.g.dv;
  const float *grad = h.o.grad->as<const float>() + at, *y = h.o.y->as<const float>() + at;
  const float mean = num::INVAR_ISA_NS::reduce_row(
      h.g.dv, [&](F acc, int64_t i, int lanes) __attribute__((always_inline)) {
        return add(acc, canonicalize(mul(load_part(grad + i, lanes), load_part(y + i, lanes))));
      });
  h(h.at.top)[row] = top, h(h.at.total)[row] = first(total);
  h(h.at.mean)[row] = first(canonicalize(set1(mean)));
}

// dS of a row from its weights s and from dp, over keys [from, to).
[[gnu::noinline]] void row_score_gradients(const GradientHead& h, const VisibleKeys& see, int64_t row,
                                           int64_t from, int64_t to, float* s, const float* dp,
                                           const float* bend) {
  const F mean = set1(h(h.at.mean)[row]);
  for (int64_t j = 0; j < to - from; j += kW)
    store(s + j, gradient_of_score(h.g, load(s + j), load(dp + j), mean, bend + j));
  fill_hidden(h, see, row, from, to, 0, s);
}

// MR rows of scratch that are contracted with the rows of an operand: columns of a result.
template <int MR, class Chain, class Put>
INVAR_INLINE void gradient_columns(int64_t size, Chain chain, Put put) {
  constexpr int NV = tile_vectors(MR, kVectorsPerKeyPanel);
  for (int64_t column = 0; column < size; column += NV * kW) {
    F y[MR * NV];
    chain(column, y);
    for (int i = 0; i < MR * NV; ++i)
      if (const int lanes = valid_lanes(size - column - i % NV * kW))
        put(i / NV, column + i % NV * kW, canonicalize(y[i]), lanes);
  }
}

// dq of MR rows, and what they keep.
template <int MR>
void gradient_rows(const GradientHead& h, int64_t row) {
  const Geometry& g = h.g;
  VisibleKeys see[MR];
  int64_t from = g.keys, to = 0;
  for (int i = 0; i < MR; ++i) {
    see[i] = h.sight(row + i);
    from = num::min_i64(from, see[i].first > 0 ? 0 : see[i].low);
    to = see[i].high > to ? see[i].high : to;
  }
  if (h(h.at.flags)[kOfK] != 0) from = 0, to = g.keys;
  from = num::min_i64(from, to) / kKeyPanel * kKeyPanel, to = attention::up_to(to, kKeyPanel);
  gradient_products<MR>(h, h(h.at.q) + row * h.at.d_padded, h.at.d_padded, g.d, h(h.at.k_t), from, to, h.s);
  for (int i = 0; i < MR; ++i)
    row_weights(h, see[i], row + i, from, to, h.s + i * h.stride, h.bend + i * h.stride);
  gradient_products<MR>(h, h(h.at.grad) + row * g.dv_padded, g.dv_padded, g.dv, h(h.at.v_t), from, to, h.dp);
  for (int i = 0; i < MR; ++i)
    row_score_gradients(h, see[i], row + i, from, to, h.s + i * h.stride, h.dp + i * h.stride,
                        h.bend + i * h.stride);
  constexpr int NV = tile_vectors(MR, kVectorsPerKeyPanel);
  gradient_columns<MR>(
      g.d,
      [&](int64_t column, F(&y)[MR * NV]) __attribute__((always_inline)) {
        const PanelsOfB<F32, kVectorsPerKeyPanel> b{h(h.at.k) + from * h.at.d_padded + column, h.at.d_padded,
                                                    kKeyPanel};
        num::INVAR_ISA_NS::contract(
            g.keys,
            [&](int64_t begin, int64_t end, F(&c)[MR * NV]) __attribute__((always_inline)) {
              const int64_t first = (begin > from ? begin : from) - from;
              microkernel<MR, NV>(h.s, h.stride, b, first, num::min_i64(end, to) - from, c);
            },
            y);
      },
      [&](int i, int64_t column, F y, int lanes) __attribute__((always_inline)) {
        store_part(h.out + attention::gradient_row(g, h.head, row + i) * g.d + column, y, lanes);
      });
}

// P and dS, transposed, of a key and rows [begin, end), from the products s and dp.
[[gnu::noinline]] void key_score_gradients(const GradientHead& h, int64_t key, int64_t begin, int64_t end,
                                           bool all_seen, float* s, float* dp, float* bend) {
  const Geometry& g = h.g;
  const int64_t last = num::min_i64(end, g.rows);
  for (int64_t r = 0; r < end - begin; r += kW) store(s + r, gradient_score(g, load(s + r), bend + r));
  for (int64_t r = begin; !all_seen && r < last; ++r) {
    if (g.slopes || g.mask) s[r - begin] = gradient_bias(h, s[r - begin], r, key);
    if (!in_sight(h, h.sight(r), r, key)) s[r - begin] = -kInf;
  }
  for (int64_t r = begin; r < end; r += kW) {
    const F weight = gradient_weight(load(s + r - begin), load(h(h.at.top) + r), load(h(h.at.total) + r));
    store(s + r - begin, weight);
    store(dp + r - begin,
          gradient_of_score(g, weight, load(dp + r - begin), load(h(h.at.mean) + r), bend + r - begin));
  }
  for (int64_t r = begin; !all_seen && r < last; ++r)
    if (!in_sight(h, h.sight(r), r, key)) dp[r - begin] = 0;
}
template <int MR>
INVAR_INLINE void gradient_pairs(const GradientHead& h, int64_t key, int64_t begin, int64_t end,
                                 bool all_seen) {
  const Geometry& g = h.g;
  gradient_products<MR>(h, h(h.at.k) + key * h.at.d_padded, h.at.d_padded, g.d, h(h.at.q_t), begin, end, h.s);
  gradient_products<MR>(h, h(h.at.v) + key * g.dv_padded, g.dv_padded, g.dv, h(h.at.grad_t), begin, end,
                        h.dp);
  for (int i = 0; i < MR; ++i)
    key_score_gradients(h, key + i, begin, end, all_seen, h.s + i * h.stride, h.dp + i * h.stride,
                        h.bend + i * h.stride);
}

// The rows of [begin, end) that see any of MR keys, and whether all of these see all keys.
struct SeenRows {
  int64_t begin, end;
  bool all;
};
template <int MR>
INVAR_INLINE SeenRows seen_rows(const GradientHead& h, int64_t key, int64_t begin, int64_t end, bool every) {
  if (every) return {begin, end, false};
  SeenRows seen{end, begin, !h.g.mask && !h.g.slopes};
  for (int64_t r = begin; r < end; ++r) {
    const VisibleKeys see = h.sight(r);
    const bool some = see.high > key && (see.low < key + MR || see.first > key);
    if (some) seen.begin = num::min_i64(seen.begin, r), seen.end = r + 1;
    seen.all = seen.all && see.low <= key && see.high >= key + MR;
  }
  return seen;
}

// dk and dv of MR keys.
template <int MR>
void gradient_keys(const GradientHead& h, int64_t key, bool every) {
  const Geometry& g = h.g;
  constexpr int NV = tile_vectors(MR, kVectorsPerKeyPanel);
  const auto blocks = num::contraction_blocks(g.rows);
  float *const dk = h.out + h.o.q->elements(), *const dv = dk + h.o.k->elements();
  for (int64_t block = 0; block < blocks; ++block) {
    const num::Range range = num::block_range(block, g.rows);
    const SeenRows seen = seen_rows<MR>(h, key, range.begin, range.end, every);
    const int64_t begin = seen.begin / kKeyPanel * kKeyPanel, end = attention::up_to(seen.end, kKeyPanel);
    if (begin < end) gradient_pairs<MR>(h, key, begin, end, seen.all);
    const auto place = num::block_position(block, g.rows);
    const auto columns = [&](const float* by, const float* rows, int64_t padded, int64_t size, float* kept,
                             float* out) __attribute__((always_inline)) {
      gradient_columns<MR>(
          size,
          [&](int64_t column, F(&c)[MR * NV]) __attribute__((always_inline)) {
            const PanelsOfB<F32, kVectorsPerKeyPanel> b{rows + begin * padded + column, padded, kKeyPanel};
            microkernel<MR, NV>(by, h.stride, b, 0, num::min_i64(end, range.end) - begin, c);
            num::INVAR_ISA_NS::join_block(
                place, c, [&](int i, int sum) __attribute__((always_inline)) {
                  return kept + (sum * attention::kTallest + i / NV) * h.width + column + i % NV * kW;
                });
          },
          [&](int i, int64_t column, F y, int lanes) __attribute__((always_inline)) {
            if (place.last)
              store_part(out + attention::gradient_key(g, h.head, key + i) * size + column, y, lanes);
          });
    };
    columns(h.s, h(h.at.grad), g.dv_padded, g.dv, h.kept, dv);
    columns(h.dp, h(h.at.q), h.at.d_padded, g.d, h.kept + g.dv_padded, dk);
  }
  for (int i = 0; blocks == 0 && i < MR; ++i) {  // no queries
    const int64_t row = attention::gradient_key(g, h.head, key + i);
    for (int64_t c = 0; c < g.d; ++c) dk[row * g.d + c] = 0;
    for (int64_t c = 0; c < g.dv; ++c) dv[row * g.dv + c] = 0;
  }
}

// Calls f(TileRows<MR>{}, i) for tiles of [i, to): the tallest, then half as tall, and so on. Few
// heights, since each is two long functions and units are multiples of the tallest.
template <int MR = kMaxRows, class Fn>
INVAR_INLINE void in_gradient_tiles(int64_t i, int64_t to, Fn f) {
  for (; to - i >= MR; i += MR) f(TileRows<MR>{}, i);
  if constexpr (MR > 1) in_gradient_tiles<MR / 2>(i, to, f);
}

void run_backward(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const BackwardOperands o = attention::backward_operands(call);
  const Geometry& g = o.g;
  const BackwardLayout at(g);
  const int64_t most = g.keys > num::kChain ? g.keys : num::kChain;
  const int64_t stride = attention::up_to(most, num::kRowLanes) + kKeyPanel;
  float* const s = static_cast<float*>(scratch);
  const auto head_of = [&](int64_t head) {
    const int64_t tile = attention::kTallest * stride;
    return GradientHead{o,
                        g,
                        at,
                        head,
                        static_cast<float*>(call.shared) + head * at.all,
                        call.out[0].as<float>(),
                        s,
                        s + tile,
                        s + 2 * tile,
                        s + 3 * tile,
                        stride,
                        at.d_padded + g.dv_padded};
  };
  const int64_t n = phase == 1 ? g.rows : g.keys;
  const int64_t units =
      phase == 0 ? 4 : attention::up_to(n, attention::kGradientRows) / attention::kGradientRows;
  for (int64_t unit = begin; unit < end; ++unit) {
    const GradientHead h = head_of(unit / units);
    if (phase == 0) {
      pack_operand(h, static_cast<int>(unit % units));
      continue;
    }
    bool every = h(at.flags)[kOfQ] != 0 || h(at.flags)[kOfGrad] != 0;
    for (int64_t r = 0; phase == 2 && r < g.rows; ++r) every = every || h(at.total)[r] != h(at.total)[r];
    const int64_t from = unit % units * attention::kGradientRows,
                  to = num::min_i64(from + attention::kGradientRows, n);
    in_gradient_tiles(from, to, [&](auto mr, int64_t i) {
      constexpr int MR = decltype(mr)::value;
      phase == 1 ? gradient_rows<MR>(h, i) : gradient_keys<MR>(h, i, every);
    });
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
