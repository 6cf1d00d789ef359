// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::of;

TEST(SinCos, SpecExamples) {  // spec/functions.md functions.3
  EXPECT_EQ(of(reference::sin, 0x3f800000), 0x3f576aa4u);
  EXPECT_EQ(of(reference::cos, 0x3f800000), 0x3f0a5140u);
  EXPECT_EQ(of(reference::sin, 0x80000000), 0x80000000u);
  EXPECT_EQ(of(reference::cos, 0x80000000), 0x3f800000u);
  EXPECT_EQ(of(reference::sin, 0x00000001), 0x00000001u);
  EXPECT_EQ(of(reference::sin, 0x7f7fffff), 0xbf0599b3u);
  EXPECT_EQ(of(reference::cos, 0x7f7fffff), 0x3f5a5f96u);
  for (uint32_t u : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffc00000u}) {
    EXPECT_EQ(f32_bits(reference::sin(f32_from_bits(u))), 0x7fc00000u);  // this one NaN
    EXPECT_EQ(f32_bits(reference::cos(f32_from_bits(u))), 0x7fc00000u);
  }
}

TEST(SinCos, OddAndEven) {
  for (uint32_t u = 0; u < 0x7f800000u; u += 0x1fff7) {
    EXPECT_EQ(of(reference::sin, u) ^ 0x80000000u, of(reference::sin, u | 0x80000000u));
    EXPECT_EQ(of(reference::cos, u), of(reference::cos, u | 0x80000000u));
  }
}

}  // namespace
}  // namespace invar::num
