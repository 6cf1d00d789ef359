#include "onnx/rope.h"

#include <cstddef>

#include "num/pow/pow.h"

namespace invar::onnx {

// spec/onnx.md onnx.6. Each line is one fp32 operation of the definition in transformers' modeling_rope_utils: a
// Python scalar beside a tensor is rounded to fp32 first; scalar / tensor is reciprocal, then product, as in torch.
std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t head_dim) {
  const auto theta = static_cast<float>(rope.theta), factor = static_cast<float>(rope.factor);
  std::vector<float> table(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < table.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    table[i] = 1.0f / num::pow_cr(theta, exponent);
    if (rope.type == RopeParameters::linear) table[i] /= factor;
  }
  if (rope.type != RopeParameters::llama3) return table;

  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto range = static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
  const auto original = static_cast<float>(rope.original_max_positions);
  const auto longest = static_cast<float>(rope.original_max_positions / rope.low_freq_factor);
  const auto shortest = static_cast<float>(rope.original_max_positions / rope.high_freq_factor);
  const auto two_pi = static_cast<float>(2 * 3.141592653589793);  // 2 * math.pi
  for (float& f : table) {
    const float wavelength = (1.0f / f) * two_pi;
    const float scaled = f / factor;
    if (wavelength > longest) {
      f = scaled;
    } else if (!(wavelength < shortest)) {  // between the two: interpolate
      const float smooth = ((1.0f / wavelength) * original - low) / range;
      const float a = (1.0f - smooth) * f / factor;
      const float b = smooth * f;
      f = a + b;
    }
  }
  return table;
}

}  // namespace invar::onnx
