// pow against selected values, exact cases and ties.
#include "num/pow/pow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

TEST(Pow, ExactResultsAndTies) {
  EXPECT_EQ(pow_cr(10000.0f, 0.5f), 100.0f);
  EXPECT_EQ(pow_cr(2.0f, -149.0f), 0x1p-149f);
  EXPECT_EQ(pow_cr(2.0f, -150.0f), 0.0f);         // a tie: even
  EXPECT_EQ(pow_cr(2.0f, -149.5f), 0x1p-149f);    // 0.71 of the smallest subnormal
  EXPECT_EQ(pow_cr(4097.0f, 2.0f), 16785408.0f);  // 16785409 is a tie: 25 bits
  EXPECT_EQ(pow_cr(4099.0f, 2.0f), 16801800.0f);  // 16801801 likewise
  EXPECT_EQ(pow_cr(16785409.0f / 16785408.0f, 0.0f), 1.0f);
  EXPECT_EQ(pow_cr(7.0f, 0.0f), 1.0f);
  EXPECT_EQ(pow_cr(1.0f, 3.4e38f), 1.0f);
  EXPECT_EQ(pow_cr(2.0f, 128.0f), INFINITY);
  EXPECT_EQ(pow_cr(0x1p-149f, 1.0f), 0x1p-149f);
}

TEST(Pow, OutsideTheDomainIsNaN) {
  for (float x : {0.0f, -1.0f, INFINITY, NAN}) EXPECT_EQ(f32_bits(pow_cr(x, 2.0f)), 0x7fc00000u);
  for (float y : {INFINITY, NAN}) EXPECT_EQ(f32_bits(pow_cr(2.0f, y)), 0x7fc00000u);
}

TEST(Pow, RotaryFrequencies) {  // theta 10000, head dimension 64: 10000^-(2i/64)
  EXPECT_EQ(f32_bits(inverse_frequency(10000.0f, 0.0f)), 0x3f800000u);
  EXPECT_EQ(f32_bits(inverse_frequency(10000.0f, 2.0f / 64)), 0x3f3ff911u);
  EXPECT_EQ(f32_bits(inverse_frequency(10000.0f, 62.0f / 64)), 0x390bd472u);
}

// Over lanes: the special cases of IEEE 754-2019 clause 9.2.1 (spec/functions.md functions.26).
TEST(PowOverLanes, SpecialCases) {
  constexpr float inf = INFINITY;
  const float nan = NAN;
  auto is = [](float x, float y, float r) {
    EXPECT_EQ(testing::id(reference::pow(x, y)), testing::id(r)) << x << " ^ " << y;
  };
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf, nan, 0x1p-149f, -2.5f})
    for (float zero : {0.0f, -0.0f}) is(x, zero, 1);
  for (float y : {inf, -inf, nan, 0.3f, -7.0f, 0x1p-149f}) is(1, y, 1);
  is(0.0f, -3, inf), is(-0.0f, -3, -inf), is(0.0f, -inf, inf), is(-0.0f, -inf, inf);
  is(0.0f, -2, inf), is(-0.0f, -2, inf), is(-0.0f, -2.5f, inf), is(-0.0f, -0x1p24f, inf);
  is(-0.0f, -16777215.0f, -inf);
  is(0.0f, 3, 0.0f), is(-0.0f, 3, -0.0f), is(-0.0f, 2, 0.0f), is(-0.0f, 0.5f, 0.0f), is(-0.0f, inf, 0.0f);
  is(-1, inf, 1), is(-1, -inf, 1), is(-1, 16777215.0f, -1), is(-1, 16777216.0f, 1), is(-1, 0.5f, nan);
  is(0.5f, inf, 0), is(-0.5f, inf, 0), is(2, inf, inf), is(-2, inf, inf);
  is(0.5f, -inf, inf), is(-0.5f, -inf, inf), is(2, -inf, 0), is(-2, -inf, 0);
  is(inf, 2, inf), is(inf, -2, 0), is(inf, 0x1p-149f, inf), is(inf, -0x1p-149f, 0);
  is(-inf, 3, -inf), is(-inf, 2, inf), is(-inf, 0.5f, inf), is(-inf, -3, -0.0f), is(-inf, -2.5f, 0.0f);
  is(-8, 0x1.555556p-2f, nan), is(-2, 3, -8), is(-2, -2, 0.25f), is(-2, 1.5f, nan);
  is(nan, 2, nan), is(2, nan, nan), is(-1, nan, nan), is(nan, nan, nan), is(nan, inf, nan);
  is(2, 128, inf), is(-2, 129, -inf), is(2, -149, 0x1p-149f), is(2, -150, 0), is(-2, -151, -0.0f);
  is(0x1.fffffep127f, 0x1.fffffep127f, inf), is(0x1.fffffep127f, -0x1.fffffep127f, 0);
  is(4097, 2, 16785408.0f), is(-4099, 2, 16801800.0f);  // ties: the fallback
}

}  // namespace
}  // namespace invar::num
