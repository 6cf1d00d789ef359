// Inverse frequencies of rotary position embeddings (spec/onnx.md onnx.6).
#pragma once

#include <cstdint>
#include <vector>

namespace invar::onnx {

struct RopeParameters {
  enum Type { standard, linear, llama3 } type = standard;
  // As in config.json: Python's floats, hence double.
  double theta = 10000;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4, original_max_positions = 8192;
  bool operator==(const RopeParameters&) const = default;
};

// head_dim / 2 values. The field's definition step by step, every step correctly rounded to fp32.
std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t head_dim);

}  // namespace invar::onnx
