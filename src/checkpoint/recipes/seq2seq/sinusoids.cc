// Sines and exponentials by series, since the bits of a C library's differ from machine to machine.
#include "checkpoint/recipes/seq2seq/sinusoids.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace invar::checkpoint {
namespace {

constexpr double kLog10000 = 9.210340371976184;  // ln 10^4
constexpr int kTerms = 22;

// e^x for -20 < x <= 0, within 2^-52 of it.
double exponential(double x) {
  constexpr double kHigh = 0x1.62e42fefa38p-1, kLow = 0x1.ef35793c7673p-45;  // ln 2 in two parts
  const double k = std::nearbyint(x * 0x1.71547652b82fep0);
  const double r = (x - k * kHigh) - k * kLow;
  double sum = 1;
  for (int n = kTerms; n > 0; --n) sum = 1 + sum * r / n;
  return std::ldexp(sum, static_cast<int>(k));
}

// Sine and cosine of 0 <= x < 2^20.
std::pair<double, double> sine_cosine(double x) {
  constexpr double kParts[] = {0x1.921fb544p0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};  // of pi / 2
  const double k = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  const double r = ((x - k * kParts[0]) - k * kParts[1]) - k * kParts[2], r2 = r * r;
  double sine = 1, cosine = 1;
  for (int n = kTerms; n > 0; n -= 2) {
    sine = 1 - sine * r2 / (n * (n + 1));
    cosine = 1 - cosine * r2 / (n * (n - 1));
  }
  sine *= r;
  switch (static_cast<int64_t>(k) % 4) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

template <class Angle>
std::vector<float> table(int64_t first, int64_t rows, int64_t size, const Angle& angle) {
  const int64_t half = (size + 1) / 2;
  std::vector<float> values(static_cast<size_t>(rows * size));
  for (int64_t p = 0; p < rows; ++p)
    for (int64_t j = 0; j < half; ++j) {
      const auto [sine, cosine] = sine_cosine(angle(first + p, j));
      values[static_cast<size_t>(p * size + j)] = static_cast<float>(sine);
      if (half + j < size) values[static_cast<size_t>(p * size + half + j)] = static_cast<float>(cosine);
    }
  return values;
}

}  // namespace

std::vector<float> sinusoids(int64_t first, int64_t rows, int64_t size) {
  std::vector<double> periods;
  for (int64_t j = 0; j < (size + 1) / 2; ++j)
    periods.push_back(1 / exponential(-static_cast<double>(2 * j) / static_cast<double>(size) * kLog10000));
  return table(first, rows, size, [&](int64_t p, int64_t j) {
    return static_cast<double>(p) / periods[static_cast<size_t>(j)];
  });
}

std::vector<float> sinusoids_of_binary32(int64_t first, int64_t rows, int64_t size) {
  std::vector<float> frequencies;
  const auto step = static_cast<float>(-kLog10000 / static_cast<double>(size / 2 - 1));
  for (int64_t j = 0; j < size / 2; ++j) {
    const float exponent = static_cast<float>(j) * step;
    frequencies.push_back(static_cast<float>(exponential(static_cast<double>(exponent))));
  }
  return table(first, rows, size, [&](int64_t p, int64_t j) {
    const float product = static_cast<float>(p) * frequencies[static_cast<size_t>(j)];
    return static_cast<double>(product);
  });
}

}  // namespace invar::checkpoint
