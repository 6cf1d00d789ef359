// Products of rows rounded to 16-bit integers (spec/exact16.md). Compiled once per instruction set.
#pragma once
#include "kernels/cpu/exact16/products.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct ExactProduct {
  matmul::Shape s;
  ExactRows rows;
  int64_t pairs, panels, row_blocks;
  // int32 counts: a panel of B, pairs and the scales of its columns; a row of A and its scale.
  int64_t panel() const { return (pairs + 1) * kExactColumns; }
  int64_t row() const { return rows.row(); }
};
ExactProduct exact_product(const Call& call) {
  const matmul::Shape s =
      matmul::shape(call.in[0], call.in[1], call.out[0], false, MatmulExact16Attributes(call).trans_b != 0);
  const ExactRows rows(s.k, s.m);
  return {s, rows, exact_pairs(s.k), (s.n + kExactColumns - 1) / kExactColumns,
          (s.m + rows.block() - 1) / rows.block()};
}

// Packs `columns` <= kW columns of B that lie side by side in memory along k: kW x kW integers are
// transposed at a time.
template <class W>
INVAR_INLINE void pack_exact_rows(W, const typename W::T* b, int64_t k, int64_t columns, int32_t* to,
                                  int32_t* scales) {
  constexpr int kDepth = kW < 2 ? 2 : kW;
  alignas(64) float first[kW], second[kW];
  for (int64_t c = 0; c < kW; ++c) first[c] = 0, second[c] = 0;
  for (int64_t c = 0; c < columns; ++c) {
    const int32_t e = scales[c] = scale_of_row(W{}, b + c * k, k);
    const bool none = e == num::kExact16NoIntegers;
    const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
    first[c] = none ? 0.0f : by.first, second[c] = by.second;
  }
  const F f0 = load(first), f1 = load(second);
  for (int64_t i = 0; i < k; i += kDepth) {
    I q[kDepth];
    for (int at = 0; at < kDepth; at += kW) {
      const int left = static_cast<int>(num::min_i64(kW, k - i - at));
      F x[kW];
      for (int c = 0; c < kW; ++c)
        x[c] = c < columns && left > 0 ? get_part<W>(b + c * k + i + at, left) : zero();
      transpose(x);
      for (int c = 0; c < kW; ++c) q[at + c] = exact_integers(x[c], f0, f1);
    }
    for (int64_t r = 0; r < kDepth && i + r < k; r += 2) {
      const I pair = bit_or(bit_and(q[r], set1_i(0xffff)), shift_left<16>(q[r + 1]));
      store_i(to + (i + r) / 2 * kExactColumns, pair);
    }
  }
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
    for (int64_t j = 0; j < columns; j += kW)
      pack_exact_rows(W{}, b + j * k, k, num::min_i64(kW, columns - j), panel + j, scales + j);
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

size_t pack_bytes_exact16(const View& v, int i, const Attributes& attrs) {
  if (i != 1) return 0;
  const bool trans_b = MatmulExact16Attributes(attrs).trans_b != 0;
  const int64_t k = v.dim[v.rank - (trans_b ? 1 : 2)], n = v.dim[v.rank - (trans_b ? 2 : 1)];
  if (k == 0 || n == 0) return 0;
  const int64_t panels = (n + kExactColumns - 1) / kExactColumns;
  return static_cast<size_t>(v.elements() / k / n * panels * (exact_pairs(k) + 1) * kExactColumns) *
         sizeof(int32_t);
}
void pack_exact16(const View& v, int, const Attributes& attrs, void* packed) {
  const bool trans_b = MatmulExact16Attributes(attrs).trans_b != 0;
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
// multiply_exact16 has these: sums, and what wide products keep.
constexpr size_t kExactScratch = kExactTallest * kExactColumns * sizeof(double) + wide_scratch_bytes();
size_t scratch_bytes_exact16(const Call&) {
  return kExactScratch;
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
      quantize_row(call.in[0].as<const float>() + u * p.s.k, p.rows, to + u * p.row());
      continue;
    }
    const int64_t panel = u - rows, j = panel % p.panels * kExactColumns;
    const int64_t matrix = panel / p.panels * p.s.k * p.s.n;
    pack_exact_panel(call.in[1], p.s.trans_b, matrix + (p.s.trans_b ? j * p.s.k : j), p.s.k, p.s.n,
                     num::min_i64(kExactColumns, p.s.n - j), to + rows * p.row() + panel * p.panel());
  }
}

// The products of `rows` <= block() rows of A at `left` with one panel, into out, whose rows are n
// apart.
void multiply_exact16(const ExactRows& layout, const int32_t* left, const int32_t* panel, int64_t rows,
                      int64_t columns, float* out, int64_t n, void* scratch) {
  auto* sum = static_cast<double*>(scratch);
  sum_exact(layout, left, panel, layout.k, rows, columns, sum, sum + kExactTallest * kExactColumns);
  const ExactScales scales(panel + exact_pairs(layout.k) * kExactColumns, columns);
  for (int64_t r = 0; r < rows; ++r)
    for_each_exact_result(
        sum + r * kExactColumns, left[r * layout.row() + layout.words()], scales,
        columns, [&](int64_t c, F y) __attribute__((always_inline)) {
          store_part(out + r * n + c, y, static_cast<int>(num::min_i64(kW, columns - c)));
        });
}

void run_exact16(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const ExactProduct p = exact_product(call);
  if (phase == 0) return quantize_exact16(call, p, begin, end);
  const auto* a = static_cast<const int32_t*>(call.shared);
  const auto* b = call.in[1].packed ? call.in[1].as<const int32_t>() : a + row_count(call.in[0]) * p.row();
  for (int64_t u = begin; u < end; ++u) {
    const int64_t panel = (kRowsStay ? u : u / p.row_blocks) % p.panels;
    const int64_t row = (kRowsStay ? u / p.panels : u) % p.row_blocks * p.rows.block();
    const int64_t batch = u / p.row_blocks / p.panels, j = panel * kExactColumns;
    const int64_t rows = num::min_i64(p.rows.block(), p.s.m - row);
    const int64_t columns = num::min_i64(kExactColumns, p.s.n - j), to = (batch * p.s.m + row) * p.s.n + j;
    const matmul::Offsets at = matmul::offsets(p.s, batch);
    multiply_exact16(p.rows, a + ((p.s.k ? at.a / p.s.k : 0) + row) * p.row(),
                     b + (at.b_matrix * p.panels + panel) * p.panel(), rows, columns,
                     call.out[0].as<float>() + to, p.s.n, scratch);
    notify_epilogue(call, {to, columns, rows, p.s.n});
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
