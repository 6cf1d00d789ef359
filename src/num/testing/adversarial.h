// Test inputs that expose wrong orders and wrong rounding rules. The same on every machine:
// integers only.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace invar::num::testing {

struct SplitMix {
  uint64_t state;
  uint64_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
};

enum class Kind {
  near_one,    // exponents -2 ... 1, both signs: every rounding matters
  wide,        // exponents -30 ... 30
  cancelling,  // wide, and each second value nearly cancels the one before
  tiny,        // products and sums underflow; subnormals; both zeros
  special,     // wide, with NaN, infinity, -0 and subnormals among them
};

inline std::vector<float> adversarial(Kind kind, size_t n, uint64_t seed) {
  SplitMix next{seed};
  std::vector<float> x(n);
  auto make = [&](int low, int high) {  // |x| in [2^low, 2^(high+1))
    uint64_t r = next();
    uint32_t exponent = 127u + static_cast<uint32_t>(low) +
                        static_cast<uint32_t>(r >> 32) % static_cast<uint32_t>(high - low + 1);
    return std::bit_cast<float>(static_cast<uint32_t>(r & 0x807fffffu) | exponent << 23);
  };
  const uint32_t specials[] = {0x7fc00000, 0xffc00001, 0x7f800001, 0x7f800000, 0xff800000,
                               0x80000000, 0x00000000, 0x00000001, 0x807fffff, 0x7f7fffff};
  for (size_t i = 0; i < n; ++i) {
    switch (kind) {
      case Kind::near_one: x[i] = make(-2, 1); break;
      case Kind::wide: x[i] = make(-30, 30); break;
      case Kind::cancelling:
        x[i] =
            i % 2
                ? std::bit_cast<float>(std::bit_cast<uint32_t>(-x[i - 1]) ^ static_cast<uint32_t>(next() & 7))
                : make(-30, 30);
        break;
      case Kind::tiny:
        x[i] =
            next() % 4 ? make(-100, -60) : std::bit_cast<float>(static_cast<uint32_t>(next()) & 0x80ffffffu);
        break;
      case Kind::special:
        x[i] = next() % 64 ? make(-30, 30) : std::bit_cast<float>(specials[next() % 10]);
        break;
    }
  }
  return x;
}

constexpr Kind kKinds[] = {Kind::near_one, Kind::wide, Kind::cancelling, Kind::tiny, Kind::special};

}  // namespace invar::num::testing
