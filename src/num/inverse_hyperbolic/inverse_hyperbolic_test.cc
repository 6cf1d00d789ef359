// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::of;

struct InverseHyperbolicCase {
  uint32_t x, asinh, acosh, atanh;
};

TEST(HyperbolicInverse, SpecExamples) {  // spec/functions.md functions.24, functions.25
  for (InverseHyperbolicCase r : {InverseHyperbolicCase{0x3f800000, 0x3f61a1b3, 0x00000000, 0x7f800000},
                                  {0xbf800000, 0xbf61a1b3, kNan, 0xff800000},
                                  {0x33800000, 0x33800000, kNan, 0x33800000},
                                  {0x80000000, 0x80000000, kNan, 0x80000000},
                                  {0x00000001, 0x00000001, kNan, 0x00000001},
                                  {0x7f7fffff, 0x42b2d4fc, 0x42b2d4fc, kNan},
                                  {0x3f800001, 0x3f61a1b4, 0x3a000000, kNan},
                                  {0x3f7fffff, 0x3f61a1b2, kNan, 0x410aa123},
                                  {0xbf000000, 0xbef66165, kNan, 0xbf0c9f54},
                                  {0x3e800000, 0x3e7d67d9, kNan, 0x3e82c578},
                                  {0x42c80000, 0x40a98c05, 0x40a98b9c, kNan},
                                  {0x7f800000, 0x7f800000, 0x7f800000, kNan},
                                  {0xff800000, 0xff800000, kNan, kNan},
                                  {0x7f800001, kNan, kNan, kNan},
                                  {0xffffffff, kNan, kNan, kNan}}) {
    EXPECT_EQ(of(reference::asinh, r.x), r.asinh) << std::hex << r.x;
    EXPECT_EQ(of(reference::acosh, r.x), r.acosh) << std::hex << r.x;
    EXPECT_EQ(of(reference::atanh, r.x), r.atanh) << std::hex << r.x;
  }
}

// Nearer to the middle of two numbers than binary64 can tell.
TEST(HyperbolicInverse, HardInputs) {
  EXPECT_EQ(of(reference::asinh, 0xe55890d3), 0xc254d1f9u);
  EXPECT_EQ(of(reference::acosh, 0x6eb1a8ec), 0x42845a89u);
}

}  // namespace
}  // namespace invar::num
