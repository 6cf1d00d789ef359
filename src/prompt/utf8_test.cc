#include "prompt/utf8.h"

#include <gtest/gtest.h>

#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

std::string lossy(std::string_view bytes) {
  std::string out;
  EXPECT_EQ(append_lossy(out, bytes, false), bytes.size());
  return out;
}

TEST(Utf8, EveryScalarValueRoundTrips) {
  for (uint32_t c = 0; c <= kLastCodePoint; ++c) {
    std::string s;
    append_utf8(s, c);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(valid_prefix(s), surrogate ? 0 : s.size()) << std::hex << c;
    size_t at = 0;
    ASSERT_EQ(decode_utf8(s, at), c);
    ASSERT_EQ(at, s.size());
    ASSERT_EQ(previous_utf8(s, s.size()), 0u);
  }
}

TEST(Utf8, ValidPrefixNamesTheFirstBadByte) {
  EXPECT_EQ(valid_prefix(""), 0u);
  EXPECT_EQ(valid_prefix("abcdefgh\xFF"), 8u);
  EXPECT_EQ(valid_prefix("abc\xC3"), 3u);
  EXPECT_EQ(valid_prefix("\xC3\xA9\xC0\xAF"), 2u);    // overlong
  EXPECT_EQ(valid_prefix("a\xED\xA0\x80"), 1u);       // surrogate
  EXPECT_EQ(valid_prefix("ab\xF4\x90\x80\x80"), 2u);  // above U+10FFFF
}

// The Unicode Standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8, OneReplacementPerMaximalSubpart) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(lossy("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(lossy("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

TEST(Utf8, IncompleteEndWaits) {
  std::string out;
  EXPECT_EQ(append_lossy(out, "a\xF0\x9F\x98", true), 1u);
  EXPECT_EQ(out, "a");
  EXPECT_EQ(append_lossy(out, "\xF0\x9F\x98\x80", true), 4u);
  EXPECT_EQ(out, "a\U0001F600");
}

TEST(Utf8, ShownIsOneShortLine) {
  EXPECT_EQ(shown("a\nb\x1B\xFF\u0085\u00E9"), "a\\x0ab\\x1b\\xff\\xc2\\x85\u00E9");
  EXPECT_LT(shown(std::string(100000, 'x')).size(), 200u);
}

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
