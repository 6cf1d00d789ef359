// Normalization form C: known compositions and orders.
#include <gtest/gtest.h>

#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

TEST(Nfc, ComposesAndOrders) {
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("a\u0315\u0300\u05AE\u0300b"), "\u00E0\u05AE\u0300\u0315b");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\uAC00\u11A8\u11A8"), "\uAC01\u11A8");
  EXPECT_EQ(nfc("\u212B"), "\u00C5");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");  // excluded from composition
  EXPECT_EQ(nfc("\u1E0B\u0323"), "\u1E0D\u0307");
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");
  EXPECT_EQ(nfc("\u0301e"), "\u0301e");
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");  // younger than the tables (tokens.2)
  EXPECT_EQ(nfc("plain"), "plain");
}

}  // namespace
}  // namespace invar::prompt
