#include "audio/tables.h"

#include "audio/exact.h"

namespace invar::audio {

using num::DD;

const Circle& circle() {
  static const Circle made = [] {
    Circle c;
    for (int64_t n = 0; n < 400; ++n) {
      c.cosines.push_back(cosine_of_turn(n, 400).hi);
      c.sines.push_back(cosine_of_turn(n - 100, 400).hi);
    }
    return c;
  }();
  return made;
}

// Below 1,000 Hz mel is 3 f / 200, above it 15 + 27 ln(f / 1000) / ln 6.4; the last corner is 8,000
// Hz.
std::vector<double> mel_corners(int64_t bands) {
  constexpr DD kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  constexpr DD kLn6_4{0x1.db365858403a3p+0, -0x1.953b8148c77cep-54};
  const DD steps = divided(kLn6_4, 27);  // ln of f to a mel
  const DD low = num::dd_mul(steps, {15, 0}), whole = num::dd_add(low, num::dd_mul(kLn2, {3, 0}));
  std::vector<double> corners;
  for (int64_t i = 0; i <= bands + 1; ++i) {
    const DD part = divided(num::dd_mul(whole, {static_cast<double>(i), 0}), static_cast<double>(bands + 1));
    const DD above = num::dd_add(part, num::dd_neg(low));
    if (above.hi < 0)
      corners.push_back(divided(num::dd_mul(num::dd_div(part, steps), {200, 0}), 3).hi);
    else
      corners.push_back(num::dd_mul(exponential(above), {1000, 0}).hi);
  }
  return corners;
}

}  // namespace invar::audio
