// attention_exact16: the arithmetic of its blocks (spec/attention-exact16.md). Keys and values are
// kept as pairs of int16 along what one sum adds, in panels of 32 columns; queries and weights are
// two planes each, so one instruction multiplies and adds two elements. Compiled once per
// instruction set.
#pragma once
#include "kernels/cpu/exact16.h"
#include "ops/attention/cpu/key_blocks.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kExactPanel = 32;  // columns
constexpr int kExactPanels = kBlock / kExactPanel, kKeyPairs = kBlock / 2;
// Pairs of k whose sums stay below 2^31: 2 * 32639 * 128 each.
constexpr int64_t kExactPairs = 256;
// Two vectors of columns, the sums of both planes of each row, and an operand fill the registers.
constexpr int kExactVectors = 2, kExactRows = kW == 16 || kW == 4 ? 6 : kW == 1 ? 2 : 3;
constexpr int32_t kZeroRow = -num::kExact16NoIntegers;  // the scale of a row of zeros
constexpr int32_t kHiddenKey = 2 * kZeroRow;

INVAR_INLINE int64_t value_panels(const Geometry& g) {
  return (g.dv + kExactPanel - 1) / kExactPanel;
}
// A block of a head in a slot of the cache: panels of keys [pairs of d][32], panels of values
// [pairs of keys][32], the scales of both; then, at the end of the slot, partial results.
struct ExactBlockOf {
  int32_t *keys, *values, *key_scales, *value_scales;
  static int64_t words(const Geometry& g) {
    return kBlock * exact_pairs(g.d) + value_panels(g) * kKeyPairs * kExactPanel + 2 * kBlock;
  }
  ExactBlockOf(const Geometry& g, void* slot, int64_t head, int64_t block)
      : keys(static_cast<int32_t*>(slot) + (head * g.blocks + block) * words(g)),
        values(keys + kBlock * exact_pairs(g.d)),
        key_scales(values + value_panels(g) * kKeyPairs * kExactPanel),
        value_scales(key_scales + kBlock) {}
};
size_t state_bytes_exact16(const Call& call, int64_t capacity) {
  const Geometry g = attention::geometry(call);
  const int64_t blocks = ((capacity > g.keys ? capacity : g.keys) + kBlock - 1) / kBlock;
  const int64_t block = ExactBlockOf::words(g) + g.group * (g.dv_padded + attention::kPartHead);
  return static_cast<size_t>(g.kv_heads * blocks * block) * sizeof(float);
}

// exact16.1; kZeroRow of a row of zeros.
INVAR_INLINE int32_t scale_of_row(const float* x, int64_t k) {
  const uint32_t largest = largest_of_row(F32{}, x, k);
  return largest ? num::exact16_scale(largest) : kZeroRow;
}
// f(i, q[i]) for the integers of a row with the scale e (exact16.2); 0 if it has none.
template <class Fn>
INVAR_INLINE void for_each_integer(const float* x, int64_t k, int32_t e, Fn f) {
  constexpr int64_t kPart = 256;
  alignas(64) int32_t q[kPart];
  const bool none = e == num::kExact16NoIntegers || e == kZeroRow;
  const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
  const F first = set1(none ? 0.0f : by.first), second = set1(by.second);
  for (int64_t begin = 0; begin < k; begin += kPart) {
    const int64_t n = num::min_i64(kPart, k - begin);
    for (int64_t i = 0; i < n; i += kW) {
      const F part = load_part(x + begin + i, static_cast<int>(num::min_i64(kW, n - i)));
      store_i(q + i, exact_integers(part, first, second));
    }
    for (int64_t i = 0; i < n; ++i) f(begin + i, q[i]);
  }
}

// Appends new keys and values to the KV cache (attention.2).
void append_exact16(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
  const int64_t pairs = exact_pairs(g.d);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t head = unit / g.keys, i = unit % g.keys, batch = head / g.kv_heads,
                  position = call.sequences[batch].past + i, j = position % kBlock;
    const int64_t row = attention::head_row(g, batch, i, head % g.kv_heads, g.keys, g.kv_heads);
    const ExactBlockOf to(g, attention::slot_of(call, batch), head % g.kv_heads, position / kBlock);
    const float* k = call.in[1].as<const float>() + row * g.d;
    auto* keys =
        reinterpret_cast<int16_t*>(to.keys + j / kExactPanel * pairs * kExactPanel + j % kExactPanel);
    to.key_scales[j] = scale_of_row(k, g.d);
    for_each_integer(
        k, g.d, to.key_scales[j], [&](int64_t at, int32_t q) __attribute__((always_inline)) {
          keys[at / 2 * 2 * kExactPanel + at % 2] = static_cast<int16_t>(q);
        });
    if (g.d % 2) keys[(pairs - 1) * 2 * kExactPanel + 1] = 0;
    const float* v = call.in[2].as<const float>() + row * g.dv;
    auto* values = reinterpret_cast<int16_t*>(to.values + j / 2 * kExactPanel) + j % 2;
    to.value_scales[j] = scale_of_row(v, g.dv);
    for_each_integer(
        v, g.dv, to.value_scales[j], [&](int64_t at, int32_t q) __attribute__((always_inline)) {
          values[2 * (at / kExactPanel * kKeyPairs * kExactPanel + at % kExactPanel)] =
              static_cast<int16_t>(q);
        });
  }
}

// Adds 256 high + low of R rows and kExactVectors vectors over `pairs` pairs to the exact sums at
// `sum`, rows kExactPanel apart. `plane`: from the high plane of a row to the low one.
template <int R>
INVAR_INLINE void exact_tile(const int32_t* a, int64_t lda, int64_t plane, const int32_t* b, int64_t pairs,
                             double* sum) {
  I high[R * kExactVectors], low[R * kExactVectors];
#pragma GCC unroll 32
  for (int i = 0; i < R * kExactVectors; ++i) high[i] = low[i] = set1_i(0);
  for (int64_t k = 0; k < pairs; ++k) {
    I w[kExactVectors];
#pragma GCC unroll 32
    for (int v = 0; v < kExactVectors; ++v)
      w[v] = bits(in_register(load(reinterpret_cast<const float*>(b + k * kExactPanel + v * kW))));
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
      const I h = set1_i(a[r * lda + k]), l = set1_i(a[r * lda + plane + k]);
#pragma GCC unroll 32
      for (int v = 0; v < kExactVectors; ++v) {
        const int i = r * kExactVectors + v;
        high[i] = bits(in_register(from_bits(add(high[i], pair_products(h, w[v])))));
        low[i] = bits(in_register(from_bits(add(low[i], pair_products(l, w[v])))));
      }
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < R * kExactVectors; ++i) {
    auto* at = reinterpret_cast<int64_t*>(sum + i / kExactVectors * kExactPanel + i % kExactVectors * kW);
    const D both = fma(to_double(high[i]), set1_d(256), to_double(low[i]));
    store_l(at, bits(add(from_bits(load_l(at)), both)));
  }
}
// The exact sums of R rows with the 32 columns of a panel from column `begin` to `end`.
template <int R>
INVAR_INLINE void exact_products(const int32_t* a, int64_t lda, int64_t plane, const int32_t* panel,
                                 int64_t pairs, int64_t begin, int64_t end, double* sum) {
  for (int i = 0; i < R * kExactPanel; ++i) sum[i] = 0;
  for (int64_t first = 0; first < pairs; first += kExactPairs)
    for (int64_t c = begin; c < end; c += kExactVectors * kW)
      exact_tile<R>(a + first, lda, plane, panel + first * kExactPanel + c,
                    num::min_i64(kExactPairs, pairs - first), sum + c);
}
INVAR_INLINE D exact_sum(const double* at) {
  return from_bits(load_l(reinterpret_cast<const int64_t*>(at)));
}
INVAR_INLINE double power_of_row(int32_t e) {
  return exact_power(e == kZeroRow ? 0 : e);  // of zeros any power
}

// Scratch of a unit: what FloatScratch has; queries as two planes of pairs and a scale each; sums
// n[j] + e[j], planes of weights and exact sums of a tile.
struct ExactScratch {
  float *o, *m, *l, *p;
  double *sum, *powers;
  int32_t *top, *planes, *q;
  int64_t query;  // words of one
  ExactScratch(const Geometry& g, void* scratch)
      : o(static_cast<float*>(scratch)),
        m(o + kRowGroup * g.dv_padded),
        l(m + kRowGroup),
        p(l + kRowGroup),
        sum(reinterpret_cast<double*>(p + kExactRows * kScoreRow)),
        powers(sum + kExactRows * kExactPanel),
        top(reinterpret_cast<int32_t*>(powers + kBlock)),
        planes(top + kScoreRow),
        q(planes + kExactRows * 2 * kKeyPairs),
        query(2 * exact_pairs(g.d) + 1) {}
};
size_t scratch_bytes_exact16(const Call& call) {
  const Geometry g = attention::geometry(call);
  const int64_t tile = kExactRows * (kScoreRow + 2 * kExactPanel + 2 * kKeyPairs) + 2 * kBlock + kScoreRow;
  return static_cast<size_t>(kRowGroup * (g.dv_padded + 2 + 2 * exact_pairs(g.d) + 1) + tile) * sizeof(float);
}

// The weights of a row over keys [0, n), a multiple of kW, from scores that are -inf where hidden:
// planes of W[j], the sum l_b and E (attention_exact16.3 to attention_exact16.5).
struct BlockWeights {
  float lb;
  int32_t e;
};
INVAR_INLINE BlockWeights exact_weights(float* s, int n, float mb, const int32_t* value_scales, int32_t* top,
                                        int32_t* planes) {
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
    const I scale = bits(load(reinterpret_cast<const float*>(value_scales + i)));
    const I reach =
        select(eq(score, set1(-kInf)), set1_i(kHiddenKey), add(scale, sub(bits(z), set1_i(kRoundBits))));
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
    const I reach = sub(bits(load(reinterpret_cast<const float*>(top + i))), set1_i(e));
    const I kept = select(gt(reach, set1_i(-60)), reach, set1_i(-60));  // a weight of 0
    const F power = from_bits(shift_left<23>(add(kept, set1_i(127 + 14))));
    const I w = sub(bits(fma(load(s + i), power, set1(kRound))), set1_i(kRoundBits));
    const I high = shift_right<8>(w);
    store_h(reinterpret_cast<uint16_t*>(planes) + i, narrow_u16(high));
    store_h(reinterpret_cast<uint16_t*>(planes + kKeyPairs) + i, narrow_u16(sub(w, shift_left<8>(high))));
  }
  const bool number = mb - mb == 0;
  return {number ? static_cast<float>(total) * 0x1p-22f : __builtin_nanf(""), e > -kZeroRow / 2
                                                                                  ? num::kExact16NoIntegers
                                                                              : e < kZeroRow / 2 ? kZeroRow
                                                                                                 : e - 14};
}

// The arithmetic of attention_exact16 (cpu/key_blocks.h).
struct ExactArithmetic {
  using Scratch = ExactScratch;
  static constexpr int kTileRows = kExactRows;
  static float* part(const Geometry& g, void* slot, int64_t head, int64_t block, int64_t row) {
    return static_cast<float*>(slot) + g.kv_heads * g.blocks * ExactBlockOf::words(g) +
           ((head * g.blocks + block) * g.group + row) * (g.dv_padded + attention::kPartHead);
  }
  static void append(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
    append_exact16(g, call, begin, end);
  }
  static void load_query(const Geometry& g, const float* q, const Scratch& w, int64_t r) {
    int32_t* to = w.q + r * w.query;
    const int64_t pairs = exact_pairs(g.d);
    auto *high = reinterpret_cast<int16_t*>(to), *low = reinterpret_cast<int16_t*>(to + pairs);
    const int32_t e = to[2 * pairs] = scale_of_row(q, g.d);
    for_each_integer(
        q, g.d, e, [&](int64_t i, int32_t x) __attribute__((always_inline)) {
          const int32_t h = (x + 128) >> 8;
          high[i] = static_cast<int16_t>(h), low[i] = static_cast<int16_t>(x - h * 256);
        });
    if (g.d % 2) high[g.d] = low[g.d] = 0;
  }

  // One KV block for rows [row, row + count) of a key head, the first of which is query r of the
  // scratch: maxima and sums -> folded, results -> put. Nothing is called if no row sees any key of
  // the block.
  template <class Folded, class Put>
  INVAR_INLINE void block_rows(const Geometry& g, const Call& call, const Scratch& w, int64_t head,
                               int64_t block, int64_t row, int64_t r, int count, Folded folded, Put put) {
    KeyMask seen[kExactRows];
    AddedTerms added[kExactRows];
    const KeyMask any = rows_see(g, call, head, block, row, count, seen, added);
    const int most = attention::end_of(any), end = (most + kW - 1) / kW * kW;
    if (most == 0) return;
    const ExactBlockOf own(g, attention::slot_of(call, head / g.kv_heads), head % g.kv_heads, block);
    const int32_t* q = w.q + r * w.query;
    dispatch_tile_rows<kExactRows>(count, [&](auto rows) {
      constexpr int R = decltype(rows)::value;
      scores<R>(g, q, own, attention::next(any, 0), most, w);
      double power[R];
      for (int i = 0; i < R; ++i) {
        float *s = w.p + i * kScoreRow, mb;
        finish_scores(g, block, seen[i], added[i], s, most);
        for (int j = most; j < end; ++j) s[j] = -kInf;
        mb = block_max(s, most);
        int32_t* planes = w.planes + i * 2 * kKeyPairs;
        const BlockWeights of = exact_weights(s, end, mb, own.value_scales, w.top, planes);
        power[i] = power_of_row(of.e);
        for (int j = end; j < (end + 1) / 2 * 2; ++j)
          reinterpret_cast<uint16_t*>(planes)[j] = reinterpret_cast<uint16_t*>(planes + kKeyPairs)[j] = 0;
        folded(i, mb, of.lb);
      }
      for (int64_t column = 0; column < g.dv_padded; column += kExactPanel) {
        const int64_t columns = num::min_i64(kExactPanel, g.dv_padded - column);
        exact_products<R>(w.planes, 2 * kKeyPairs, kKeyPairs, own.values + column * kKeyPairs,
                          exact_pairs(most), 0, columns, w.sum);
        for (int i = 0; i < R; ++i)
          for (int64_t c = 0; c < columns; c += kW)
            put(i, column + c, exact_result(exact_sum(w.sum + i * kExactPanel + c), set1_d(power[i])));
      }
    });
  }

 private:
  // attention_exact16.2 for keys [begin, end), and a few more.
  template <int R>
  static void scores(const Geometry& g, const int32_t* q, const ExactBlockOf& own, int begin, int end,
                     const Scratch& w) {
    const int64_t pairs = exact_pairs(g.d);
    for (int j = begin / kExactPanel * kExactPanel; j < end; ++j)
      w.powers[j] = power_of_row(own.key_scales[j]);
    for (int at = begin / kExactPanel * kExactPanel; at < end; at += kExactPanel) {
      const int columns = end - at < kExactPanel ? end - at : kExactPanel;
      exact_products<R>(q, w.query, pairs, own.keys + at * pairs, pairs, 0, columns, w.sum);
      for (int i = 0; i < R; ++i) {
        const D power = set1_d(power_of_row(q[i * w.query + 2 * pairs]));
        for (int c = 0; c < columns; c += kW) {
          const F y =
              exact_result(exact_sum(w.sum + i * kExactPanel + c), mul(power, exact_sum(w.powers + at + c)));
          store(w.p + i * kScoreRow + at + c, mul(y, set1(g.scale)));
        }
      }
    }
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
