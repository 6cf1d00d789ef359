// The tables of table_lookup.h, evaluated at compile time: a function and its derivative at evenly
// spaced points, each as the sum of two binary32 numbers. In binary64, to about 2^-51 of each;
// table_lookup.h requires 2^-46.
#pragma once

#include "num/inline.h"

namespace invar::num {

template <int n>
struct LookupTable {
  alignas(16) float row[n][4];
};
INVAR_INLINE constexpr void store_split(float (&row)[4], int at, double value, double rest = 0) {
  row[at] = static_cast<float>(value), row[at + 1] = static_cast<float>(value - row[at] + rest);
}

// e^x - 1 for 0 <= x < 19: x = n ln2 + r, 2^n ((e^r - 1) + (1 - 2^-n)); the series up to r^18 /
// 18!.
INVAR_INLINE constexpr double exp_less_one(double x) {
  int n = static_cast<int>(x * 0x1.71547652b82fep+0 + 0.5);
  double r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33, s = 1;
  for (int k = 18; k > 1; --k) s = 1 + r / k * s;
  double power = static_cast<double>(1 << n);
  return power * (r * s) + (power - 1);
}

// tanh at i 9/512 = t / (t + 2), t = e^2c - 1; its derivative is 1 - tanh^2 = 4 (t + 1) / (t +
// 2)^2.
INVAR_INLINE constexpr LookupTable<512> tanh_rows() {
  LookupTable<512> t{};
  for (int i = 0; i < 512; ++i) {
    double e = exp_less_one(i * (18 / 512.0));
    store_split(t.row[i], 0, e / (e + 2));
    store_split(t.row[i], 2, 4 * (e + 1) / ((e + 2) * (e + 2)));
  }
  return t;
}

// The derivative of erf, 2/sqrt(pi) e^-(c^2).
INVAR_INLINE constexpr double bell(double c) {
  return 0x1.20dd750429b6dp+0 / (1 + exp_less_one(c * c));
}
// The growth of erf from i/128 to (i + 1)/128: h bell(m) (1 + H2 h^2/24 + H4 h^4/1920 + H6
// h^6/322560), with m the middle and the Hermite polynomials in m.
INVAR_INLINE constexpr double bell_between(int i) {
  double h = 1 / 128.0, m = (i + 0.5) * h, q = 4 * m * m, w = h * h;
  double h2 = q - 2, h4 = (q - 12) * q + 12, h6 = ((q - 30) * q + 180) * q - 120;
  return h * bell(m) * (1 + w * (h2 / 24 + w * (h4 / 1920 + w * (h6 / 322560))));
}
// A sum of positive numbers, and what its roundings lose.
struct CompensatedSum {
  double sum, rest;
};
INVAR_INLINE constexpr void add_to(CompensatedSum& s, double v) {
  double sum = s.sum + v;
  s.rest += s.sum > v ? v - (sum - s.sum) : s.sum - (sum - v);
  s.sum = sum;
}
// erf at i/128.
INVAR_INLINE constexpr LookupTable<512> erf_rows() {
  LookupTable<512> t{};
  CompensatedSum erf{0, 0};
  for (int i = 0; i < 512; add_to(erf, bell_between(i++))) {
    store_split(t.row[i], 0, erf.sum, erf.rest);
    store_split(t.row[i], 2, bell(i / 128.0));
  }
  return t;
}
// erfc(-c) at c = i/128, i = 0 ... 511, -512 ... -1: 1 + erf c, and erfc |c| down from erfc 4.
INVAR_INLINE constexpr LookupTable<1024> erfc_rows() {
  LookupTable<1024> t{};
  CompensatedSum one_and_erf{1, 0}, erfc{0x1.08ddd13bd35e7p-26, 0};  // erfc 4
  for (int i = 0; i < 512; add_to(one_and_erf, bell_between(i++))) {
    store_split(t.row[i], 0, one_and_erf.sum, one_and_erf.rest);
    store_split(t.row[i], 2, bell(i / 128.0));
  }
  for (int i = 512; i > 0; add_to(erfc, bell_between(--i))) {
    store_split(t.row[1024 - i], 0, erfc.sum, erfc.rest);
    store_split(t.row[1024 - i], 2, bell(i / 128.0));
  }
  return t;
}

INVAR_TABLE LookupTable<512> kTanhRows = tanh_rows(), kErfRows = erf_rows();
INVAR_TABLE LookupTable<1024> kErfcRows = erfc_rows();

}  // namespace invar::num
