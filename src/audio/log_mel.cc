// The front end of Whisper in binary64: windows of 400 samples, their power at 201 frequencies, and
// triangular bands of mel. Sums go in the order of their indices, so no FFT.
#include "audio/log_mel.h"

#include <algorithm>
#include <array>

#include "audio/tables.h"
#include "num/env.h"
#include "num/reference.h"

namespace invar::audio {
namespace {

constexpr int64_t kWindow = 400, kHalf = kWindow / 2, kQuarter = kWindow / 4;
constexpr size_t kBins = kHalf + 1;
constexpr double kBinHertz = 40;  // kSpeechRate / kWindow
constexpr double kLeastEnergy = 1e-10;
constexpr float kRange = 8;

// The sums of speech.4 for frequencies 0 to kQuarter: the others differ in signs alone.
using Sums = std::array<double, kQuarter + 1>;

// A table of the factors of one term after another.
struct Factors {
  std::vector<Sums> cosines, sines;  // [term][frequency]
};

const Factors& factors() {
  static const Factors made = [] {
    Factors f;
    for (size_t n = 0; n <= kHalf; ++n) {
      Sums &cosines = f.cosines.emplace_back(), &sines = f.sines.emplace_back();
      for (size_t k = 0; k <= kQuarter; ++k)
        cosines[k] = circle().cosines[n * k % kWindow], sines[k] = circle().sines[n * k % kWindow];
    }
    return f;
  }();
  return made;
}

// speech.4
void add_terms(double term, const Sums& factors, Sums& sums) {
  for (size_t k = 0; k < sums.size(); ++k) sums[k] = sums[k] + term * factors[k];
}

// The samples of a window of 30 seconds: the end is padded with zeros, both ends are mirrored.
class Padded {
 public:
  Padded(std::span<const float> samples, int64_t size)
      : samples_(samples.first(std::min(samples.size(), static_cast<size_t>(size)))), size_(size) {}
  double at(int64_t i) const {
    if (i < 0) i = -i;
    if (i >= size_) i = 2 * (size_ - 1) - i;
    return i < static_cast<int64_t>(samples_.size()) ? samples_[static_cast<size_t>(i)] : 0.0f;
  }
  // No sample of the frame is one of the recording.
  bool is_silent(int64_t first) const {
    return first >= static_cast<int64_t>(samples_.size()) &&
           2 * (size_ - 1) - (first + kWindow - 1) >= static_cast<int64_t>(samples_.size());
  }

 private:
  const std::span<const float> samples_;
  const int64_t size_;
};

// speech.4: the power of a frame at each frequency.
std::array<double, kBins> power_of(const Padded& samples, int64_t first) {
  std::array<double, kBins> power{};
  if (samples.is_silent(first)) return power;
  const auto weighed = [&](int64_t n) {
    const double window = 0.5 - 0.5 * circle().cosines[static_cast<size_t>(n)];
    return window * samples.at(first + n);
  };
  const Factors& f = factors();
  Sums even{}, odd{}, even_sines{}, odd_sines{};
  for (int64_t n = 1; n < kHalf; ++n) {
    const double a = weighed(n), b = weighed(kWindow - n);
    add_terms(a + b, f.cosines[static_cast<size_t>(n)], n % 2 == 0 ? even : odd);
    add_terms(a - b, f.sines[static_cast<size_t>(n)], n % 2 == 0 ? even_sines : odd_sines);
  }
  add_terms(weighed(kHalf), f.cosines[kHalf], even);
  for (size_t k = 0; k <= kQuarter; ++k) {
    const double near = even[k] + odd[k], far = even[k] - odd[k];
    const double near_sine = odd_sines[k] + even_sines[k], far_sine = odd_sines[k] - even_sines[k];
    power[k] = near * near + near_sine * near_sine;
    power[kHalf - k] = far * far + far_sine * far_sine;
  }
  return power;
}

// speech.5: what a band takes of each frequency.
std::vector<std::array<double, kBins>> bands_of(int64_t bands) {
  const std::vector<double> f = mel_corners(bands);
  std::vector<std::array<double, kBins>> all(static_cast<size_t>(bands));
  for (size_t m = 0; m < all.size(); ++m)
    for (size_t k = 0; k < kBins; ++k) {
      const double hertz = kBinHertz * static_cast<double>(k);
      const double up = (hertz - f[m]) / (f[m + 1] - f[m]), down = (f[m + 2] - hertz) / (f[m + 2] - f[m + 1]);
      const double height = 2.0 / (f[m + 2] - f[m]);
      all[m][k] = std::max(0.0, std::min(up, down)) * height;
    }
  return all;
}

}  // namespace

std::vector<float> log_mel(std::span<const float> samples, int64_t bands, int64_t frames) {
  const num::ArithmeticEnv env;
  const Padded padded(samples, frames * kSamplesPerFrame);
  const auto filters = bands_of(bands);
  std::vector<float> features(static_cast<size_t>(bands * frames));
  for (int64_t t = 0; t < frames; ++t) {
    const std::array<double, kBins> power = power_of(padded, t * kSamplesPerFrame - kHalf);
    for (size_t m = 0; m < filters.size(); ++m) {
      double energy = 0;
      for (size_t k = 0; k < kBins; ++k) energy = energy + filters[m][k] * power[k];
      features[m * static_cast<size_t>(frames) + static_cast<size_t>(t)] =
          num::reference::log10(static_cast<float>(std::max(energy, kLeastEnergy)));
    }
  }
  const float least = *std::ranges::max_element(features) - kRange;
  for (float& x : features) x = (std::max(x, least) + 4.0f) * 0.25f;
  return features;
}

}  // namespace invar::audio
