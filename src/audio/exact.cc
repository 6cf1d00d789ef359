#include "audio/exact.h"

namespace invar::audio {

using num::DD;

DD divided(DD a, double by) {
  return num::dd_div(a, {by, 0});
}

// The series of e^x; with `step` 2 and signs those of sine (first 1) and cosine (first 0).
static DD series(DD x, int first, int step, bool alternates) {
  DD term{1, 0}, sum{0, 0};
  for (int n = 0; n < 60 && (term.hi > 0x1p-120 || term.hi < -0x1p-120); ++n) {
    if (n > 0) term = divided(num::dd_mul(term, x), n);
    if (n % step != first) continue;
    const bool negative = alternates && n / step % 2 == 1;
    sum = num::dd_add(sum, negative ? num::dd_neg(term) : term);
  }
  return sum;
}

DD exponential(DD x) {
  return series(x, 0, 1, /*alternates=*/false);
}

// From an eighth of the turn.
DD cosine_of_turn(int64_t n, int64_t d) {
  constexpr DD kTwoPi{0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};
  n = (n % d + d) % d;
  if (2 * n > d) n = d - n;
  if (4 * n == d) return {0, 0};
  if (4 * n > d) return num::dd_neg(cosine_of_turn(d - 2 * n, 2 * d));
  const bool far = 8 * n > d;  // by the sine of the angle that is left to a quarter
  if (far) n = d - 4 * n, d = 4 * d;
  const DD angle = divided(num::dd_mul(kTwoPi, {static_cast<double>(n), 0}), static_cast<double>(d));
  return series(angle, far ? 1 : 0, 2, /*alternates=*/true);
}

}  // namespace invar::audio
