// Tests of the conversion between bytes, hexadecimal text and integers.
#include "compiler/dialects/constant_data.h"

#include <gtest/gtest.h>

namespace invar::compiler {
namespace {

TEST(Bytes, Hexadecimal) {
  std::string all(256, '\0');
  for (int i = 0; i < 256; ++i) all[i] = static_cast<char>(i);
  EXPECT_EQ(hex_from_bytes("\x01\xaf"), "01af");
  EXPECT_EQ(bytes_from_hex(hex_from_bytes(all)), all);
  EXPECT_FALSE(bytes_from_hex("0"));
  EXPECT_FALSE(bytes_from_hex("0g"));
  EXPECT_FALSE(bytes_from_hex("AF"));
}

TEST(Bytes, Integers) {
  EXPECT_EQ(integers_from_bytes(*bytes_from_hex("ffffffff00000080ffffff7f"), 4),
            (std::vector<int64_t>{-1, INT32_MIN, INT32_MAX}));
  EXPECT_EQ(integers_from_bytes(*bytes_from_hex("feffffffffffffff0000000000000080"), 8),
            (std::vector<int64_t>{-2, INT64_MIN}));
}

}  // namespace
}  // namespace invar::compiler
