// Blocks of 256 numbers, in parts of 16 or 32 with a scale each that is itself a small integer
// (spec/weights.md weights.6 to weights.10).
#include "weights/formats.h"
#include "weights/scales.h"

namespace invar::weights {
namespace {

// The six bits of scale and addend j of 8 in 12 bytes.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum six_bits(const uint8_t* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4};
}

// (d * scale) * q - (dmin * minimum), for parts of 32: those of even numbers are low halves.
void with_minimum(float d, float dmin, const uint8_t* scales, const uint8_t* high, const uint8_t* low,
                  float* out) {
  for (int part = 0; part < 8; ++part) {
    const ScaleAndMinimum s = six_bits(scales, part);
    const float scale = d * static_cast<float>(s.scale), minimum = dmin * static_cast<float>(s.minimum);
    for (int i = 0; i < 32; ++i) {
      const int byte = low[part / 2 * 32 + i], fifth = high ? high[i] >> part & 1 : 0;
      const int q = (part % 2 ? byte >> 4 : byte & 15) | fifth << 4;
      out[part * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

}  // namespace

void unpack_q2_k(const uint8_t* block, float* out) {
  const uint8_t *scales = block, *q = block + 16;
  const float d = half_at(block + 80), dmin = half_at(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 16, shift = i / 32 % 4 * 2, byte = q[i / 128 * 32 + i % 32];
    const float scale = d * static_cast<float>(scales[part] & 15);
    const float minimum = dmin * static_cast<float>(scales[part] >> 4);
    out[i] = scale * static_cast<float>(byte >> shift & 3) - minimum;
  }
}

void unpack_q3_k(const uint8_t* block, float* out) {
  const uint8_t *high = block, *q = block + 32, *scales = block + 96;
  const float d = half_at(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 16, shift = i / 32 % 4 * 2;
    const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    const int scale = (low | (scales[8 + part % 4] >> part / 4 * 2 & 3) << 4) - 32;
    const int two = q[i / 128 * 32 + i % 32] >> shift & 3, third = high[i % 32] >> i / 32 & 1;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(two - (third ? 0 : 4));
  }
}

void unpack_q4_k(const uint8_t* block, float* out) {
  with_minimum(half_at(block), half_at(block + 2), block + 4, nullptr, block + 16, out);
}

void unpack_q5_k(const uint8_t* block, float* out) {
  with_minimum(half_at(block), half_at(block + 2), block + 4, block + 16, block + 48, out);
}

void unpack_q6_k(const uint8_t* block, float* out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, at = i % 128, byte = low[half * 64 + at % 64];
    const int four = at < 64 ? byte & 15 : byte >> 4, two = high[half * 32 + at % 32] >> at / 32 * 2 & 3;
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    out[i] = scale * static_cast<float>((four | two << 4) - 32);
  }
}

void unpack_iq4_xs(const uint8_t* block, float* out) {
  const int high = block[2] | block[3] << 8;
  const uint8_t *low = block + 4, *q = block + 8;
  const float d = half_at(block);
  for (int part = 0; part < 8; ++part) {
    const int scale = (low[part / 2] >> part % 2 * 4 & 15) | (high >> part * 2 & 3) << 4;
    const float s = d * static_cast<float>(scale - 32);
    for (int i = 0; i < 16; ++i) {
      out[part * 32 + i] = s * kIq4[q[part * 16 + i] & 15];
      out[part * 32 + i + 16] = s * kIq4[q[part * 16 + i] >> 4];
    }
  }
}

}  // namespace invar::weights
