// spec/exact16.md: products of rows that are rounded once to integers of 16 bits.
#include "law.h"

#include <math.h>

// exact16.1. 0: the row has no integers (exact16.5).
static int scale_of(const float* x, size_t n, int* e) {
  double most = 0;
  for (size_t k = 0; k < n; k++) {
    if (!isfinite(x[k])) return 0;
    if (fabs((double)x[k]) > most) most = fabs((double)x[k]);
  }
  *e = 0;
  if (most == 0) return 1;
  int p;
  frexp(most, &p);  // 2^(p - 1) <= most < 2^p
  *e = p - 15;
  if (rint(ldexp(most, -*e)) > 32639) *e = p - 14;
  if (MUTATED(exact16_one_scale)) *e = p - 14;
  return 1;
}

// exact16.2
static int64_t integer(float x, int e) {
  double const scaled = ldexp((double)x, -e);
  return (int64_t)(MUTATED(exact16_truncates) ? trunc(scaled) : rint(scaled));
}

// The integers of a row and its scale; 0: it has none.
int exact16_row(const float* x, size_t n, int64_t* q, int* e) {
  if (!scale_of(x, n, e)) return 0;
  for (size_t k = 0; k < n; k++) q[k] = integer(x[k], *e);
  return 1;
}

// exact16.4
float exact16_result(int64_t v, int e) {
  if (v == 0) return 0;
  double const y = ldexp((double)(float)v, e);
  if (fabs(y) < ldexp(1, -126)) return (float)copysign(0, y);
  return fabs(y) >= ldexp(1, 128) ? (float)copysign(INFINITY, y) : (float)y;
}

// matmul_exact16: y[rows] = x[n] times the transpose of w[rows, n]
void law_linear_exact16(const float* x, const float* w, size_t rows, size_t n, float* y) {
  int ea, eb;
  int const good = scale_of(x, n, &ea);
  for (size_t r = 0; r < rows; r++) {
    const float* const row = w + r * n;
    if (!good || !scale_of(row, n, &eb)) {
      y[r] = float_of(0x7fc00000);
      continue;
    }
    int64_t v = 0;  // |v| < 2^52
    for (size_t k = 0; k < n; k++) {
      int64_t const a = integer(x[k], ea), b = integer(row[k], eb);
      v += a * b;
      // Without the product of the low bytes
      if (MUTATED(exact16_three_products)) v -= (int64_t)(int8_t)a * (int8_t)b;
    }
    y[r] = exact16_result(v, ea + eb);
  }
}
