// SHA-256 and Merkle roots, see sha256.h.
#include "base/hash/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/hash/sha256_blocks.h"

namespace invar {

const uint32_t kSha256Rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// FIPS 180-4, 6.2.2, step by step; words are read and written byte by byte, so byte order does not
// matter.
void sha256_blocks_portable(uint32_t state[8], const uint8_t* data, size_t blocks) {
  for (; blocks > 0; --blocks, data += 64) {
    uint32_t w[64];
    for (int t = 0; t < 16; ++t)
      w[t] = uint32_t{data[4 * t]} << 24 | uint32_t{data[4 * t + 1]} << 16 | uint32_t{data[4 * t + 2]} << 8 |
             uint32_t{data[4 * t + 3]};
    for (int t = 16; t < 64; ++t) {
      uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
      uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
      w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
#pragma GCC unroll 8  // the rotation of a..h then costs nothing
    for (int t = 0; t < 64; ++t) {
      uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256Rounds[t] + w[t];
      uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#if !defined(__x86_64__) && !defined(__aarch64__)
Sha256Blocks sha256_blocks_native() {
  return nullptr;
}
Sha256TwoBlocks sha256_two_blocks_native() {
  return nullptr;
}
#endif
#if !defined(__x86_64__)
Sha256LaneBlocks sha256_lane_blocks_native() {
  return nullptr;
}
#endif

namespace {

void compress(uint32_t state[8], const uint8_t* data, size_t blocks) {
  static const Sha256Blocks best = sha256_blocks_native() ? sha256_blocks_native() : &sha256_blocks_portable;
  best(state, data, blocks);
}

constexpr uint32_t kInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// The digest of a message of `total` bytes, of which the last `bytes` are not in `state` yet.
Digest finish_message(uint32_t state[8], const uint8_t* rest, size_t bytes, uint64_t total) {
  compress(state, rest, bytes / 64);
  uint8_t block[64] = {};
  size_t held = bytes % 64;
  if (held > 0) std::memcpy(block, rest + bytes / 64 * 64, held);
  block[held++] = 0x80;
  if (held > 56) {
    compress(state, block, 1);
    std::memset(block, 0, sizeof block);
  }
  for (int i = 0; i < 8; ++i) block[56 + i] = static_cast<uint8_t>(total * 8 >> (56 - 8 * i));
  compress(state, block, 1);
  Digest d;
  for (int i = 0; i < 32; ++i) d[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return d;
}

}  // namespace

Sha256::Sha256() {
  std::memcpy(state_, kInitial, sizeof kInitial);
}

Sha256& Sha256::update(const void* data, size_t bytes) {
  if (bytes == 0) return *this;  // data may be null
  auto* p = static_cast<const uint8_t*>(data);
  size_t held = total_ % 64;
  total_ += bytes;
  if (held > 0) {
    size_t take = bytes < 64 - held ? bytes : 64 - held;
    std::memcpy(block_ + held, p, take);
    p += take, bytes -= take;
    if (held + take < 64) return *this;
    compress(state_, block_, 1);
  }
  compress(state_, p, bytes / 64);
  if (bytes % 64 > 0) std::memcpy(block_, p + bytes / 64 * 64, bytes % 64);
  return *this;
}

Digest Sha256::finish() {
  return finish_message(state_, block_, total_ % 64, total_);
}

Digest sha256(const void* data, size_t bytes) {
  return Sha256().update(data, bytes).finish();
}

std::array<Digest, 2> sha256_of_two(std::span<const std::byte> a, std::span<const std::byte> b) {
  static const Sha256TwoBlocks two = sha256_two_blocks_native();
  if (!two) return {sha256(a.data(), a.size()), sha256(b.data(), b.size())};
  uint32_t states[2][8];
  for (auto& state : states) std::memcpy(state, kInitial, sizeof kInitial);
  const uint8_t* const data[2] = {reinterpret_cast<const uint8_t*>(a.data()),
                                  reinterpret_cast<const uint8_t*>(b.data())};
  const size_t blocks = std::min(a.size(), b.size()) / 64;
  two(states, data, blocks);
  return {finish_message(states[0], data[0] + 64 * blocks, a.size() - 64 * blocks, a.size()),
          finish_message(states[1], data[1] + 64 * blocks, b.size() - 64 * blocks, b.size())};
}

// Lanes go together as far as the shortest message; one lane without a message repeats the first.
static void sha256_in_lanes(std::span<const std::span<const std::byte>> messages, std::span<Digest> digests,
                            Sha256LaneBlocks lanes) {
  uint32_t states[kSha256Lanes][8];
  const uint8_t* data[kSha256Lanes];
  size_t blocks = SIZE_MAX;
  for (size_t i = 0; i < kSha256Lanes; ++i) {
    const std::span<const std::byte> message = messages[i < messages.size() ? i : 0];
    std::memcpy(states[i], kInitial, sizeof kInitial);
    data[i] = reinterpret_cast<const uint8_t*>(message.data());
    blocks = std::min(blocks, message.size() / 64);
  }
  if (blocks > 0) lanes(states, data, blocks);
  for (size_t i = 0; i < messages.size(); ++i)
    digests[i] = finish_message(states[i], data[i] + 64 * blocks, messages[i].size() - 64 * blocks,
                                messages[i].size());
}

void sha256_of_many(std::span<const std::span<const std::byte>> messages, std::span<Digest> digests) {
  static const Sha256LaneBlocks lanes = sha256_lane_blocks_native();
  for (size_t n; !messages.empty(); messages = messages.subspan(n), digests = digests.subspan(n)) {
    n = std::min<size_t>(messages.size(), kSha256Lanes);
    if (lanes && n > kSha256Lanes / 2) {
      sha256_in_lanes(messages.first(n), digests, lanes);
    } else if (n > 1) {
      n = 2;
      const auto both = sha256_of_two(messages[0], messages[1]);
      digests[0] = both[0], digests[1] = both[1];
    } else {
      digests[0] = sha256(messages[0].data(), messages[0].size());
    }
  }
}

Digest merkle_root(std::span<const Digest> leaves) {
  if (leaves.empty()) return sha256("");
  std::vector<Digest> level;
  level.reserve(leaves.size());
  for (const Digest& d : leaves)
    level.push_back(Sha256().update("\0", 1).update(d.data(), d.size()).finish());
  while (level.size() > 1) {
    size_t n = 0;
    for (size_t i = 0; i + 1 < level.size(); i += 2)
      level[n++] =
          Sha256().update("\1", 1).update(level[i].data(), 32).update(level[i + 1].data(), 32).finish();
    if (level.size() % 2 == 1) level[n++] = level.back();
    level.resize(n);
  }
  return level[0];
}

std::string to_hex(const Digest& d) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string s;
  s.reserve(64);
  for (uint8_t b : d) s += kDigits[b >> 4], s += kDigits[b & 15];
  return s;
}

std::optional<Digest> digest_from_hex(std::string_view s) {
  if (s.size() != 64) return std::nullopt;
  Digest d{};
  for (size_t i = 0; i < 64; ++i) {
    int v;
    if (s[i] >= '0' && s[i] <= '9')
      v = s[i] - '0';
    else if (s[i] >= 'a' && s[i] <= 'f')
      v = s[i] - 'a' + 10;
    else
      return std::nullopt;
    d[i / 2] = static_cast<uint8_t>(d[i / 2] << 4 | v);
  }
  return d;
}

}  // namespace invar
