// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::of;

struct RootCase {
  uint32_t x, sqrt, rsqrt, cbrt;
};

TEST(Root, SpecExamples) {  // spec/functions.md functions.22, functions.23
  for (RootCase r : {RootCase{0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000},
                     {0x33800000, 0x39800000, 0x45800000, 0x3b800000},
                     {0x80000000, 0x80000000, 0xff800000, 0x80000000},
                     {0x00000000, 0x00000000, 0x7f800000, 0x00000000},
                     {0x00000001, 0x1a3504f3, 0x64b504f3, 0x26a14518},
                     {0x7f7fffff, 0x5f7fffff, 0x1f800000, 0x54cb2ff5},
                     {0x40000000, 0x3fb504f3, 0x3f3504f3, 0x3fa14518},
                     {0x42c80000, 0x41200000, 0x3dcccccd, 0x409487e5},
                     {0xc1000000, kNan, kNan, 0xc0000000},  // -8
                     {0x80000001, kNan, kNan, 0xa6a14518},
                     {0x7f800000, 0x7f800000, 0x00000000, 0x7f800000},
                     {0xff800000, kNan, kNan, 0xff800000},
                     {0x7f800001, kNan, kNan, kNan},
                     {0xffffffff, kNan, kNan, kNan}}) {
    EXPECT_EQ(of(reference::sqrt, r.x), r.sqrt) << std::hex << r.x;
    EXPECT_EQ(of(reference::rsqrt, r.x), r.rsqrt) << std::hex << r.x;
    EXPECT_EQ(of(reference::cbrt, r.x), r.cbrt) << std::hex << r.x;
  }
}

TEST(Root, ExactResults) {
  for (int i = 1; i <= 4096; ++i) {
    float x = static_cast<float>(i);
    EXPECT_EQ(reference::sqrt(x * x), x);
    if (i > 256) continue;
    EXPECT_EQ(reference::cbrt(x * x * x), x);
    EXPECT_EQ(reference::cbrt(-x * x * x), -x);
  }
}

}  // namespace
}  // namespace invar::num
