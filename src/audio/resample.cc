// A sinc in a Hann window, with the coefficients of each phase, which are few for rates of the
// field.
#include "audio/resample.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "audio/exact.h"
#include "audio/log_mel.h"
#include "num/env.h"

namespace invar::audio {
namespace {

constexpr int64_t kCrossings = 32;  // of zero, on each side
constexpr int64_t kMostPhases = 1000;

// p / q = 16,000 / rate.
struct Ratio {
  explicit Ratio(int64_t rate) {
    const int64_t common = std::gcd(kSpeechRate, rate);
    p = kSpeechRate / common, q = rate / common;
  }
  int64_t p, q;
  int64_t larger() const { return std::max(p, q); }
};

// h(n), 0 <= n < kCrossings * larger().
std::vector<double> coefficients(const Ratio& r) {
  constexpr num::DD kPi{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
  const int64_t d = r.larger();
  const num::DD scale =
      num::dd_div({static_cast<double>(r.p), 0}, {static_cast<double>(std::max(r.q, r.p)), 0});
  std::vector<num::DD> sines;  // of pi n / d, n below 2 d
  for (int64_t n = 0; n < 2 * d; ++n) sines.push_back(sine_of_half_turn(n, d));
  std::vector<double> h{scale.hi};
  for (int64_t n = 1; n < kCrossings * d; ++n) {
    const num::DD angle = divided(num::dd_mul(kPi, {static_cast<double>(n), 0}), static_cast<double>(d));
    const num::DD window =
        num::dd_add({0.5, 0}, num::dd_mul({0.5, 0}, cosine_of_turn(n, 2 * kCrossings * d)));
    const num::DD sinc = num::dd_div(sines[static_cast<size_t>(n % (2 * d))], angle);
    h.push_back(num::dd_mul(scale, num::dd_mul(sinc, window)).hi);
  }
  return h;
}

}  // namespace

bool is_convertible(int64_t rate) {
  return rate >= 4000 && rate <= 384000 && Ratio(rate).larger() <= kMostPhases;
}

std::vector<float> resampled(std::span<const float> samples, int64_t rate) {
  const num::ArithmeticEnv env;
  const Ratio r(rate);
  const std::vector<double> h = coefficients(r);
  const auto count = static_cast<int64_t>(samples.size()), reach = static_cast<int64_t>(h.size()) - 1;
  std::vector<float> made(static_cast<size_t>((count * r.p + r.q - 1) / r.q));
  for (int64_t j = 0; j < static_cast<int64_t>(made.size()); ++j) {
    const int64_t at = j * r.q;  // of sample i: i p
    const int64_t first = std::max<int64_t>((at - reach + r.p - 1) / r.p, 0),
                  last = std::min((at + reach) / r.p, count - 1);
    double sum = 0;
    for (int64_t i = first; i <= last; ++i)
      sum = sum + static_cast<double>(samples[static_cast<size_t>(i)]) *
                      h[static_cast<size_t>(std::abs(i * r.p - at))];
    made[static_cast<size_t>(j)] = static_cast<float>(sum);
  }
  return made;
}

}  // namespace invar::audio
