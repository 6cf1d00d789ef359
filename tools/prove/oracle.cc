// A fast filter in binary64, MPFR where it cannot decide.
//
// Why the filter is sound. It yields y with |f(x) - y| <= 2^-40 |y|. Rounding to binary32 is monotonic: if
// y (1 - 2^-40) and y (1 + 2^-40) round to the same number, f(x), which lies between them, rounds to it too.
// (The two products are themselves rounded by 2^-53: the errors proved below stay under 2^-41.) Otherwise,
// about one input in 2^15, MPFR decides. The filter shares neither algorithm nor constants with src/num.
//
// exp: x = n ln2 + r. n has 8 bits and ln2 is split at 2^-42, so n L1 and x - n L1 are exact; r is wrong by
// 2^-53 from
//   its one rounding and by 2^-86 from L2. Taylor to r^17 leaves 0.36^18/18! < 2^-78; each Horner step rounds
//   values below 2 twice and is damped by r, together below 2^-50. Sum < 2^-49; exp(r) > 0.7.
// sin, cos: |x| = m 2^e with 2^e mod 2pi and pi/2 cut into pieces at 2^-25, 2^-52, 2^-79, 2^-106. m and n
// have at most
//   26 bits, so every product of a piece and every difference of products of one weight is exact, and so is
//   the sum of the first two. What is cut off and what d3 + d4 rounds is below 2^-79 each. |r| < 2^-36 goes
//   to MPFR, so the relative error of r is below 2^-42 + 2^-52. Taylor to r^19 and r^18 leaves 0.8^20/20! <
//   2^-67, Horner as above.
#include "oracle.h"

#include <mpfr.h>

#include <bit>
#include <cmath>

namespace invar::prove {

struct Oracle::Impl {
  mpfr_t x, y;
  double angle[256][4];  // 2^(field - 150) mod 2pi in pieces, by exponent field
  double half_pi[4];
  double factorial[24];  // 1/k!
};

namespace {

// v >= 0 in multiples of 2^-25, 2^-52, 2^-79, 2^-106, each truncated.
void pieces(mpfr_t v, double* piece) {
  mpfr_t rest, part;
  mpfr_inits2(2000, rest, part, nullptr);
  mpfr_set(rest, v, MPFR_RNDN);
  for (int i = 0; i < 4; ++i) {
    mpfr_mul_2si(part, rest, 25 + 27 * i, MPFR_RNDN);
    mpfr_floor(part, part);
    mpfr_mul_2si(part, part, -(25 + 27 * i), MPFR_RNDN);
    piece[i] = mpfr_get_d(part, MPFR_RNDN);
    mpfr_sub(rest, rest, part, MPFR_RNDN);
  }
  mpfr_clears(rest, part, nullptr);
}

}  // namespace

Oracle::Oracle(Function f) : impl_(new Impl), f_(f) {
  mpfr_t pi, turn, p;
  mpfr_inits2(2000, pi, turn, p, nullptr);
  mpfr_const_pi(pi, MPFR_RNDN);
  mpfr_mul_2si(turn, pi, 1, MPFR_RNDN);
  for (int field = 1; field < 255; ++field) {
    mpfr_set_ui_2exp(p, 1, field - 150, MPFR_RNDN);
    mpfr_fmod(p, p, turn, MPFR_RNDN);
    pieces(p, impl_->angle[field]);
  }
  mpfr_div_2ui(p, pi, 1, MPFR_RNDN);
  pieces(p, impl_->half_pi);
  mpfr_clears(pi, turn, p, nullptr);
  double k_factorial = 1;  // exact up to 22!, so each quotient is rounded once
  for (int k = 0; k < 23; ++k) {
    if (k > 0) k_factorial *= k;
    impl_->factorial[k] = 1 / k_factorial;
  }
  // From here on MPFR computes in binary32 with its subnormals.
  mpfr_set_emin(-148);
  mpfr_set_emax(128);
  mpfr_init2(impl_->x, 24);
  mpfr_init2(impl_->y, 24);
}

Oracle::~Oracle() {
  mpfr_clear(impl_->x);
  mpfr_clear(impl_->y);
  delete impl_;
}

bool Oracle::filter(float x, double& y) const {
  const double* c = impl_->factorial;
  if (f_ == Function::exp) {
    if (!(x > -104.0f && x < 89.0f)) return false;
    constexpr double kL1 = 0x1.62e42fefa38p-1, kL2 = 0x1.ef35793c7673p-45;
    double n = std::nearbyint(x * 0x1.71547652b82fep+0), r = (x - n * kL1) - n * kL2, p = c[17];
    for (int k = 16; k >= 0; --k) p = p * r + c[k];
    y = std::ldexp(p, static_cast<int>(n));
    return true;
  }
  uint32_t u = std::bit_cast<uint32_t>(x), mag = u & 0x7fffffff, field = mag >> 23;
  if (field == 255) return false;
  double r = std::bit_cast<float>(mag);
  uint32_t quadrant = 0;
  if (r > 0.5) {
    const double *a = impl_->angle[field], *h = impl_->half_pi;
    double m = (mag & 0x7fffff) | 0x800000;
    double n = std::nearbyint((m * a[0] + m * a[1]) * 0x1.45f306dc9c883p-1);
    quadrant = static_cast<uint32_t>(static_cast<int64_t>(n));
    double d1 = m * a[0] - n * h[0], d2 = m * a[1] - n * h[1], d3 = m * a[2] - n * h[2],
           d4 = m * a[3] - n * h[3];
    r = (d1 + d2) + (d3 + d4);
    if (std::abs(r) < 0x1p-36 || std::abs(r) > 0.8) return false;
  }
  double z = r * r, p = 0;
  bool cosine = (f_ == Function::cos) != ((quadrant & 1) != 0);
  if (cosine) {
    for (int k = 18; k >= 0; k -= 2) p = (k % 4 ? -c[k] : c[k]) + z * p;
  } else {
    for (int k = 19; k >= 1; k -= 2) p = (k % 4 == 3 ? -c[k] : c[k]) + z * p;
    p = p * r;
  }
  bool negative =
      f_ == Function::sin ? ((quadrant >> 1 & 1) != 0) != (u >> 31 != 0) : ((quadrant + 1) >> 1 & 1) != 0;
  y = negative ? -p : p;
  return true;
}

uint32_t Oracle::judge(float x) {
  ++judged_;
  mpfr_set_flt(impl_->x, x, MPFR_RNDN);
  int t = f_ == Function::exp   ? mpfr_exp(impl_->y, impl_->x, MPFR_RNDN)
          : f_ == Function::sin ? mpfr_sin(impl_->y, impl_->x, MPFR_RNDN)
                                : mpfr_cos(impl_->y, impl_->x, MPFR_RNDN);
  mpfr_subnormalize(impl_->y, t, MPFR_RNDN);
  float y = mpfr_get_flt(impl_->y, MPFR_RNDN);
  return y != y ? 0x7fc00000u : std::bit_cast<uint32_t>(y);
}

uint32_t Oracle::value(float x) {
  double y;
  if (filter(x, y)) {
    float low = static_cast<float>(y * (1 - 0x1p-40)), high = static_cast<float>(y * (1 + 0x1p-40));
    uint32_t l = std::bit_cast<uint32_t>(low);
    if (l == std::bit_cast<uint32_t>(high)) return l;
  }
  // Proved without evaluation, or else these 2^31 inputs would all go to MPFR: e^89 > 2^128, e^-104 < 2^-150.
  if (f_ == Function::exp && x >= 89.0f) return 0x7f800000u;
  if (f_ == Function::exp && x <= -104.0f) return 0;
  if (x != x) return 0x7fc00000u;
  if (f_ != Function::exp && x - x != 0) return 0x7fc00000u;  // sin and cos of infinity
  return judge(x);
}

}  // namespace invar::prove
