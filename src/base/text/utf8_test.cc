// UTF-8: ill-formed and incomplete sequences.
#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace invar {
namespace {

std::string lossy(std::string_view bytes) {
  std::string out;
  EXPECT_EQ(append_lossy(out, bytes, false), bytes.size());
  return out;
}

TEST(Utf8, EveryScalarValueRoundTrips) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
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

}  // namespace
}  // namespace invar
