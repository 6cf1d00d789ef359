// invar_prove tests all 2^32 inputs; these tests show selected values.
#include <gtest/gtest.h>

#include "num/reference.h"
#include "num/testing/bits.h"

namespace invar::num {
namespace {

using testing::kNan;
using testing::of;

struct LogCase {
  uint32_t x, log, log2, log10, log1p;
};

TEST(Log, SpecExamples) {  // spec/functions.md functions.20, functions.21
  for (LogCase r : {LogCase{0x3f800000, 0, 0, 0, 0x3f317218},
                    {0x33800000, 0xc1851592, 0xc1c00000, 0xc0e730e8, 0x33800000},
                    {0x80000000, 0xff800000, 0xff800000, 0xff800000, 0x80000000},
                    {0x00000001, 0xc2ce8ed0, 0xc3150000, 0xc23369f4, 0x00000001},
                    {0x7f7fffff, 0x42b17218, 0x43000000, 0x421a209b, 0x42b17218},
                    {0x3f800001, 0x33ffffff, 0x3438aa3a, 0x335e5bd8, 0x3f317219},
                    {0x3f7fffff, 0xb3800000, 0xb3b8aa3c, 0xb2de5bd9, 0x3f317217},
                    {0x42c80000, 0x40935d8e, 0x40d49a78, 0x40000000, 0x4093af11},  // 100
                    {0xbf000000, kNan, kNan, kNan, 0xbf317218},
                    {0xbf7fffff, kNan, kNan, kNan, 0xc1851592},
                    {0xbf800000, kNan, kNan, kNan, 0xff800000},
                    {0xbf800001, kNan, kNan, kNan, kNan},
                    {0x00000000, 0xff800000, 0xff800000, 0xff800000, 0},
                    {0x7f800000, 0x7f800000, 0x7f800000, 0x7f800000, 0x7f800000},
                    {0xff800000, kNan, kNan, kNan, kNan},
                    {0x7f800001, kNan, kNan, kNan, kNan},
                    {0xffffffff, kNan, kNan, kNan, kNan}}) {
    EXPECT_EQ(of(reference::log, r.x), r.log) << std::hex << r.x;
    EXPECT_EQ(of(reference::log2, r.x), r.log2) << std::hex << r.x;
    EXPECT_EQ(of(reference::log10, r.x), r.log10) << std::hex << r.x;
    EXPECT_EQ(of(reference::log1p, r.x), r.log1p) << std::hex << r.x;
  }
}

TEST(Log, ExactResults) {
  for (int e = -126; e <= 127; ++e)
    EXPECT_EQ(reference::log2(f32_from_bits(static_cast<uint32_t>(e + 127) << 23)), static_cast<float>(e));
  float power = 1;
  for (int e = 0; e <= 10; ++e, power *= 10) EXPECT_EQ(reference::log10(power), static_cast<float>(e));
}

// Nearer to the middle of two numbers than binary64 can tell.
TEST(Log, HardInputs) {
  EXPECT_EQ(of(reference::log, 0x41178feb), 0x400fe5e7u);
  EXPECT_EQ(of(reference::log10, 0x0efeee7a), 0xc1e99d23u);
  EXPECT_EQ(of(reference::log1p, 0x35400003), 0x353fffffu);
}

}  // namespace
}  // namespace invar::num
