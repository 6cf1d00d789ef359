// spec/functions.md: correctly rounded functions are MPFR's, with the range of binary32
// (functions.1: gradual underflow, overflow to infinity).
#include "law.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

typedef int Function(mpfr_t result, const mpfr_t x, mpfr_rnd_t round);

// As MPFR names it, with the names of the page.
static int exp_of(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) { return mpfr_exp(y, x, r); }
#define FUNCTIONS(X)                                                                              \
  X(exp2) X(exp10) X(expm1) X(sinh) X(cosh) X(tanh) X(erf) X(erfc) X(log) X(log2) X(log10)        \
  X(log1p) X(sqrt) X(cbrt) X(asinh) X(acosh) X(atanh) X(tan) X(sinpi) X(cospi) X(asin) X(acos)    \
  X(atan) X(sin) X(cos)
#define WRAP(name) \
  static int name##_of(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) { return mpfr_##name(y, x, r); }
FUNCTIONS(WRAP)
static int rsqrt_of(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  if (mpfr_zero_p(x)) {  // functions.22: the infinity of the sign of zero
    mpfr_set_inf(y, mpfr_signbit(x) ? -1 : 1);
    return 0;
  }
  return mpfr_rec_sqrt(y, x, r);
}

#define ROW(name) {#name, name##_of},
static const struct {
  const char* name;
  Function* function;
} table[] = {{"exp", exp_of}, {"rsqrt", rsqrt_of}, FUNCTIONS(ROW)};

// binary32: the smallest positive number is 2^-149 = 0.5 * 2^-148, the largest is below 2^128.
static void binary32_range(void) {
  mpfr_set_emin(-148);
  mpfr_set_emax(128);
}

static float finish(mpfr_t y, int inexact) {
  mpfr_subnormalize(y, inexact, MPFR_RNDN);
  float const result = mpfr_get_flt(y, MPFR_RNDN);
  return isnan(result) ? float_of(0x7fc00000u) : result;
}

static float rounded(Function* function, float x) {
  binary32_range();
  mpfr_t argument, y;
  mpfr_inits2(24, argument, y, (mpfr_ptr)0);
  mpfr_set_flt(argument, x, MPFR_RNDN);
  float const result = finish(y, function(y, argument, MPFR_RNDN));
  mpfr_clears(argument, y, (mpfr_ptr)0);
  return result;
}

// The value of the function of this name at x; 0 if there is none.
int law_function(const char* name, float x, float* y) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(name, table[i].name) == 0) {
      *y = rounded(table[i].function, x);
      return 1;
    }
  }
  return 0;
}

// A short series, as a fast library would use: a wrong exp for the mutation of that name.
static float polynomial_exp(float x) {
  double const n = nearbyint(x * 0x1.71547652b82fep+0), r = x - n * 0x1.62e42fefa39efp-1;
  double p = 0;
  for (int i = 6; i >= 0; i--) p = p * r / (i + 1) + 1;
  return (float)ldexp(p, (int)n);
}

// functions.2
float law_exp(float x) {
  if (MUTATED(exp_by_polynomial) && fabsf(x) < 80) return polynomial_exp(x);
  float const y = rounded(exp_of, x);
  if (MUTATED(exp_flushes)) return y < 0x1p-126f ? 0.0f : y;
  return MUTATED(exp_one_ulp) && y > 0 && y < 1 ? nextafterf(y, 0) : y;
}

// functions.3
float law_sin(float x) { return rounded(sin_of, x); }
float law_cos(float x) {
  float const y = rounded(cos_of, x);
  return MUTATED(cos_one_ulp) ? nextafterf(y, 0) : y;
}

// functions.26, and functions.4 where x > 0 and both are finite
float law_pow(float x, float y) {
  binary32_range();
  mpfr_rnd_t const round = MUTATED(pow_truncates) ? MPFR_RNDZ : MPFR_RNDN;
  mpfr_t base, exponent, z;
  mpfr_inits2(24, base, exponent, z, (mpfr_ptr)0);
  mpfr_set_flt(base, x, MPFR_RNDN);
  mpfr_set_flt(exponent, y, MPFR_RNDN);
  float const result = finish(z, mpfr_pow(z, base, exponent, round));
  mpfr_clears(base, exponent, z, (mpfr_ptr)0);
  return result;
}
