// SHA-1, see sha1.h. FIPS 180-4, 6.1.2, step by step.
#include "base/hash/sha1.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace invar {

Sha1::Sha1() : state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0} {}

void Sha1::compress(const uint8_t* block) {
  uint32_t w[80];
  for (int t = 0; t < 16; ++t)
    w[t] = uint32_t{block[4 * t]} << 24 | uint32_t{block[4 * t + 1]} << 16 | uint32_t{block[4 * t + 2]} << 8 |
           uint32_t{block[4 * t + 3]};
  for (int t = 16; t < 80; ++t) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3], e = state_[4];
  const auto round = [&](uint32_t f, uint32_t k, uint32_t word) {
    const uint32_t next = std::rotl(a, 5) + f + e + k + word;
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  };
  for (int t = 0; t < 20; ++t) round((b & c) ^ (~b & d), 0x5a827999, w[t]);
  for (int t = 20; t < 40; ++t) round(b ^ c ^ d, 0x6ed9eba1, w[t]);
  for (int t = 40; t < 60; ++t) round((b & c) ^ (b & d) ^ (c & d), 0x8f1bbcdc, w[t]);
  for (int t = 60; t < 80; ++t) round(b ^ c ^ d, 0xca62c1d6, w[t]);
  state_[0] += a, state_[1] += b, state_[2] += c, state_[3] += d, state_[4] += e;
}

Sha1& Sha1::update(const void* data, size_t bytes) {
  auto* p = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    const size_t held = total_ % 64, take = std::min(bytes, 64 - held);
    std::memcpy(block_ + held, p, take);
    total_ += take, p += take, bytes -= take;
    if (held + take == 64) compress(block_);
  }
  return *this;
}

std::string Sha1::finish() {
  const uint64_t bits = total_ * 8;
  uint8_t tail[72] = {0x80};
  const size_t zeros = (119 - total_ % 64) % 64;  // behind the 0x80, up to the 8 bytes of the length
  for (int i = 0; i < 8; ++i) tail[1 + zeros + i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  update(tail, 1 + zeros + 8);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) hex += kDigits[word >> shift & 15];
  return hex;
}

}  // namespace invar
