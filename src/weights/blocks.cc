// Blocks of 32 numbers with one scale (spec/weights.md weights.3 to weights.5). The four low bits
// of byte i are number i, the four high ones number i + 16.
#include <cmath>

#include "weights/formats.h"
#include "weights/scales.h"

namespace invar::weights {
namespace {

// (q - zero) * d + m, where m is 0 in formats without addend; `high` has the fifth bit of each q.
template <class Number>
void nibbles(const uint8_t* q, uint32_t high, float* out, Number number) {
  for (int i = 0; i < 16; ++i) {
    out[i] = number(static_cast<int>(q[i] & 15) | static_cast<int>(high >> i & 1) << 4);
    out[i + 16] = number(q[i] >> 4 | static_cast<int>(high >> (i + 16) & 1) << 4);
  }
}

uint32_t word(const uint8_t* p) {
  return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
}

}  // namespace

void unpack_q4_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  nibbles(block + 2, 0, out, [&](int q) { return static_cast<float>(q - 8) * d; });
}

void unpack_q4_1(const uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  nibbles(block + 4, 0, out, [&](int q) { return static_cast<float>(q) * d + m; });
}

void unpack_q5_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  nibbles(block + 6, word(block + 2), out, [&](int q) { return static_cast<float>(q - 16) * d; });
}

void unpack_q5_1(const uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  nibbles(block + 8, word(block + 4), out, [&](int q) { return static_cast<float>(q) * d + m; });
}

void unpack_q8_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}

void unpack_iq4_nl(const uint8_t* block, float* out) {
  const float d = half_at(block);
  nibbles(block + 2, 0, out, [&](int q) { return kIq4[q] * d; });
}

// Four bits are the sign, two of exponent, one of mantissa; the scale is 2^(byte - 127). The
// product of twice the element with half the scale is exact.
void unpack_mxfp4(const uint8_t* block, float* out) {
  static constexpr float kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, -0.0f, -1, -2, -3, -4, -6, -8, -12};
  const float half = block[0] == 255 ? NAN : std::ldexp(1.0f, block[0] - 128);
  nibbles(block + 1, 0, out, [&](int q) { return kTwice[q] * half; });
}

}  // namespace invar::weights
