// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::of;

TEST(Exp, SpecExamples) {                                  // spec/functions.md functions.2
  EXPECT_EQ(of(reference::exp, 0x3f800000), 0x402df854u);  // e
  EXPECT_EQ(of(reference::exp, 0x80000000), 0x3f800000u);  // exp(-0) = 1
  EXPECT_EQ(of(reference::exp, 0x33000000), 0x3f800000u);  // 2^-25: below half an ulp of 1
  EXPECT_EQ(of(reference::exp, 0x33800000), 0x3f800001u);  // 2^-24: 2^-49 above the tie
  EXPECT_EQ(of(reference::exp, 0x42b17217), 0x7f7fff84u);  // the largest finite result
  EXPECT_EQ(of(reference::exp, 0x42b17218), 0x7f800000u);
  EXPECT_EQ(of(reference::exp, 0xc2cff1b4), 0x00000001u);  // the smallest
  EXPECT_EQ(of(reference::exp, 0xc2cff1b5), 0x00000000u);
  EXPECT_EQ(of(reference::exp, 0x7f800000), 0x7f800000u);
  EXPECT_EQ(of(reference::exp, 0xff800000), 0x00000000u);
  for (uint32_t nan : testing::kNans) EXPECT_EQ(of(reference::exp, nan), kNan);
}

}  // namespace
}  // namespace invar::num
