// spec/speech.md: what an encoder hears of a window. binary64, but where binary32 is said.
#include "law.h"

#include <math.h>
#include <mpfr.h>

enum { FRAME = 400, STEP = 160, BINS = 201 };

// mpfr's usual range: that of functions.c is binary32's.
static void binary64_range(void) {
  mpfr_set_emin(mpfr_get_emin_min());
  mpfr_set_emax(mpfr_get_emax_max());
}

// speech.3: the numbers next to cos and sin of 2 pi n / 400
static void circle(double* cosines, double* sines) {
  mpfr_t x, y;
  mpfr_init2(x, 53);
  mpfr_init2(y, 53);
  for (unsigned n = 0; n < FRAME; n++) {
    mpfr_set_ui(x, n, MPFR_RNDN);
    mpfr_cosu(y, x, FRAME, MPFR_RNDN);
    cosines[n] = mpfr_get_d(y, MPFR_RNDN);
    mpfr_sinu(y, x, FRAME, MPFR_RNDN);
    sines[n] = mpfr_get_d(y, MPFR_RNDN);
  }
  mpfr_clears(x, y, (mpfr_ptr)0);
}

// speech.3: f[0 ... bands + 1]. m(f) = 15 + 27 ln(f / 1000) / ln 6.4 and its inverse, with 200 bits.
static void corners(size_t bands, double* f) {
  mpfr_t ln, last, m;
  mpfr_inits2(200, ln, last, m, (mpfr_ptr)0);
  mpfr_set_ui(ln, 64, MPFR_RNDN);
  mpfr_div_ui(ln, ln, 10, MPFR_RNDN);
  mpfr_log(ln, ln, MPFR_RNDN);
  mpfr_log_ui(last, 8, MPFR_RNDN);
  mpfr_mul_ui(last, last, 27, MPFR_RNDN);
  mpfr_div(last, last, ln, MPFR_RNDN);
  mpfr_add_ui(last, last, 15, MPFR_RNDN);
  for (size_t i = 0; i < bands + 2; i++) {
    mpfr_mul_ui(m, last, i, MPFR_RNDN);
    mpfr_div_ui(m, m, bands + 1, MPFR_RNDN);
    if (mpfr_cmp_ui(m, 15) < 0 || MUTATED(bands_are_linear)) {
      mpfr_mul_ui(m, m, 200, MPFR_RNDN);
      mpfr_div_ui(m, m, 3, MPFR_RNDN);
    } else {
      mpfr_sub_ui(m, m, 15, MPFR_RNDN);
      mpfr_mul(m, m, ln, MPFR_RNDN);
      mpfr_div_ui(m, m, 27, MPFR_RNDN);
      mpfr_exp(m, m, MPFR_RNDN);
      mpfr_mul_ui(m, m, 1000, MPFR_RNDN);
    }
    f[i] = mpfr_get_d(m, MPFR_RNDN);
  }
  mpfr_clears(ln, last, m, (mpfr_ptr)0);
}

// speech.4
static void power_of_frame(const double* z, const double* c, const double* s, double* power) {
  double y[FRAME];
  for (size_t n = 0; n < FRAME; n++) y[n] = (0.5 - 0.5 * c[n]) * z[n];
  if (MUTATED(frames_without_window)) {
    for (size_t n = 0; n < FRAME; n++) y[n] = z[n];
  }
  for (size_t k = 0; k <= 100; k++) {
    double sum[4] = {0, 0, 0, 0};  // E, O, F, G
    for (size_t n = 1; n <= 200; n++) {
      double const a = n < 200 ? y[n] + y[FRAME - n] : y[n];
      sum[n % 2] += a * c[k * n % FRAME];
      if (n < 200) sum[2 + n % 2] += (y[n] - y[FRAME - n]) * s[k * n % FRAME];
    }
    double const p = sum[0] + sum[1], q = sum[2] + sum[3];
    double const u = sum[0] - sum[1], v = sum[2] - sum[3];
    power[200 - k] = u * u + v * v;
    power[k] = p * p + q * q;
  }
}

// features[bands, 2 positions] of a window of 320 positions samples
void law_features(const float* x, size_t positions, size_t bands, float* features) {
  binary64_range();
  double cosines[FRAME], sines[FRAME], f[bands + 2], power[BINS], z[FRAME];
  circle(cosines, sines);
  corners(bands, f);
  size_t const frames = 2 * positions, samples = STEP * frames;
  float most = -INFINITY;
  for (size_t t = 0; t < frames; t++) {
    for (size_t n = 0; n < FRAME; n++) {  // speech.2
      ptrdiff_t i = (ptrdiff_t)(STEP * t + n) - FRAME / 2;
      ptrdiff_t const last = (ptrdiff_t)samples - 1;
      int const outside = i < 0 || i > last;
      if (i < 0) i = -i;
      if (i > last) i = 2 * last - i;
      z[n] = outside && MUTATED(window_ends_are_silent) ? 0 : (double)x[i];
    }
    power_of_frame(z, cosines, sines, power);
    for (size_t m = 0; m < bands; m++) {  // speech.5
      double const h = MUTATED(bands_are_not_scaled) ? 1 : 2 / (f[m + 2] - f[m]);
      double energy = 0;
      for (size_t k = 0; k < BINS; k++) {
        double const up = (40.0 * (double)k - f[m]) / (f[m + 1] - f[m]);
        double const down = (f[m + 2] - 40.0 * (double)k) / (f[m + 2] - f[m + 1]);
        energy += h * fmax(0, fmin(up, down)) * power[k];
      }
      float l;
      law_function("log10", (float)(energy > 1e-10 ? energy : 1e-10), &l);
      features[m * frames + t] = l;
      if (l > most) most = l;
    }
    binary64_range();
  }
  float const least = most - 8;
  for (size_t i = 0; i < bands * frames; i++) {  // speech.6
    float const l = features[i] < least && !MUTATED(quiet_bands_stay) ? least : features[i];
    features[i] = (l + 4) * 0.25f;
  }
}
