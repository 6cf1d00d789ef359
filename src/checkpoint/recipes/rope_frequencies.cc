// RoPE inverse frequencies with the linear, llama3, YaRN and LongRoPE scalings, bit for bit as in
// transformers.
#include "checkpoint/recipes/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "num/env.h"
#include "num/pow/log2_binary64.h"
#include "num/pow/pow.h"

// spec/checkpoint.md onnx.6. Each statement on a table is one fp32 operation of transformers'
// modeling_rope_utils. A Python scalar beside a tensor is rounded to fp32 first. scalar / tensor is
// a reciprocal, then a product, as in torch. Operations between scalars are binary64, as in Python.
namespace invar::checkpoint {
namespace {

constexpr double kTwoPi = 2 * 3.141592653589793;  // 2 * math.pi

// ln x in double-double, rounded to binary64, so that no C library decides a bit.
double natural_log(double x) {
  return num::dd_mul(num::log2_of_binary64(x), num::DD{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}).hi;
}

void scale_by_wavelength(const RopeParameters& rope, std::vector<float>& table) {
  const auto factor = static_cast<float>(rope.factor), low = static_cast<float>(rope.low_freq_factor);
  const auto range = static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
  const auto original = static_cast<float>(rope.original_max_positions);
  const auto longest = static_cast<float>(rope.original_max_positions / rope.low_freq_factor);
  const auto shortest = static_cast<float>(rope.original_max_positions / rope.high_freq_factor);
  const auto two_pi = static_cast<float>(kTwoPi);
  for (float& f : table) {
    const float wavelength = (1.0f / f) * two_pi;
    const float scaled = f / factor;
    if (wavelength > longest) {
      f = scaled;
    } else if (!(wavelength < shortest) && range != 0) {  // between the two: interpolate
      const float smooth = ((1.0f / wavelength) * original - low) / range;
      const float a = (1.0f - smooth) * f / factor;
      const float b = smooth * f;
      f = a + b;
    }
  }
}

// The dimension whose angle makes `rotations` turns within the training context (YaRN).
double correction_dim(const RopeParameters& rope, double rotations, double head_dim) {
  return head_dim * natural_log(rope.original_max_positions / (rotations * kTwoPi)) /
         (2 * natural_log(rope.theta));
}

void scale_by_ramp(const RopeParameters& rope, int64_t head_dim, const std::vector<float>& powers,
                   std::vector<float>& table) {
  const auto dim = static_cast<double>(head_dim);
  double low = correction_dim(rope, rope.beta_fast, dim), high = correction_dim(rope, rope.beta_slow, dim);
  if (rope.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  const auto factor = static_cast<float>(rope.factor), from = static_cast<float>(low);
  const auto range = static_cast<float>(high - low);
  for (size_t i = 0; i < table.size(); ++i) {
    const float ramp = std::clamp((static_cast<float>(i) - from) / range, 0.0f, 1.0f);
    const float kept = 1.0f - ramp, stretched = 1.0f / (factor * powers[i]);
    const float a = stretched * (1.0f - kept);
    const float b = table[i] * kept;
    table[i] = a + b;
  }
}

double magnitude(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * natural_log(factor) + 1;
}

}  // namespace

double stretched_theta(double theta, double alpha, int64_t head_dim) {
  num::mend_arithmetic_env();
  const auto d = static_cast<double>(head_dim);
  const num::DD exponent = num::dd_mul(num::log2_of_binary64(alpha), num::quotient(d, d - 2));
  const double whole = std::floor(exponent.hi + 0.5);
  const num::DD power = num::exp2_of(num::dd_add(exponent, num::DD{-whole, 0}));
  return num::dd_mul(power, num::DD{theta, 0}).hi * num::power_of_two(static_cast<int>(whole));
}

std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t head_dim) {
  const auto theta = static_cast<float>(rope.theta), factor = static_cast<float>(rope.factor);
  std::vector<float> powers(static_cast<size_t>(head_dim / 2)), table(powers.size());
  num::mend_arithmetic_env();  // memory may have come by a system call
  for (size_t i = 0; i < table.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    powers[i] = num::pow_cr(theta, exponent);
    table[i] = 1.0f / powers[i];
    if (rope.type == RopeParameters::longrope)
      table[i] = 1.0f / (static_cast<float>(rope.factors[i]) * powers[i]);
    if (rope.type == RopeParameters::linear) table[i] /= factor;
  }
  if (rope.type == RopeParameters::proportional) {
    const auto turned = static_cast<size_t>(rope.proportion * static_cast<double>(head_dim) / 2);
    for (size_t i = 0; i < table.size(); ++i) table[i] = i < turned ? table[i] / factor : 0;
  }
  if (rope.type == RopeParameters::llama3) scale_by_wavelength(rope, table);
  if (rope.type == RopeParameters::yarn) scale_by_ramp(rope, head_dim, powers, table);
  return table;
}

float attention_factor(const RopeParameters& rope) {
  num::mend_arithmetic_env();
  if (rope.type == RopeParameters::longrope) {
    if (rope.attention_factor != 0) return static_cast<float>(rope.attention_factor);
    if (rope.factor <= 1) return 1;
    return static_cast<float>(
        std::sqrt(1 + natural_log(rope.factor) / natural_log(rope.original_max_positions)));
  }
  if (rope.type != RopeParameters::yarn) return 1;
  if (rope.attention_factor != 0) return static_cast<float>(rope.attention_factor);
  const bool both = rope.mscale != 0 && rope.mscale_all_dim != 0;
  return static_cast<float>(both ? magnitude(rope.factor, rope.mscale) /
                                       magnitude(rope.factor, rope.mscale_all_dim)
                                 : magnitude(rope.factor, 1));
}

double score_magnitude(const RopeParameters& rope) {
  const bool scaled = rope.type == RopeParameters::yarn && rope.mscale_all_dim != 0;
  return scaled ? magnitude(rope.factor, rope.mscale_all_dim) : 1;
}

}  // namespace invar::checkpoint
