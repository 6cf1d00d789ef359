// Products of rows rounded to 16-bit integers (spec/exact16.md). A is held as two planes of bytes,
// B whole, both as pairs of int16 along k: one instruction multiplies and adds two k. The sums are
// exact, so their order is free. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_microkernel.h"
#include "num/exact16/quantize.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kExactColumns = 32;  // of a panel of B
// Pairs of k whose sums stay below 2^31: 2 * 32639 * 128 each.
constexpr int64_t kExactPairs = 256;
constexpr int64_t kExactRows = 48;  // rows of A that use one panel
// Two vectors of B, the sums of both planes of each row, and an operand fill the registers.
constexpr int kExactVectors = 2, kExactTileRows = kW == 16 || kW == 4 ? 6 : kW == 1 ? 2 : 3;

INVAR_INLINE int64_t exact_pairs(int64_t k) {
  return (k + 1) / 2;
}
INVAR_INLINE int32_t pair_of(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16);
}

struct ExactProduct {
  matmul::Shape s;
  int64_t pairs, panels, row_blocks;
  // In int32: a panel of B, pairs and the scales of its columns; a row of A, both planes and its
  // scale.
  int64_t panel() const { return (pairs + 1) * kExactColumns; }
  int64_t row() const { return 2 * pairs + 1; }
};
ExactProduct exact_product(const Call& call) {
  ExactProduct p{matmul::shape(call.in[0], call.in[1], call.out[0], false, attr_i(call, "trans_b", 0) != 0),
                 0, 0, 0};
  p.pairs = exact_pairs(p.s.k);
  p.panels = (p.s.n + kExactColumns - 1) / kExactColumns;
  p.row_blocks = (p.s.m + kExactRows - 1) / kExactRows;
  return p;
}

INVAR_INLINE I magnitude_bits(F x) {
  return bit_and(bits(x), set1_i(0x7fffffff));
}
INVAR_INLINE I exact_integers(F x, F first, F second) {  // exact16.2
  return truncate(round_even(mul(mul(x, first), second)));
}

// exact16.1 of k elements that lie side by side.
template <class W>
INVAR_INLINE int32_t scale_of_row(W, const typename W::T* x, int64_t k) {
  I most = set1_i(0);
  for (int64_t i = 0; i < k; i += kW) {
    const I u = magnitude_bits(get_part<W>(x + i, static_cast<int>(num::min_i64(kW, k - i))));
    most = select(gt(u, most), u, most);
  }
  alignas(64) int32_t lanes[kW];
  store_i(lanes, most);
  int32_t largest = 0;
  for (const int32_t u : lanes) largest = u > largest ? u : largest;
  return num::exact16_scale(static_cast<uint32_t>(largest));
}

// f(pair, q[2 pair], q[2 pair + 1]) of a row with the scale e; beyond its end 0.
template <class W, class Fn>
INVAR_INLINE void for_each_pair(W, const typename W::T* x, int64_t k, int32_t e, Fn f) {
  constexpr int64_t kPart = 256;
  alignas(64) int32_t q[kPart];
  const num::Exact16Factors by = num::exact16_factors(e == num::kExact16NoIntegers ? 0 : e);
  const F first = set1(e == num::kExact16NoIntegers ? 0.0f : by.first), second = set1(by.second);
  for (int64_t begin = 0; begin < k; begin += kPart) {
    const int64_t n = num::min_i64(kPart, k - begin);
    for (int64_t i = 0; i < n; i += kW)
      store_i(q + i, exact_integers(get_part<W>(x + begin + i, static_cast<int>(num::min_i64(kW, n - i))),
                                    first, second));
    if (n % 2) q[n] = 0;
    for (int64_t i = 0; i < n; i += 2) f((begin + i) / 2, q[i], q[i + 1]);
  }
}

void planes_of_row(const float* x, int64_t k, int32_t* row) {
  const int64_t pairs = exact_pairs(k);
  const int32_t e = scale_of_row(F32{}, x, k);
  int32_t *high = row, *low = row + pairs;
  for_each_pair(
      F32{}, x, k, e, [&](int64_t i, int32_t q0, int32_t q1) __attribute__((always_inline)) {
        const int32_t h0 = (q0 + 128) >> 8, h1 = (q1 + 128) >> 8;
        high[i] = pair_of(h0, h1);
        low[i] = pair_of(q0 - h0 * 256, q1 - h1 * 256);
      });
  row[2 * pairs] = e;
}

// Packs columns [0, columns) of B, which begin at b, into a panel.
template <class W>
INVAR_INLINE void pack_exact_panel(W, const typename W::T* b, bool trans_b, int64_t k, int64_t n,
                                   int64_t columns, int32_t* panel) {
  const int64_t pairs = exact_pairs(k);
  int32_t* scales = panel + pairs * kExactColumns;
  if (columns < kExactColumns)
    for (int64_t i = 0; i < (pairs + 1) * kExactColumns; ++i) panel[i] = 0;
  if (trans_b) {
    for (int64_t j = 0; j < columns; ++j) {
      const int32_t e = scales[j] = scale_of_row(W{}, b + j * k, k);
      for_each_pair(
          W{}, b + j * k, k, e, [&](int64_t i, int32_t q0, int32_t q1) __attribute__((always_inline)) {
            panel[i * kExactColumns + j] = pair_of(q0, q1);
          });
    }
    return;
  }
  for (int64_t j = 0; j < columns; j += kW) {
    const int lanes = static_cast<int>(num::min_i64(kW, columns - j));
    auto at = [&](int64_t i) __attribute__((always_inline)) {
      return get_part<W>(b + i * n + j, lanes);
    };
    I most = set1_i(0);
    for (int64_t i = 0; i < k; ++i) {
      const I u = magnitude_bits(at(i));
      most = select(gt(u, most), u, most);
    }
    alignas(64) int32_t e[kW];
    alignas(64) float first[kW], second[kW];
    store_i(e, most);
    for (int c = 0; c < kW; ++c) {
      e[c] = num::exact16_scale(static_cast<uint32_t>(e[c]));
      const bool none = e[c] == num::kExact16NoIntegers;
      const num::Exact16Factors by = num::exact16_factors(none ? 0 : e[c]);
      first[c] = none ? 0.0f : by.first, second[c] = by.second;
      if (c < lanes) scales[j + c] = e[c];
    }
    const F f0 = load(first), f1 = load(second);
    for (int64_t i = 0; i < k; i += 2) {
      const I q0 = exact_integers(at(i), f0, f1);
      const I q1 = i + 1 < k ? exact_integers(at(i + 1), f0, f1) : set1_i(0);
      const I pair = bit_or(bit_and(q0, set1_i(0xffff)), shift_left<16>(q1));
      store_part(reinterpret_cast<float*>(panel + i / 2 * kExactColumns + j), from_bits(pair), lanes);
    }
  }
}
void pack_exact_panel(const View& b, bool trans_b, int64_t at, int64_t k, int64_t n, int64_t columns,
                      int32_t* panel) {
  with_format(b.dtype, [&](auto format) {
    using W = decltype(format);
    pack_exact_panel(W{}, b.as<const typename W::T>() + at, trans_b, k, n, columns, panel);
  });
}

// Adds 256 high + low of R rows and kExactVectors vectors over `pairs` pairs to the exact sums at
// `sum`, rows kExactColumns apart.
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
      w[v] = bits(in_register(load(reinterpret_cast<const float*>(b + k * kExactColumns + v * kW))));
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
    auto* at = reinterpret_cast<int64_t*>(sum + i / kExactVectors * kExactColumns + i % kExactVectors * kW);
    const D both = fma(to_double(high[i]), set1_d(256), to_double(low[i]));
    store_l(at, bits(add(from_bits(load_l(at)), both)));
  }
}

// exact16.4 and exact16.5. power: 2^(ea + eb), or NaN.
INVAR_INLINE F exact_result(D sum, D power) {
  const D y = mul(to_double(to_float(sum)), power);
  const L magnitude = bit_and(bits(y), set1_l(INT64_MAX));
  const MD small = lt(from_bits(magnitude), set1_d(0x1p-126));
  return canonicalize(to_float(select(small, from_bits(bit_and(bits(y), set1_l(INT64_MIN))), y)));
}
INVAR_INLINE double exact_power(int32_t e) {
  return e == num::kExact16NoIntegers ? __builtin_nan("") : num::exact16_wide_power(e);
}

size_t pack_bytes_exact16(const View& v, int i, const Attributes& attrs) {
  if (i != 1) return 0;
  const bool trans_b = attr_i(attrs, "trans_b", 0) != 0;
  const int64_t k = v.dim[v.rank - (trans_b ? 1 : 2)], n = v.dim[v.rank - (trans_b ? 2 : 1)];
  if (k == 0 || n == 0) return 0;
  const int64_t panels = (n + kExactColumns - 1) / kExactColumns;
  return static_cast<size_t>(v.elements() / k / n * panels * (exact_pairs(k) + 1) * kExactColumns) *
         sizeof(int32_t);
}
void pack_exact16(const View& v, int, const Attributes& attrs, void* packed) {
  const bool trans_b = attr_i(attrs, "trans_b", 0) != 0;
  const int64_t k = v.dim[v.rank - (trans_b ? 1 : 2)], n = v.dim[v.rank - (trans_b ? 2 : 1)];
  auto* to = static_cast<int32_t*>(packed);
  for (int64_t at = 0; at < v.elements(); at += k * n)
    for (int64_t j = 0; j < n; j += kExactColumns, to += (exact_pairs(k) + 1) * kExactColumns)
      pack_exact_panel(v, trans_b, at + (trans_b ? j * k : j), k, n, num::min_i64(kExactColumns, n - j), to);
}

size_t shared_bytes_exact16(const Call& call) {
  const ExactProduct p = exact_product(call);
  const int64_t b = call.in[1].packed ? 0 : p.s.matrices_b * p.panels * p.panel();
  return static_cast<size_t>(row_count(call.in[0]) * p.row() + b) * sizeof(int32_t);
}
size_t scratch_bytes_exact16(const Call&) {
  return (kExactRows + 1) * kExactColumns * sizeof(double);
}
// Phase 0: rows of A, then panels of B that is not packed; phase 1: panels of row blocks.
int64_t units_exact16(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  const ExactProduct p = exact_product(call);
  if (phase == 1) return p.s.batches * p.row_blocks * p.panels;
  return row_count(call.in[0]) + (call.in[1].packed ? 0 : p.s.matrices_b * p.panels);
}

void quantize_exact16(const Call& call, const ExactProduct& p, int64_t begin, int64_t end) {
  const int64_t rows = row_count(call.in[0]);
  auto* to = static_cast<int32_t*>(call.shared);
  for (int64_t u = begin; u < end; ++u) {
    if (u < rows) {
      planes_of_row(call.in[0].as<const float>() + u * p.s.k, p.s.k, to + u * p.row());
      continue;
    }
    const int64_t panel = u - rows, j = panel % p.panels * kExactColumns;
    const int64_t matrix = panel / p.panels * p.s.k * p.s.n;
    pack_exact_panel(call.in[1], p.s.trans_b, matrix + (p.s.trans_b ? j * p.s.k : j), p.s.k, p.s.n,
                     num::min_i64(kExactColumns, p.s.n - j), to + rows * p.row() + panel * p.panel());
  }
}

// The products of `rows` rows of A at `left` with one panel, into out.
void multiply_exact16(const ExactProduct& p, const int32_t* left, const int32_t* panel, int64_t rows,
                      int64_t columns, float* out, double* sum, double* powers) {
  for (int64_t i = 0; i < rows * kExactColumns; ++i) sum[i] = 0;
  for (int64_t first = 0; first < p.pairs; first += kExactPairs) {
    const int64_t pairs = num::min_i64(kExactPairs, p.pairs - first);
    for (int64_t r = 0; r < rows; r += kExactTileRows) {
      auto tiles = [&](auto tall) __attribute__((always_inline)) {
        for (int64_t c = 0; c < columns; c += kExactVectors * kW)
          exact_tile<decltype(tall)::value>(left + r * p.row() + first, p.row(), p.pairs,
                                            panel + first * kExactColumns + c, pairs,
                                            sum + r * kExactColumns + c);
      };
      dispatch_tile_rows<kExactTileRows>(static_cast<int>(num::min_i64(kExactTileRows, rows - r)), tiles);
    }
  }
  const int32_t* scales = panel + p.pairs * kExactColumns;
  for (int64_t c = 0; c < kExactColumns; ++c) powers[c] = exact_power(scales[c]);
  auto wide = [](const double* at) __attribute__((always_inline)) {
    return from_bits(load_l(reinterpret_cast<const int64_t*>(at)));
  };
  for (int64_t r = 0; r < rows; ++r) {
    const D power = set1_d(exact_power(left[r * p.row() + 2 * p.pairs]));
    for (int64_t c = 0; c < columns; c += kW)
      store_part(out + r * p.s.n + c,
                 exact_result(wide(sum + r * kExactColumns + c), mul(power, wide(powers + c))),
                 static_cast<int>(num::min_i64(kW, columns - c)));
  }
}

void run_exact16(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const ExactProduct p = exact_product(call);
  if (phase == 0) return quantize_exact16(call, p, begin, end);
  const auto* a = static_cast<const int32_t*>(call.shared);
  const auto* b = call.in[1].packed ? call.in[1].as<const int32_t>() : a + row_count(call.in[0]) * p.row();
  auto* sum = static_cast<double*>(scratch);
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = u % p.row_blocks * kExactRows, panel = u / p.row_blocks % p.panels;
    const int64_t batch = u / p.row_blocks / p.panels, j = panel * kExactColumns;
    const matmul::Offsets at = matmul::offsets(p.s, batch);
    multiply_exact16(
        p, a + ((p.s.k ? at.a / p.s.k : 0) + row) * p.row(), b + (at.b_matrix * p.panels + panel) * p.panel(),
        num::min_i64(kExactRows, p.s.m - row), num::min_i64(kExactColumns, p.s.n - j),
        call.out[0].as<float>() + (batch * p.s.m + row) * p.s.n + j, sum, sum + kExactRows * kExactColumns);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
