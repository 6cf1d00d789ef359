#include "checkpoint/recipes/attention_parts.h"

#include <gtest/gtest.h>

namespace invar::checkpoint {
namespace {

using Floats = std::vector<float>;

// decoder.26; the numbers of heads that are no power of two as in the paper's program.
TEST(LinearBiasesTest, SlopesAreGeometric) {
  EXPECT_EQ(linear_bias_slopes(8, 8, 1),
            (Floats{0.5f, 0.25f, 0.125f, 0.0625f, 0x1p-5f, 0x1p-6f, 0x1p-7f, 0x1p-8f}));
  EXPECT_EQ(linear_bias_slopes(4, 8, 2), (Floats{0.5f, 0.125f, 0x1p-5f, 0x1p-7f}));
  EXPECT_EQ(linear_bias_slopes(6, 8, 1), (Floats{0.25f, 0.0625f, 0x1p-6f, 0x1p-8f, 0.5f, 0.125f}));
  EXPECT_EQ(linear_bias_slopes(3, 8, 1), (Floats{0x1p-4f, 0x1p-8f, 0x1p-2f}));
  EXPECT_EQ(linear_bias_slopes(1, 4, 1), (Floats{0x1p-4f}));
}

}  // namespace
}  // namespace invar::checkpoint
