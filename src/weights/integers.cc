// The integers of blocks, of which kernels for a few rows make the numbers in registers. The
// layouts are those of blocks.cc and super_blocks.cc.
#include "weights/formats.h"
#include "weights/scales.h"

namespace invar::weights {
namespace {

uint16_t two_bytes(const uint8_t* p) {
  return static_cast<uint16_t>(p[0] | p[1] << 8);
}

// 32 numbers: low halves of 16 bytes, then high ones.
void halves(const uint8_t* low, uint8_t* q) {
  for (int i = 0; i < 16; ++i) q[i] = low[i] & 15, q[i + 16] = low[i] >> 4;
}
void fifth_bits(const uint8_t* high, uint8_t* q) {
  for (int i = 0; i < 32; ++i) q[i] = static_cast<uint8_t>(q[i] | (high[i / 8] >> i % 8 & 1) << 4);
}

// Scales and minima of six bits in 12 bytes (weights.7).
void six_bit_pairs(const uint8_t* p, BlockCodes& out) {
  for (int j = 0; j < 4; ++j) {
    out.s[j] = 128 + (p[j] & 63), out.m[j] = p[j + 4] & 63;
    out.s[j + 4] = static_cast<uint8_t>(128 + ((p[j + 8] & 15) | (p[j] >> 6) << 4));
    out.m[j + 4] = static_cast<uint8_t>(p[j + 8] >> 4 | (p[j + 4] >> 6) << 4);
  }
}
// Parts of 32, those of even numbers in low halves.
void halves_of_parts(const uint8_t* low, uint8_t* q) {
  for (int pair = 0; pair < 4; ++pair, low += 32, q += 64)
    for (int i = 0; i < 32; ++i) q[i] = low[i] & 15, q[i + 32] = low[i] >> 4;
}
// Two bits of each number, in four parts of 32 for each 32 bytes.
void quarters(const uint8_t* two, uint8_t* q) {
  for (int half = 0; half < 2; ++half, two += 32)
    for (int part = 0; part < 4; ++part, q += 32)
      for (int i = 0; i < 32; ++i) q[i] = two[i] >> 2 * part & 3;
}

}  // namespace

void integers_q4_0(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block);
  halves(block + 2, out.q);
}

void integers_q4_1(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block), out.e = two_bytes(block + 2);
  halves(block + 4, out.q);
}

void integers_q5_0(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block);
  halves(block + 6, out.q), fifth_bits(block + 2, out.q);
}

void integers_q5_1(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block), out.e = two_bytes(block + 2);
  halves(block + 8, out.q), fifth_bits(block + 4, out.q);
}

void integers_q8_0(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block);
  for (int i = 0; i < 32; ++i) out.q[i] = block[2 + i] ^ 0x80;
}

void integers_iq4_nl(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block);
  halves(block + 2, out.q);
  for (int i = 0; i < 32; ++i) out.q[i] = static_cast<uint8_t>(kIq4[out.q[i]] + 128);
}

void codes_mxfp4(const uint8_t* block, BlockCodes& out) {
  out.d = block[0];
  halves(block + 1, out.q);
}

void integers_q2_k(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block + 80), out.e = two_bytes(block + 82);
  for (int j = 0; j < 16; ++j) out.s[j] = 128 + (block[j] & 15), out.m[j] = block[j] >> 4;
  quarters(block + 16, out.q);
}

void integers_q3_k(const uint8_t* block, BlockCodes& out) {
  const uint8_t *high = block, *scales = block + 96;
  out.d = two_bytes(block + 108);
  for (int j = 0; j < 16; ++j) {
    const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    out.s[j] = static_cast<uint8_t>(128 - 32 + (low | (scales[8 + j % 4] >> j / 4 * 2 & 3) << 4));
  }
  quarters(block + 32, out.q);
  for (int part = 0; part < 8; ++part)
    for (int i = 0; i < 32; ++i) {
      uint8_t& q = out.q[32 * part + i];
      q = static_cast<uint8_t>(q | (high[i] >> part & 1) << 2);
    }
}

void integers_q4_k(const uint8_t* block, BlockCodes& out) {
  out.d = two_bytes(block), out.e = two_bytes(block + 2);
  six_bit_pairs(block + 4, out);
  halves_of_parts(block + 16, out.q);
}

void integers_q5_k(const uint8_t* block, BlockCodes& out) {
  const uint8_t* high = block + 16;
  out.d = two_bytes(block), out.e = two_bytes(block + 2);
  six_bit_pairs(block + 4, out);
  halves_of_parts(block + 48, out.q);
  for (int part = 0; part < 8; ++part)
    for (int i = 0; i < 32; ++i) {
      uint8_t& q = out.q[32 * part + i];
      q = static_cast<uint8_t>(q | (high[i] >> part & 1) << 4);
    }
}

void integers_q6_k(const uint8_t* block, BlockCodes& out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  out.d = two_bytes(block + 208);
  for (int j = 0; j < 16; ++j) out.s[j] = scales[j] ^ 0x80;
  quarters(high, out.q);
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 64; ++i) {
      uint8_t* const q = out.q + 128 * half + i;
      const int byte = low[64 * half + i];
      q[0] = static_cast<uint8_t>(q[0] << 4 | (byte & 15));
      q[64] = static_cast<uint8_t>(q[64] << 4 | byte >> 4);
    }
}

void integers_iq4_xs(const uint8_t* block, BlockCodes& out) {
  const int high = two_bytes(block + 2);
  out.d = two_bytes(block);
  for (int part = 0; part < 8; ++part) {
    const int scale = (block[4 + part / 2] >> part % 2 * 4 & 15) | (high >> part * 2 & 3) << 4;
    out.s[part] = static_cast<uint8_t>(128 - 32 + scale);
    halves(block + 8 + 16 * part, out.q + 32 * part);
  }
  for (uint8_t& q : out.q) q = static_cast<uint8_t>(kIq4[q] + 128);
}

}  // namespace invar::weights
