// All 2^32 inputs are the matter of invar_prove; here what a reader may want to see at once.
#include <gtest/gtest.h>

#include "num/convert/convert.h"
#include "num/reference.h"

namespace invar::num {
namespace {

uint32_t sinpi_of(uint32_t u) {
  return f32_bits(reference::sinpi(f32_from_bits(u)));
}
uint32_t cospi_of(uint32_t u) {
  return f32_bits(reference::cospi(f32_from_bits(u)));
}

TEST(SinPi, SpecExamples) {  // spec/functions.md functions.31
  EXPECT_EQ(sinpi_of(0x3e800000), 0x3f3504f3u);
  EXPECT_EQ(cospi_of(0x3e800000), 0x3f3504f3u);
  EXPECT_EQ(sinpi_of(0x00000001), 0x00000003u);  // pi 2^-149
  EXPECT_EQ(cospi_of(0x00000001), 0x3f800000u);
  EXPECT_EQ(sinpi_of(0x3fc00000), 0xbf800000u);
  EXPECT_EQ(sinpi_of(0x3f800001), 0xb4c90fdbu);
  for (uint32_t u : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffc00000u}) {
    float s = reference::sinpi(f32_from_bits(u)), c = reference::cospi(f32_from_bits(u));
    EXPECT_NE(s, s);
    EXPECT_NE(c, c);
  }
}

TEST(SinPi, IntegersAndHalves) {  // the signs of zeros: IEEE 754-2019, 9.2.1
  for (uint32_t n : {0u, 1u, 2u, 3u, 7u, 8388607u, 8388608u, 8388609u, 16777215u, 16777216u, 16777218u}) {
    uint32_t u = f32_bits(static_cast<float>(n));
    EXPECT_EQ(sinpi_of(u), 0u) << n;
    EXPECT_EQ(sinpi_of(u | 0x80000000u), 0x80000000u) << n;
    EXPECT_EQ(cospi_of(u), n % 2 ? 0xbf800000u : 0x3f800000u) << n;
    EXPECT_EQ(cospi_of(u | 0x80000000u), cospi_of(u)) << n;
  }
  for (uint32_t n : {0u, 1u, 2u, 5u, 4194303u, 8388607u}) {
    uint32_t u = f32_bits(static_cast<float>(n) + 0.5f);
    EXPECT_EQ(cospi_of(u), 0u) << n;
    EXPECT_EQ(cospi_of(u | 0x80000000u), 0u) << n;
    EXPECT_EQ(sinpi_of(u), n % 2 ? 0xbf800000u : 0x3f800000u) << n;
  }
  EXPECT_EQ(sinpi_of(0x7f7fffff), 0u);
  EXPECT_EQ(sinpi_of(0xff7fffff), 0x80000000u);
  EXPECT_EQ(cospi_of(0x7f7fffff), 0x3f800000u);
}

}  // namespace
}  // namespace invar::num
