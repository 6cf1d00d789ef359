// Inverse frequencies of rotary position embeddings (spec/checkpoint.md onnx.6).
#pragma once

#include <cstdint>
#include <vector>

namespace invar::checkpoint {

struct RopeParameters {
  enum Type { standard, linear, llama3, yarn, longrope, proportional } type = standard;
  // double, since Python reads the floats of config.json as binary64.
  double theta = 10000;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4, original_max_positions = 8192;
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 0, mscale = 0, mscale_all_dim = 0;  // 0: absent
  bool truncate = true;
  double proportion = 1;        // of proportional: of the pairs, the others do not turn
  int64_t size = 0;             // elements of a head that are rotated; 0: the decoder's rotary_dim
  std::vector<double> factors;  // of longrope: a divisor of each frequency
  bool long_factors = false;    // they are those of long sequences (decoder.29)
  bool operator==(const RopeParameters&) const = default;
};

// theta * alpha^(d / (d - 2)), within an error far below the rounding to fp32.
double stretched_theta(double theta, double alpha, int64_t head_dim);

// head_dim / 2 values, computed as transformers defines them, every step correctly rounded to fp32.
std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t head_dim);

// The factor on cosines and sines: 1 except for YaRN and LongRoPE.
float attention_factor(const RopeParameters& rope);

// The factor of latent attention on queries and on keys: 1 except for YaRN with mscale_all_dim.
double score_magnitude(const RopeParameters& rope);

}  // namespace invar::checkpoint
