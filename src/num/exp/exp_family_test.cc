// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::kNans;
using testing::of;

TEST(ExpFamily, Exp2) {  // spec/functions.md functions.6
  EXPECT_EQ(of(reference::exp2, 0x3f800000), 0x40000000u);
  EXPECT_EQ(of(reference::exp2, 0x80000000), 0x3f800000u);
  EXPECT_EQ(of(reference::exp2, 0x42ffffff), 0x7f7fffa7u);  // the largest finite result
  EXPECT_EQ(of(reference::exp2, 0x43000000), 0x7f800000u);
  EXPECT_EQ(of(reference::exp2, 0xc3150000), 0x00000001u);  // 2^-149
  EXPECT_EQ(of(reference::exp2, 0xc315ffff), 0x00000001u);  // the smallest
  EXPECT_EQ(of(reference::exp2, 0xc3160000), 0x00000000u);  // 2^-150: a tie
  EXPECT_EQ(of(reference::exp2, 0x3b429d37), 0x3f804385u);  // 2^-53 above a tie
  EXPECT_EQ(of(reference::exp2, 0xbcf3a937), 0x3f7ac6b1u);  // 2^-57 above a tie
  EXPECT_EQ(of(reference::exp2, 0x33800000), 0x3f800000u);
  EXPECT_EQ(of(reference::exp2, 0x7f800000), 0x7f800000u);
  EXPECT_EQ(of(reference::exp2, 0xff800000), 0x00000000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::exp2, nan), kNan);
}

TEST(ExpFamily, Exp10) {  // spec/functions.md functions.6
  EXPECT_EQ(of(reference::exp10, 0x3f800000), 0x41200000u);
  EXPECT_EQ(of(reference::exp10, 0x80000000), 0x3f800000u);
  EXPECT_EQ(of(reference::exp10, 0x40400000), 0x447a0000u);  // 1000
  EXPECT_EQ(of(reference::exp10, 0x41100000), 0x4e6e6b28u);  // 10^9
  EXPECT_EQ(of(reference::exp10, 0x421a209a), 0x7f7fffb3u);  // the largest finite result
  EXPECT_EQ(of(reference::exp10, 0x421a209b), 0x7f800000u);
  EXPECT_EQ(of(reference::exp10, 0xc2349e35), 0x00000001u);  // the smallest
  EXPECT_EQ(of(reference::exp10, 0xc2349e36), 0x00000000u);
  EXPECT_EQ(of(reference::exp10, 0x7f800000), 0x7f800000u);
  EXPECT_EQ(of(reference::exp10, 0xff800000), 0x00000000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::exp10, nan), kNan);
}

TEST(ExpFamily, Expm1) {                                     // spec/functions.md functions.6
  EXPECT_EQ(of(reference::expm1, 0x3f800000), 0x3fdbf0a9u);  // e - 1
  EXPECT_EQ(of(reference::expm1, 0x00000000), 0x00000000u);
  EXPECT_EQ(of(reference::expm1, 0x80000000), 0x80000000u);  // -0 stays
  EXPECT_EQ(of(reference::expm1, 0x00000001), 0x00000001u);
  EXPECT_EQ(of(reference::expm1, 0x33800000), 0x33800000u);
  EXPECT_EQ(of(reference::expm1, 0x42b17217), 0x7f7fff84u);  // the largest finite result
  EXPECT_EQ(of(reference::expm1, 0x42b17218), 0x7f800000u);
  EXPECT_EQ(of(reference::expm1, 0xc18aa122), 0xbf7fffffu);
  EXPECT_EQ(of(reference::expm1, 0xc18aa123), 0xbf800000u);
  EXPECT_EQ(of(reference::expm1, 0x7f800000), 0x7f800000u);
  EXPECT_EQ(of(reference::expm1, 0xff800000), 0xbf800000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::expm1, nan), kNan);
}

}  // namespace
}  // namespace invar::num
