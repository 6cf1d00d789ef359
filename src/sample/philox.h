// Philox4x32-10, the counter-based random number generator of Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3" (SC11). spec/sampling.md sampling.2.
#pragma once

#include <array>
#include <cstdint>

namespace invar::sample {

constexpr std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xd2511f53} * c[0], p1 = uint64_t{0xcd9e8d57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9e3779b9, k[1] += 0xbb67ae85;
  }
  return c;
}

// spec/sampling.md sampling.3: the one random number of a draw.
constexpr uint64_t random_u64(uint64_t seed, uint64_t position, uint64_t stream) {
  auto lo = [](uint64_t x) { return static_cast<uint32_t>(x); };
  auto hi = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  auto r = philox4x32_10({lo(position), hi(position), lo(stream), hi(stream)}, {lo(seed), hi(seed)});
  return uint64_t{r[1]} << 32 | r[0];
}

}  // namespace invar::sample
