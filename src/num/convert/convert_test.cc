// Every 16-bit pattern widened, and binary32 numbers narrowed, against definitions by value.
#include "num/convert/convert.h"

#include <gtest/gtest.h>

#include <cmath>

namespace invar::num {
namespace {

// The value of a 16-bit pattern by its definition, and the nearest pattern by comparison of
// distances: independent of the bit manipulation under test. Doubles hold all of this exactly.
double value(uint16_t h, int exponent_bits) {
  int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = (h & 0x7fff) >> fraction_bits, fraction = h & ((1 << fraction_bits) - 1);
  double v = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                           : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  return h >> 15 ? -v : v;
}
uint16_t nearest(float x, int exponent_bits) {
  int fraction_bits = 15 - exponent_bits;
  uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  double a = std::abs(static_cast<double>(x));
  uint16_t low = 0, high = infinity;  // value(infinity) continues the scale: the next power of two
  while (high - low > 1) {
    uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (value(middle, exponent_bits) <= a ? low : high) = middle;
  }
  if (a >= value(infinity, exponent_bits)) return sign | infinity;
  double below = a - value(low, exponent_bits), above = value(high, exponent_bits) - a;
  return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

TEST(Convert, WideningIsExactForEveryPattern) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    uint16_t u = static_cast<uint16_t>(h);
    if ((h & 0x7fff) < 0x7f80) {
      EXPECT_EQ(f32_bits(f32_from_bf16(u)), f32_bits(static_cast<float>(value(u, 8))));
    }
    if ((h & 0x7fff) < 0x7c00) {
      EXPECT_EQ(f32_bits(f32_from_f16(u)), f32_bits(static_cast<float>(value(u, 5))));
    }
  }
  EXPECT_EQ(f32_bits(f32_from_f16(0xfc00)), 0xff800000u);
  EXPECT_TRUE(std::isnan(f32_from_f16(0x7c01)) && std::isnan(f32_from_f16(0xfe00)) &&
              std::isnan(f32_from_bf16(0x7f81)));
}

TEST(Convert, NarrowingIsNearestEven) {
  // Every f16 and bf16 boundary lies on a multiple of 2^12 in these bits, or is a subnormal f16:
  // look at each side.
  for (uint64_t base = 0; base < 0x100000000; base += INVAR_EMULATED ? 0x11000 : 0x1000)
    for (int d = -1; d <= 1; ++d) {
      float x = f32_from_bits(static_cast<uint32_t>(base + static_cast<uint64_t>(d)));
      if (x != x || std::isinf(x)) continue;
      ASSERT_EQ(f16_from_f32(x), nearest(x, 5)) << std::hex << f32_bits(x);
      ASSERT_EQ(bf16_from_f32(x), nearest(canonicalize(x), 8)) << std::hex << f32_bits(x);
    }
}

TEST(Convert, SpecExamples) {  // spec/formats.md formats.2, formats.5, formats.6
  EXPECT_EQ(f32_bits(f32_from_bf16(0x0001)), 0x00010000u);
  EXPECT_EQ(f32_bits(f32_from_f16(0x0001)), 0x33800000u);
  EXPECT_EQ(f32_bits(f32_from_f16(0x83ff)), 0xb87fc000u);
  EXPECT_EQ(bf16_from_f32(f32_from_bits(0x3f808000)), 0x3f80);
  EXPECT_EQ(bf16_from_f32(f32_from_bits(0x3f818000)), 0x3f82);
  EXPECT_EQ(bf16_from_f32(f32_from_bits(0x7f7fffff)), 0x7f80);
  EXPECT_EQ(f16_from_f32(f32_from_bits(0x477fefff)), 0x7bff);
  EXPECT_EQ(f16_from_f32(f32_from_bits(0x477ff000)), 0x7c00);
  EXPECT_EQ(f16_from_f32(f32_from_bits(0x33000000)), 0x0000);
  EXPECT_EQ(f16_from_f32(f32_from_bits(0x33000001)), 0x0001);
  for (uint32_t nan : {0x7f800001u, 0x7fc12345u, 0xff800001u, 0xffffffffu}) {
    EXPECT_EQ(f32_bits(canonicalize(f32_from_bits(nan))), 0x7fc00000u);
    EXPECT_EQ(bf16_from_f32(f32_from_bits(nan)), 0x7fc0);
    EXPECT_EQ(f16_from_f32(f32_from_bits(nan)), 0x7e00);
  }
  EXPECT_EQ(f32_bits(canonicalize(f32_from_bits(0x007fffff))), 0u);
  EXPECT_EQ(f32_bits(canonicalize(f32_from_bits(0x80000001))), 0x80000000u);
  EXPECT_EQ(f32_bits(canonicalize(f32_from_bits(0x00800000))), 0x00800000u);
  EXPECT_EQ(f32_bits(canonicalize(f32_from_bits(0xff800000))), 0xff800000u);
}

}  // namespace
}  // namespace invar::num
