// attention_exact16: the arithmetic of its blocks (spec/attention-exact16.md). Keys and values are
// kept as pairs of int16 along what one sum adds, in panels of 32 columns, as matmul_exact16 keeps
// its matrix; queries and weights are rows of exact16/products.h. Compiled once per instruction
// set.
#pragma once
#include "kernels/cpu/exact16/products.h"
#include "ops/attention/cpu/key_blocks.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kExactPanel = kExactColumns, kKeyPairs = kBlock / 2;
constexpr int kExactQueries = 48;                       // rows that use one panel: tuning
constexpr int32_t kZeroRow = -num::kExact16NoIntegers;  // the scale of a row of values that is 0
constexpr int32_t kHiddenKey = 2 * kZeroRow;

INVAR_INLINE int64_t value_panels(const Geometry& g) {
  return (g.dv + kExactPanel - 1) / kExactPanel;
}
// A block of a head in a slot of the cache: panels of keys [pairs of d][32], panels of values
// [pairs of keys][32], the scales of both.
struct ExactBlockOf {
  int32_t *keys, *values, *key_scales, *value_scales;
  static int64_t words(const Geometry& g) {
    return kBlock * exact_pairs(g.d) + value_panels(g) * kKeyPairs * kExactPanel + 2 * kBlock;
  }
  ExactBlockOf(const Geometry& g, const attention::Slot& slot, int64_t head, int64_t block)
      : ExactBlockOf(g, attention::place_of(g, slot, block), head) {}
  ExactBlockOf(const Geometry& g, const attention::BlockPlace& at, int64_t head)
      : keys(reinterpret_cast<int32_t*>(at.memory) + (head * at.blocks + at.index) * words(g)),
        values(keys + kBlock * exact_pairs(g.d)),
        key_scales(values + value_panels(g) * kKeyPairs * kExactPanel),
        value_scales(key_scales + kBlock) {}
};
size_t state_bytes_exact16(const Call& call, int64_t capacity) {
  const Geometry g = attention::geometry(call);
  const int64_t blocks = ((capacity > g.keys ? capacity : g.keys) + kBlock - 1) / kBlock;
  return static_cast<size_t>(g.kv_heads * blocks * ExactBlockOf::words(g)) * sizeof(float);
}

// exact16.1; kZeroRow of a row of zeros.
INVAR_INLINE int32_t scale_of_value(const float* x, int64_t k) {
  const uint32_t largest = largest_of_row(F32{}, x, k);
  return largest ? num::exact16_scale(largest) : kZeroRow;
}
// The half of a word that holds element i of a pair.
INVAR_INLINE int64_t half_of(int64_t i) {
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i % 2 : 1 - i % 2;
}

// Appends new keys and values to the KV cache (attention.2). The two keys of a pair may be appended
// by different workers.
void append_exact16(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
  const int64_t pairs = exact_pairs(g.d);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t head = unit / g.keys, i = unit % g.keys, batch = head / g.kv_heads,
                  position = call.sequences[batch].past + i, j = position % kBlock;
    const int64_t row = attention::head_row(g, batch, i, head % g.kv_heads, g.keys, g.kv_heads);
    const ExactBlockOf to(g, attention::slot_of(call, batch), head % g.kv_heads, position / kBlock);
    const float* k = call.in[1].as<const float>() + row * g.d;
    int32_t* const keys = to.keys + j / kExactPanel * pairs * kExactPanel + j % kExactPanel;
    to.key_scales[j] = scale_of_row(F32{}, k, g.d);
    for_each_part(
        F32{}, k, g.d,
        to.key_scales[j], [&](const int32_t* q, int64_t first, int64_t n) __attribute__((always_inline)) {
          for (int64_t at = 0; at < n; at += 2)
            keys[(first + at) / 2 * kExactPanel] = pair_of(q[at], q[at + 1]);
        });
    const float* v = call.in[2].as<const float>() + row * g.dv;
    auto* const values = reinterpret_cast<int16_t*>(to.values + j / 2 * kExactPanel) + half_of(j);
    const int32_t e = to.value_scales[j] = scale_of_value(v, g.dv);
    for_each_part(
        F32{}, v, g.dv, e == kZeroRow ? 0 : e,
        [&](const int32_t* q, int64_t first, int64_t n) __attribute__((always_inline)) {
          for (int64_t at = 0; at < n; ++at)
            values[2 * ((first + at) / kExactPanel * kKeyPairs * kExactPanel + at % kExactPanel)] =
                static_cast<int16_t>(q[at]);
        });
  }
}

// Scratch of a unit: what FloatScratch has; queries, each with its scale; rows of weights W[j], the
// exponents E and exact sums of a tile.
struct ExactScratch {
  ExactRows query, weight;
  float *o, *m, *l, *p;
  double *sum, *wide;
  int32_t *top, *w, *weights, *q;
  ExactScratch(const Geometry& g, void* scratch)
      : query(g.d, g.split ? g.group : num::min_i64(kRowGroup, g.rows)),
        weight(kBlock, query.wide ? kWideFewest : 0),
        o(static_cast<float*>(scratch)),
        m(o + kRowGroup * g.dv_padded),
        l(m + kRowGroup),
        p(l + kRowGroup),
        sum(reinterpret_cast<double*>(p + kExactQueries * kScoreRow)),
        wide(sum + kExactQueries * kExactPanel),
        top(reinterpret_cast<int32_t*>(reinterpret_cast<char*>(wide) + wide_scratch_bytes())),
        w(top + kBlock),
        weights(w + kBlock),
        q(weights + kExactQueries * weight.row()) {}
  const int32_t* end() const { return q + kRowGroup * query.row(); }
};
size_t scratch_bytes_exact16(const Call& call) {
  return static_cast<size_t>(
      reinterpret_cast<const char*>(ExactScratch(attention::geometry(call), nullptr).end()) -
      static_cast<const char*>(nullptr));
}

// The weights of a row over keys [0, n), a multiple of kW, from scores that are -inf where hidden:
// W[j], the sum l_b and E (attention_exact16.3 to attention_exact16.5).
struct BlockWeights {
  float lb;
  int32_t e;  // of the results
};
INVAR_INLINE BlockWeights exact_weights(float* s, int n, float mb, const int32_t* value_scales, int32_t* top,
                                        int32_t* w) {
  constexpr float kLog2E = 0x1.715476p+0f, kRound = 0x1.8p23f;
  constexpr int32_t kRoundBits = 0x4b400000, kThree = 0x40400000;
  const auto coefficient = [](int32_t u) { return from_bits(set1_i(u)); };
  I sum = set1_i(0), most = set1_i(kHiddenKey);
  for (int i = 0; i < n; i += kW) {
    const F score = load(s + i), d = sub(score, set1(mb));
    const F x = select(lt(set1(-87.0f), d), d, set1(-87.0f));
    const F z = fma(x, set1(kLog2E), set1(kRound));
    const F f = fma(x, set1(kLog2E), neg(sub(z, set1(kRound))));
    F y = coefficient(0x3c1d0166);
    for (const int32_t c : {0x3d64fe23, 0x3e7601bc, 0x3f317096, 0x3f800000}) y = fma(y, f, coefficient(c));
    // The low bits of z hold n[j]: in the exponent of y they make p[j].
    const F p = from_bits(add(bits(y), shift_left<23>(bits(z))));
    // At 3 the last place of a float is 2^-22. A hidden key's p rounds to 0.
    sum = add(sum, sub(bits(add(p, set1(3.0f))), set1_i(kThree)));
    const I reach = select(eq(score, set1(-kInf)), set1_i(kHiddenKey),
                           add(load_i(value_scales + i), sub(bits(z), set1_i(kRoundBits))));
    most = select(gt(reach, most), reach, most);
    store_i(top + i, reach), store(s + i, y);
  }
  alignas(64) int32_t lanes[kW];
  store_i(lanes, most);
  int32_t e = kHiddenKey;
  for (const int32_t x : lanes) e = x > e ? x : e;
  store_i(lanes, sum);
  int32_t total = 0;
  for (const int32_t x : lanes) total += x;
  for (int i = 0; i < n; i += kW) {
    const I reach = sub(load_i(top + i), set1_i(e));
    const I kept = select(gt(reach, set1_i(-60)), reach, set1_i(-60));  // a weight of 0
    const F power = from_bits(shift_left<23>(add(kept, set1_i(127 + 14))));
    store_i(w + i, sub(bits(fma(load(s + i), power, set1(kRound))), set1_i(kRoundBits)));
  }
  const bool number = mb - mb == 0, zeros = e < kZeroRow / 2;
  return {number ? static_cast<float>(total) * 0x1p-22f : __builtin_nanf(""), e > -kZeroRow / 2
                                                                                  ? num::kExact16NoIntegers
                                                                              : zeros ? 0
                                                                                      : e - 14};
}

// The arithmetic of attention_exact16 (cpu/key_blocks.h).
struct ExactArithmetic {
  using Scratch = ExactScratch;
  static constexpr int kTileRows = kExactQueries;
  static void append(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
    append_exact16(g, call, begin, end);
  }
  static void load_query(const Geometry&, const float* q, const Scratch& w, int64_t r) {
    quantize_row(q, w.query, w.q + r * w.query.row());
  }

  // One KV block for rows [row, row + count) of a key head, the first of which is query r of the
  // scratch: maxima and sums -> folded, results -> put. Nothing is called if no row sees any key of
  // the block.
  template <class Folded, class Put>
  INVAR_INLINE void block_rows(const Geometry& g, const Call& call, const Scratch& w, int64_t head,
                               int64_t block, int64_t row, int64_t r, int count, Folded folded, Put put) {
    KeyMask seen[kTileRows];
    AddedTerms added[kTileRows];
    const KeyMask any = rows_see(g, call, head, block, row, count, seen, added);
    const int most = attention::end_of(any), end = (most + kW - 1) / kW * kW;
    if (most == 0) return;
    const ExactBlockOf own(g, attention::slot_of(call, head / g.kv_heads), head % g.kv_heads, block);
    scores(g, w.q + r * w.query.row(), own, attention::next(any, 0), most, count, w);
    int32_t power[kTileRows];
    for (int j = end; j < kBlock; ++j) w.w[j] = 0;
    for (int i = 0; i < count; ++i) {
      float* s = w.p + i * kScoreRow;
      finish_scores(g, block, seen[i], added[i], s, most);
      for (int j = most; j < end; ++j) s[j] = -kInf;
      const float mb = block_max(s, most);
      const BlockWeights of = exact_weights(s, end, mb, own.value_scales, w.top, w.w);
      write_exact_row(w.weight, w.w, 0, kBlock, w.weights + i * w.weight.row());
      power[i] = of.e;
      folded(i, mb, of.lb);
    }
    alignas(64) constexpr int32_t kNone[kExactPanel] = {};
    for (int64_t column = 0; column < g.dv_padded; column += kExactPanel) {
      const int64_t columns = num::min_i64(kExactPanel, g.dv_padded - column);
      sum_exact(w.weight, w.weights, own.values + column * kKeyPairs, most, count, columns, w.sum, w.wide);
      const ExactScales none(kNone, 1);
      for (int i = 0; i < count; ++i)
        for_each_exact_result(
            w.sum + i * kExactPanel, power[i], none,
            columns, [&](int64_t c, F y) __attribute__((always_inline)) { put(i, column + c, y); });
    }
  }

 private:
  // attention_exact16.2 of `count` rows for keys [begin, end), and a few more.
  static void scores(const Geometry& g, const int32_t* q, const ExactBlockOf& own, int begin, int end,
                     int count, const Scratch& w) {
    for (int at = begin / kExactPanel * kExactPanel; at < end; at += kExactPanel) {
      const int columns = end - at < kExactPanel ? end - at : kExactPanel;
      sum_exact(w.query, q, own.keys + at * exact_pairs(g.d), g.d, count, columns, w.sum, w.wide);
      const ExactScales scales(own.key_scales + at, columns);
      for (int i = 0; i < count; ++i) {
        const int32_t e = q[i * w.query.row() + w.query.words()];
        for_each_exact_result(
            w.sum + i * kExactPanel, e, scales, columns, [&](int64_t c, F y) __attribute__((always_inline)) {
              store(w.p + i * kScoreRow + at + c, mul(y, set1(g.scale)));
            });
      }
    }
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
