// Quotients through the reciprocal of the divisor equal division and the store rule.
#include "num/quotient/quotient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "num/convert/convert.h"

namespace invar::num {
namespace {

uint32_t by_division(float x, float s) {
  return f32_bits(portable::canonicalize(portable::F{x / s}).v);
}
uint32_t by_quotient(float x, float s) {
  return f32_bits(portable::canonicalize(portable::quotient({x}, portable::divisor({s}))).v);
}
// Sums: powers of two, their neighbours, all mantissas ones, and what rows of many lengths have.
std::vector<float> sums() {
  std::vector<float> s;
  for (int e = 0; e < 60; ++e)
    for (float m : {1.0f, 0x1.000002p+0f, 0x1.5p+0f, 0x1.555556p+0f, 0x1.fffffcp+0f, 0x1.fffffep+0f})
      s.push_back(std::ldexp(m, e));
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i)
    s.push_back(
        std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f, static_cast<int>(random() % 60)));
  return s;
}

TEST(Quotient, IsDivisionUnderTheStoreRule) {
  std::mt19937 random(2);
  for (float s : sums()) {
    ASSERT_EQ(by_quotient(0.0f, s), 0u) << s;
    ASSERT_EQ(by_quotient(1.0f, s), by_division(1.0f, s)) << s;
    for (int i = 0; i < 2000; ++i) {
      const float x = f32_from_bits(0x00800000 + random() % (0x3f800001 - 0x00800000));
      ASSERT_EQ(by_quotient(x, s), by_division(x, s)) << std::hexfloat << x << " / " << s;
    }
  }
}

// About where results become subnormal, division rounds twice as coarsely as above.
TEST(Quotient, IsDivisionWhereResultsVanish) {
  for (float s : sums()) {
    const uint32_t edge = f32_bits(std::fmax(0x1p-126f, s * 0x1p-126f));
    for (uint32_t u = edge - 40; u != edge + 40; ++u)
      if (const float x = f32_from_bits(u); x >= 0x1p-126f && x <= 1.0f)
        ASSERT_EQ(by_quotient(x, s), by_division(x, s)) << std::hexfloat << x << " / " << s;
  }
}

// Quotients nearest to a midpoint of two results: x = (q + 1/2) s modulo small remainders, for
// short s.
TEST(Quotient, IsDivisionNextToMidpoints) {
  for (uint32_t s = 0x800001; s < 0x1000000; s += 0x1237)
    for (uint32_t m : {0x800001u, 0x923457u, 0xabcdefu, 0xc00001u, 0xfffffdu}) {
      const uint64_t middle = (2 * uint64_t{m} + 1) * s;  // of 48 or 49 bits
      const int shift = 64 - __builtin_clzll(middle) - 24;
      for (int64_t off = -1; off <= 1; ++off) {
        const auto x = static_cast<float>(((middle >> shift) + off) * 0x1p-26);
        const auto divisor = static_cast<float>(s) * 0x1p-23f;
        ASSERT_EQ(by_quotient(x, divisor), by_division(x, divisor)) << x << " / " << divisor;
      }
    }
}

TEST(Quotient, NaNStays) {
  EXPECT_EQ(by_quotient(0.5f, NAN), 0x7fc00000u);
}

}  // namespace
}  // namespace invar::num
