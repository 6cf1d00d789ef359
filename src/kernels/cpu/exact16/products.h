// Rows of 16-bit integers, their products and results (spec/exact16.md): what matmul_exact16, its
// forms and attention_exact16 share. The sums are exact, so their order is free: what multiplies
// the integers is each instruction set's own (pair_products.h, and for many rows wide_*.h).
// Compiled once per instruction set.
#pragma once
#include "kernels/cpu/exact16/pair_products.h"
#if INVAR_EXTENSION_AVX512_AMX
#include "kernels/cpu/exact16/wide_amx.h"
#elif INVAR_EXTENSION_AVX512_VNNI || INVAR_EXTENSION_AVX2_VNNI
#include "kernels/cpu/exact16/wide_vnni.h"
#elif INVAR_EXTENSION_NEON_DOT || INVAR_EXTENSION_NEON_I8MM
#include "kernels/cpu/exact16/wide_neon.h"
#else
#include "kernels/cpu/exact16/wide_none.h"
#endif

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Whether rows of A stay in the cache while panels pass: AMX reads rows as fast as a cache gives
// them. Otherwise a panel stays.
#if INVAR_EXTENSION_AVX512_AMX
constexpr bool kRowsStay = true;
#else
constexpr bool kRowsStay = false;
#endif
constexpr int64_t kExactRows = 48;  // rows of A that use one panel, where products are not wide
constexpr int64_t kExactTallest = kWideRows > kExactRows ? kWideRows : kExactRows;

// How rows of A are held, in int32, each with its scale last: as planes of pairs
// (pair_products.h), or as WideRow if there are enough rows.
struct ExactRows {
  int64_t k;
  bool wide;
  ExactRows(int64_t k, int64_t rows) : k(k), wide(kWideProducts && rows >= kWideFewest && k > 0) {}
  int64_t words() const { return wide ? WideRow(k).words() : 2 * exact_pairs(k); }
  int64_t row() const { return words() + 1; }
  int64_t block() const { return wide ? kWideRows : kExactRows; }  // rows that use one panel
};

// exact16.1 of k elements that lie side by side.
template <class W>
INVAR_INLINE int32_t scale_of_row(W format, const typename W::T* x, int64_t k) {
  return num::exact16_scale(largest_of_row(format, x, k));
}
// f(q, begin, n) of n <= kWideStep integers from k = `begin` on of a row with the scale e; those up
// to a multiple of 4 are 0.
template <class W, class Fn>
INVAR_INLINE void for_each_part(W, const typename W::T* x, int64_t k, int32_t e, Fn f) {
  alignas(64) int32_t q[kWideStep + 4];
  const num::Exact16Factors by = num::exact16_factors(e == num::kExact16NoIntegers ? 0 : e);
  const F first = set1(e == num::kExact16NoIntegers ? 0.0f : by.first), second = set1(by.second);
  for (int64_t begin = 0; begin < k; begin += kWideStep) {
    const int64_t n = num::min_i64(kWideStep, k - begin);
    for (int64_t i = 0; i < n; i += kW)
      store_i(q + i, exact_integers(get_part<W>(x + begin + i, static_cast<int>(num::min_i64(kW, n - i))),
                                    first, second));
    for (int64_t i = n; i % 4; ++i) q[i] = 0;
    f(q, begin, n);
  }
}
INVAR_INLINE void write_exact_row(const ExactRows& rows, const int32_t* q, int64_t begin, int64_t n,
                                  int32_t* row) {
  if (rows.wide)
    write_wide_row(q, begin, n, WideRow(rows.k), row);
  else
    write_exact_planes(q, begin, n, exact_pairs(rows.k), row);
}
[[maybe_unused]] void quantize_row(const float* x, const ExactRows& rows, int32_t* row) {
  const int32_t e = row[rows.words()] = scale_of_row(F32{}, x, rows.k);
  for_each_part(
      F32{}, x, rows.k, e, [&](const int32_t* q, int64_t begin, int64_t n) __attribute__((always_inline)) {
        write_exact_row(rows, q, begin, n, row);
      });
}

// sum[r * kExactColumns + c] = the exact sums over the first k elements of `rows` <= block() rows
// of A at `left` and of a panel. `scratch`: wide_scratch_bytes().
void sum_exact(const ExactRows& layout, const int32_t* left, const int32_t* panel, int64_t k, int64_t rows,
               int64_t columns, double* sum, void* scratch) {
  if (k == 0)
    for (int64_t i = 0; i < rows * kExactColumns; ++i) sum[i] = 0;
  else if (layout.wide)
    sum_exact_wide(WideRow(layout.k), left, layout.row(), panel, k, rows, columns, sum, scratch);
  else
    sum_exact_pairs(left, layout.row(), exact_pairs(layout.k), panel, exact_pairs(k), rows, columns, sum);
}

// The scales of columns, those of kExactColumns and of `count` of these the least and the largest.
struct ExactScales {
  const int32_t* e;
  int32_t least, most;
  ExactScales(const int32_t* scales, int64_t count) : e(scales), least(scales[0]), most(scales[0]) {
    for (int64_t i = 1; i < count; ++i) {
      least = scales[i] < least ? scales[i] : least;
      most = scales[i] > most ? scales[i] : most;
    }
  }
};
// put(c, y) of vectors of the results of a row with the scale e from its sums with `columns`
// columns.
template <class Put>
INVAR_INLINE void for_each_exact_result(const double* sum, int32_t e, const ExactScales& scales,
                                        int64_t columns, Put put) {
  // V is 0 or from 1 to 2^52 in magnitude, so that no result is rounded twice or is out of range.
  if (e + scales.least >= -126 && e + scales.most <= 75) {
    for (int64_t c = 0; c < columns; c += kW) {
      const F power = from_bits(shift_left<23>(add(load_i(scales.e + c), set1_i(e + 127))));
      put(c, mul(to_float(load_d(sum + c)), power));
    }
    return;
  }
  const D power = set1_d(exact_power(e));
  for (int64_t c = 0; c < columns; c += kW) {
    double of_column[kW];
    for (int64_t i = 0; i < kW; ++i) of_column[i] = c + i < columns ? exact_power(scales.e[c + i]) : 0;
    put(c, exact_result(load_d(sum + c), mul(power, load_d(of_column))));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
