// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::kNans;
using testing::of;

TEST(Erf, Erf) {  // spec/functions.md functions.8
  EXPECT_EQ(of(reference::erf, 0x3f800000), 0x3f57bb3du);
  EXPECT_EQ(of(reference::erf, 0xbf800000), 0xbf57bb3du);
  EXPECT_EQ(of(reference::erf, 0x80000000), 0x80000000u);  // -0 stays
  EXPECT_EQ(of(reference::erf, 0x00000001), 0x00000001u);
  EXPECT_EQ(of(reference::erf, 0x33800000), 0x33906ebbu);
  EXPECT_EQ(of(reference::erf, 0x407ad444), 0x3f7fffffu);
  EXPECT_EQ(of(reference::erf, 0x407ad445), 0x3f800000u);
  EXPECT_EQ(of(reference::erf, 0x7f800000), 0x3f800000u);
  EXPECT_EQ(of(reference::erf, 0xff800000), 0xbf800000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::erf, nan), kNan);
}

TEST(Erf, Erfc) {  // spec/functions.md functions.8
  EXPECT_EQ(of(reference::erfc, 0x3f800000), 0x3e21130bu);
  EXPECT_EQ(of(reference::erfc, 0xbf800000), 0x3febdd9fu);
  EXPECT_EQ(of(reference::erfc, 0x80000000), 0x3f800000u);
  EXPECT_EQ(of(reference::erfc, 0x33000000), 0x3f7fffffu);
  EXPECT_EQ(of(reference::erfc, 0xb3000001), 0x3f800000u);
  EXPECT_EQ(of(reference::erfc, 0xb3800000), 0x3f800001u);
  EXPECT_EQ(of(reference::erfc, 0x4120ddfb), 0x00000001u);  // the smallest
  EXPECT_EQ(of(reference::erfc, 0x4120ddfc), 0x00000000u);
  EXPECT_EQ(of(reference::erfc, 0xc07547ca), 0x3fffffffu);
  EXPECT_EQ(of(reference::erfc, 0xc07547cb), 0x40000000u);
  EXPECT_EQ(of(reference::erfc, 0x7f800000), 0x00000000u);
  EXPECT_EQ(of(reference::erfc, 0xff800000), 0x40000000u);
  for (uint32_t nan : kNans) EXPECT_EQ(of(reference::erfc, nan), kNan);
}

}  // namespace
}  // namespace invar::num
