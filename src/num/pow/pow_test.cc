#include "num/pow/pow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "num/convert/convert.h"

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

}  // namespace
}  // namespace invar::num
