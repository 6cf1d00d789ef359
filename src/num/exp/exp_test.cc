// All 2^32 inputs are the matter of invar_prove; here what a reader may want to see at once.
#include <gtest/gtest.h>

#include "num/convert/convert.h"
#include "num/reference.h"

namespace invar::num {
namespace {

uint32_t exp_of(uint32_t u) {
  return f32_bits(reference::exp(f32_from_bits(u)));
}

TEST(Exp, SpecExamples) {                      // spec/functions.md functions.2
  EXPECT_EQ(exp_of(0x3f800000), 0x402df854u);  // e
  EXPECT_EQ(exp_of(0x80000000), 0x3f800000u);  // exp(-0) = 1
  EXPECT_EQ(exp_of(0x33000000), 0x3f800000u);  // 2^-25: below half an ulp of 1
  EXPECT_EQ(exp_of(0x33800000), 0x3f800001u);  // 2^-24: 2^-49 above the tie
  EXPECT_EQ(exp_of(0x42b17217), 0x7f7fff84u);  // the largest finite result
  EXPECT_EQ(exp_of(0x42b17218), 0x7f800000u);
  EXPECT_EQ(exp_of(0xc2cff1b4), 0x00000001u);  // the smallest
  EXPECT_EQ(exp_of(0xc2cff1b5), 0x00000000u);
  EXPECT_EQ(exp_of(0x7f800000), 0x7f800000u);
  EXPECT_EQ(exp_of(0xff800000), 0x00000000u);
  for (uint32_t nan : {0x7f800001u, 0x7fc00000u, 0xffc00fffu, 0xffffffffu, 0x7fffffffu}) {
    float y = reference::exp(f32_from_bits(nan));
    EXPECT_NE(y, y);
  }
}

}  // namespace
}  // namespace invar::num
