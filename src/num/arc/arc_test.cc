// All 2^32 inputs are the matter of invar_prove; here what a reader may want to see at once.
#include <gtest/gtest.h>

#include "num/convert/convert.h"
#include "num/reference.h"

namespace invar::num {
namespace {

uint32_t asin_of(uint32_t u) {
  return f32_bits(reference::asin(f32_from_bits(u)));
}
uint32_t acos_of(uint32_t u) {
  return f32_bits(reference::acos(f32_from_bits(u)));
}
uint32_t atan_of(uint32_t u) {
  return f32_bits(reference::atan(f32_from_bits(u)));
}

TEST(Arc, SineAndCosineSpecExamples) {  // spec/functions.md functions.32
  EXPECT_EQ(asin_of(0x3f800000), 0x3fc90fdbu);
  EXPECT_EQ(asin_of(0x3f000000), 0x3f060a92u);
  EXPECT_EQ(asin_of(0x80000000), 0x80000000u);
  EXPECT_EQ(asin_of(0x00000001), 0x00000001u);
  EXPECT_EQ(acos_of(0x3f800000), 0x00000000u);
  EXPECT_EQ(acos_of(0xbf800000), 0x40490fdbu);
  EXPECT_EQ(acos_of(0x3f000000), 0x3f860a92u);
  EXPECT_EQ(acos_of(0xbf000000), 0x40060a92u);
  EXPECT_EQ(acos_of(0x80000000), 0x3fc90fdbu);
  EXPECT_EQ(acos_of(0x328885a3), 0x3fc90fdbu);  // listed in arc.h, and the next
  EXPECT_EQ(acos_of(0x328885a4), 0x3fc90fdau);
  for (uint32_t u :
       {0x3f800001u, 0xbf800001u, 0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x7f800001u, 0xffc00000u}) {
    float s = reference::asin(f32_from_bits(u)), c = reference::acos(f32_from_bits(u));
    EXPECT_NE(s, s);
    EXPECT_NE(c, c);
  }
}

TEST(Arc, TangentSpecExamples) {  // spec/functions.md functions.33
  EXPECT_EQ(atan_of(0x3f800000), 0x3f490fdbu);
  EXPECT_EQ(atan_of(0x3f000000), 0x3eed6338u);
  EXPECT_EQ(atan_of(0x80000000), 0x80000000u);
  EXPECT_EQ(atan_of(0x00000001), 0x00000001u);
  EXPECT_EQ(atan_of(0x3d8d6b23), 0x3d8d31c3u);  // listed in arc.h
  EXPECT_EQ(atan_of(0x4c700517), 0x3fc90fdau);
  EXPECT_EQ(atan_of(0x4c700518), 0x3fc90fdbu);
  EXPECT_EQ(atan_of(0x7f800000), 0x3fc90fdbu);
  EXPECT_EQ(atan_of(0xff800000), 0xbfc90fdbu);
  float y = reference::atan(f32_from_bits(0xffc00000));
  EXPECT_NE(y, y);
}

TEST(Arc, OfTwoArguments) {  // spec/functions.md functions.34
  auto of = [](uint32_t y, uint32_t x) {
    return f32_bits(reference::atan2(f32_from_bits(y), f32_from_bits(x)));
  };
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
      EXPECT_EQ(asin_of(u) ^ 0x80000000u, asin_of(u | 0x80000000u));
    }
    EXPECT_EQ(atan_of(u) ^ 0x80000000u, atan_of(u | 0x80000000u));
  }
}

}  // namespace
}  // namespace invar::num
