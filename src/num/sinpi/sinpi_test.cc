// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::of;

TEST(SinPi, SpecExamples) {  // spec/functions.md functions.31
  EXPECT_EQ(of(reference::sinpi, 0x3e800000), 0x3f3504f3u);
  EXPECT_EQ(of(reference::cospi, 0x3e800000), 0x3f3504f3u);
  EXPECT_EQ(of(reference::sinpi, 0x00000001), 0x00000003u);  // pi 2^-149
  EXPECT_EQ(of(reference::cospi, 0x00000001), 0x3f800000u);
  EXPECT_EQ(of(reference::sinpi, 0x3fc00000), 0xbf800000u);
  EXPECT_EQ(of(reference::sinpi, 0x3f800001), 0xb4c90fdbu);
  for (uint32_t u : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffc00000u}) {
    EXPECT_EQ(of(reference::sinpi, u), kNan);
    EXPECT_EQ(of(reference::cospi, u), kNan);
  }
}

TEST(SinPi, IntegersAndHalves) {  // the signs of zeros: IEEE 754-2019, 9.2.1
  for (uint32_t n : {0u, 1u, 2u, 3u, 7u, 8388607u, 8388608u, 8388609u, 16777215u, 16777216u, 16777218u}) {
    uint32_t u = f32_bits(static_cast<float>(n));
    EXPECT_EQ(of(reference::sinpi, u), 0u) << n;
    EXPECT_EQ(of(reference::sinpi, u | 0x80000000u), 0x80000000u) << n;
    EXPECT_EQ(of(reference::cospi, u), n % 2 ? 0xbf800000u : 0x3f800000u) << n;
    EXPECT_EQ(of(reference::cospi, u | 0x80000000u), of(reference::cospi, u)) << n;
  }
  for (uint32_t n : {0u, 1u, 2u, 5u, 4194303u, 8388607u}) {
    uint32_t u = f32_bits(static_cast<float>(n) + 0.5f);
    EXPECT_EQ(of(reference::cospi, u), 0u) << n;
    EXPECT_EQ(of(reference::cospi, u | 0x80000000u), 0u) << n;
    EXPECT_EQ(of(reference::sinpi, u), n % 2 ? 0xbf800000u : 0x3f800000u) << n;
  }
  EXPECT_EQ(of(reference::sinpi, 0x7f7fffff), 0u);
  EXPECT_EQ(of(reference::sinpi, 0xff7fffff), 0x80000000u);
  EXPECT_EQ(of(reference::cospi, 0x7f7fffff), 0x3f800000u);
}

}  // namespace
}  // namespace invar::num
