// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::of;

TEST(Tan, SpecExamples) {  // spec/functions.md functions.30
  EXPECT_EQ(of(reference::tan, 0x3f800000), 0x3fc75923u);
  EXPECT_EQ(of(reference::tan, 0x80000000), 0x80000000u);
  EXPECT_EQ(of(reference::tan, 0x80000001), 0x80000001u);
  EXPECT_EQ(of(reference::tan, 0x3fc90fdb), 0xcbae8a4au);  // the neighbours of pi/2
  EXPECT_EQ(of(reference::tan, 0x3fc90fda), 0x4b4a1bdau);
  EXPECT_EQ(of(reference::tan, 0x7f7fffff), 0xbf1c9ecau);
  for (uint32_t u : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffc00000u})
    EXPECT_EQ(of(reference::tan, u), kNan);
}

TEST(Tan, Odd) {
  for (uint32_t u = 0; u < 0x7f800000u; u += 0x1fff7)
    EXPECT_EQ(of(reference::tan, u) ^ 0x80000000u, of(reference::tan, u | 0x80000000u));
}

}  // namespace
}  // namespace invar::num
