// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::kNans;
using testing::of;

TEST(Hyperbolic, Sinh) {  // spec/functions.md functions.7
  EXPECT_EQ(of(reference::sinh, 0x3f800000), 0x3f966cfeu);
  EXPECT_EQ(of(reference::sinh, 0xbf800000), 0xbf966cfeu);
  EXPECT_EQ(of(reference::sinh, 0x80000000), 0x80000000u);  // -0 stays
  EXPECT_EQ(of(reference::sinh, 0x00000001), 0x00000001u);
  EXPECT_EQ(of(reference::sinh, 0x3a1285ff), 0x3a1285ffu);  // 2^-54 below a tie
  EXPECT_EQ(of(reference::sinh, 0x42b2d4fc), 0x7f7fffecu);  // the largest finite result
  EXPECT_EQ(of(reference::sinh, 0x42b2d4fd), 0x7f800000u);
  EXPECT_EQ(of(reference::sinh, 0x7f800000), 0x7f800000u);
  EXPECT_EQ(of(reference::sinh, 0xff800000), 0xff800000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::sinh, nan), kNan);
}

TEST(Hyperbolic, Cosh) {  // spec/functions.md functions.7
  EXPECT_EQ(of(reference::cosh, 0x3f800000), 0x3fc583abu);
  EXPECT_EQ(of(reference::cosh, 0xbf800000), 0x3fc583abu);
  EXPECT_EQ(of(reference::cosh, 0x80000000), 0x3f800000u);
  EXPECT_EQ(of(reference::cosh, 0x00000001), 0x3f800000u);
  EXPECT_EQ(of(reference::cosh, 0xc2b2d4fc), 0x7f7fffecu);  // the largest finite result
  EXPECT_EQ(of(reference::cosh, 0x42b2d4fd), 0x7f800000u);
  EXPECT_EQ(of(reference::cosh, 0x7f800000), 0x7f800000u);
  EXPECT_EQ(of(reference::cosh, 0xff800000), 0x7f800000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::cosh, nan), kNan);
}

TEST(Hyperbolic, Tanh) {  // spec/functions.md functions.7
  EXPECT_EQ(of(reference::tanh, 0x3f800000), 0x3f42f7d6u);
  EXPECT_EQ(of(reference::tanh, 0xbf800000), 0xbf42f7d6u);
  EXPECT_EQ(of(reference::tanh, 0x80000000), 0x80000000u);  // -0 stays
  EXPECT_EQ(of(reference::tanh, 0x00000001), 0x00000001u);
  EXPECT_EQ(of(reference::tanh, 0x41102cb3), 0x3f7fffffu);
  EXPECT_EQ(of(reference::tanh, 0x41102cb4), 0x3f800000u);
  EXPECT_EQ(of(reference::tanh, 0x7f800000), 0x3f800000u);
  EXPECT_EQ(of(reference::tanh, 0xff800000), 0xbf800000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::tanh, nan), kNan);
}

}  // namespace
}  // namespace invar::num
