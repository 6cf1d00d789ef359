// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::of;

TEST(Arc, SineAndCosineSpecExamples) {  // spec/functions.md functions.32
  EXPECT_EQ(of(reference::asin, 0x3f800000), 0x3fc90fdbu);
  EXPECT_EQ(of(reference::asin, 0x3f000000), 0x3f060a92u);
  EXPECT_EQ(of(reference::asin, 0x80000000), 0x80000000u);
  EXPECT_EQ(of(reference::asin, 0x00000001), 0x00000001u);
  EXPECT_EQ(of(reference::acos, 0x3f800000), 0x00000000u);
  EXPECT_EQ(of(reference::acos, 0xbf800000), 0x40490fdbu);
  EXPECT_EQ(of(reference::acos, 0x3f000000), 0x3f860a92u);
  EXPECT_EQ(of(reference::acos, 0xbf000000), 0x40060a92u);
  EXPECT_EQ(of(reference::acos, 0x80000000), 0x3fc90fdbu);
  EXPECT_EQ(of(reference::acos, 0x328885a3), 0x3fc90fdbu);  // listed in inverse_trig.h, and the next
  EXPECT_EQ(of(reference::acos, 0x328885a4), 0x3fc90fdau);
  for (uint32_t u :
       {0x3f800001u, 0xbf800001u, 0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x7f800001u, 0xffc00000u}) {
    EXPECT_EQ(of(reference::asin, u), kNan);
    EXPECT_EQ(of(reference::acos, u), kNan);
  }
}

TEST(Arc, TangentSpecExamples) {  // spec/functions.md functions.33
  EXPECT_EQ(of(reference::atan, 0x3f800000), 0x3f490fdbu);
  EXPECT_EQ(of(reference::atan, 0x3f000000), 0x3eed6338u);
  EXPECT_EQ(of(reference::atan, 0x80000000), 0x80000000u);
  EXPECT_EQ(of(reference::atan, 0x00000001), 0x00000001u);
  EXPECT_EQ(of(reference::atan, 0x3d8d6b23), 0x3d8d31c3u);  // listed in inverse_trig.h
  EXPECT_EQ(of(reference::atan, 0x4c700517), 0x3fc90fdau);
  EXPECT_EQ(of(reference::atan, 0x4c700518), 0x3fc90fdbu);
  EXPECT_EQ(of(reference::atan, 0x7f800000), 0x3fc90fdbu);
  EXPECT_EQ(of(reference::atan, 0xff800000), 0xbfc90fdbu);
  EXPECT_EQ(of(reference::atan, 0xffc00000), kNan);
}

TEST(Arc, OfTwoArguments) {  // spec/functions.md functions.34
  auto of = [](uint32_t y, uint32_t x) { return testing::of(reference::atan2, y, x); };
  for (uint32_t s : {0u, 0x80000000u}) {
    EXPECT_EQ(of(s, 0x00000000), s);
    EXPECT_EQ(of(s, 0x80000000), 0x40490fdbu | s);
    EXPECT_EQ(of(s, 0x3f800000), s);
    EXPECT_EQ(of(s, 0xbf800000), 0x40490fdbu | s);
    EXPECT_EQ(of(0x00000001 | s, 0x00000000), 0x3fc90fdbu | s);
    EXPECT_EQ(of(0x3f800000 | s, 0x80000000), 0x3fc90fdbu | s);
    EXPECT_EQ(of(0x3f800000 | s, 0x3f800000), 0x3f490fdbu | s);
    EXPECT_EQ(of(0x3f800000 | s, 0xbf800000), 0x4016cbe4u | s);
    EXPECT_EQ(of(0x7f800000 | s, 0x7f800000), 0x3f490fdbu | s);
    EXPECT_EQ(of(0x7f800000 | s, 0xff800000), 0x4016cbe4u | s);
    EXPECT_EQ(of(0x7f800000 | s, 0x3f800000), 0x3fc90fdbu | s);
    EXPECT_EQ(of(0x7f800000 | s, 0xff7fffff), 0x3fc90fdbu | s);
    EXPECT_EQ(of(0x3f800000 | s, 0x7f800000), s);
    EXPECT_EQ(of(0x3f800000 | s, 0xff800000), 0x40490fdbu | s);
    EXPECT_EQ(of(0x00000001 | s, 0x40000000), s);                // half the smallest, a hair below the tie
    EXPECT_EQ(of(0x00000003 | s, 0x40000000), 0x00000001u | s);  // 3/2 of it, likewise
    EXPECT_EQ(of(0x00000001 | s, 0x7f7fffff), s);
    for (uint32_t nan : {0x7f800001u, 0xffc00000u}) {
      EXPECT_EQ(of(nan, 0x3f800000 | s), 0x7fc00000u);
      EXPECT_EQ(of(0x00000000 | s, nan), 0x7fc00000u);
    }
  }
}

TEST(Arc, Odd) {
  for (uint32_t u = 0; u <= 0x7f800000u; u += 0x1fff7) {
    if (u <= 0x3f800000) {
      EXPECT_EQ(of(reference::asin, u) ^ 0x80000000u, of(reference::asin, u | 0x80000000u));
    }
    EXPECT_EQ(of(reference::atan, u) ^ 0x80000000u, of(reference::atan, u | 0x80000000u));
  }
}

}  // namespace
}  // namespace invar::num
