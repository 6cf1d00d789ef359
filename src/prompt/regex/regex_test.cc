// Regular expressions: matches and refusals.
#include "prompt/regex/regex.h"
#include "prompt/regex/replace.h"

#include <gtest/gtest.h>

#include "base/text/utf8.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

// Every match from left to right, as "begin-end" joined with spaces.
std::string matches(std::string_view pattern, std::string_view text) {
  auto r = Regex::pattern(pattern);
  if (!r) return r.error().message;
  Regex::Scratch scratch;
  scratch.steps = 1'000'000;
  std::string out;
  for (size_t at = 0; at <= text.size();) {
    auto m = r->find(text, at, scratch);
    if (!m) break;
    out += (out.empty() ? "" : " ") + std::to_string(m->begin) + "-" + std::to_string(m->end);
    at = m->end > m->begin ? m->end : m->end + 1;
  }
  return scratch.steps < 0 ? "gave up" : out;
}

TEST(Regex, TakesTheFirstBranchThatLeadsToAMatch) {
  EXPECT_EQ(matches("a|ab", "abab"), "0-1 2-3");
  EXPECT_EQ(matches("(?:a|ab)c", "abc ac"), "0-3 4-6");
  EXPECT_EQ(matches("a(?:b|bc|bcd)d", "abcd abd"), "0-4 5-8");
}

TEST(Regex, RunsGiveBackUnlessPossessive) {
  EXPECT_EQ(matches("a+ab", "aaab"), "0-4");
  EXPECT_EQ(matches("a++ab", "aaab"), "");
  EXPECT_EQ(matches("a+?", "aaa"), "0-1 1-2 2-3");
  EXPECT_EQ(matches("a{2,3}a", "aaaaaa"), "0-4");
  EXPECT_EQ(matches("(?>a|ab)c", "abc"), "");
  EXPECT_EQ(matches("(?:ab){2,}?a", "ababababa"), "0-5");
  EXPECT_EQ(matches("\\s+(?!\\S)|\\s+", "  x \xE3\x80\x80 \n"), "0-1 1-2 3-9");
}

TEST(Regex, PlusAfterBracesRepeatsOnceMore) {
  EXPECT_EQ(matches("\\p{N}{1,3}+", "12345"), "0-5");
  EXPECT_EQ(matches("\\p{N}{1,3}", "12345"), "0-3 3-5");
}

TEST(Regex, LetterCase) {
  EXPECT_EQ(matches("(?i:'s)", "'s'S'\u017F's"), "0-2 2-4 4-7 7-9");
  EXPECT_EQ(matches("(?i:k)", "kK\u212A"), "0-1 1-2 2-5");
  EXPECT_EQ(matches("'s", "'S's"), "2-4");
  EXPECT_EQ(matches("(?i:[^s])", "sS\u017Ft"), "4-5");
  EXPECT_EQ(matches("(?i:a)a", "AaAA"), "0-2");
}

TEST(Regex, Classes) {
  EXPECT_EQ(matches("[a-c&&[^b]]", "abc"), "0-1 2-3");
  EXPECT_EQ(matches("[^\\r\\n\\p{L}]", "a\r\n1\u4E2D"), "3-4");
  EXPECT_EQ(matches("[-a]|[b-]", "-ab"), "0-1 1-2 2-3");
  EXPECT_EQ(matches("[\\]\\\\^-]", "]\\^-"), "0-1 1-2 2-3 3-4");
  EXPECT_EQ(matches("\\p{Cn}", "\u0378\u0379a"), "0-2 2-4");
  EXPECT_EQ(matches("\\w", "\u00B2\u200D_\u0301"), "0-2 5-6 6-8");
}

TEST(Regex, Places) {
  EXPECT_EQ(matches("^a", "a\naa"), "0-1 2-3");
  EXPECT_EQ(matches("a$", "a\naa"), "0-1 3-4");
  EXPECT_EQ(matches("\\Aa|a\\z", "a\naa"), "0-1 3-4");
}

TEST(Regex, RefusesByName) {
  for (auto [pattern, what] : std::initializer_list<std::pair<const char*, const char*>>{
           {"(?<=a)b", "look-behind"},
           {"(a)\\1", "this escape"},
           {"\\bword", "this escape"},
           {"[[:alpha:]]", "bracket name"},
           {"(?:a?)*", "can match nothing"},
           {"\\p{Greek}", "property Greek"},
           {"(?i:\\p{Lu})", "property Lu where case is ignored"},
           {"(?i:gro\u00DF)", "not ASCII where case is ignored"},
           {"(?i:ss)", "ligature"},
           {"(?x: a)", "this kind of group"},
           {"a**", "repeated repeat"},
           {"a{2}?", "{n}?"},
           {"a{9999}", "this interval"},
           {"[b-a]", "this range"},
           {"[a-\\d]", "this range"},
           {"[]", "empty class"},
           {"[a", "without ]"},
           {"(a", "missing )"},
           {"a)", "unmatched )"},
           {"*a", "quantifier of nothing"},
           {"a\\", "trailing backslash"},
           {"((a{999}){999}){999}", "too large"}}) {
    auto r = Regex::pattern(pattern);
    ASSERT_FALSE(r) << pattern;
    EXPECT_EQ(r.error().code, Code::not_covered) << pattern;
    EXPECT_NE(r.error().message.find(what), std::string::npos) << pattern << ": " << r.error().message;
  }
}

TEST(Regex, GivesUpInsteadOfHanging) {
  EXPECT_EQ(matches("(?:a|aa)+(?:a|aa)+b", std::string(200, 'a')), "gave up");
  EXPECT_EQ(matches("a*a*a*b", std::string(5000, 'a')), "gave up");
}

TEST(Regex, LongTextNeedsNoStack) {
  const std::string spaces(3'000'000, ' ');
  auto r = Regex::pattern("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
  ASSERT_TRUE(r);
  Regex::Scratch scratch;
  scratch.steps = 40'000'000;
  auto m = r->find(spaces + "x", 0, scratch);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->end, spaces.size() - 1);
}

TEST(CharSet, AgreesWithItsBitmap) {
  CharSet letters;
  ASSERT_TRUE(CharSet::property("L", letters));
  for (const CharSet& set :
       {letters, ~letters, CharSet::white_space(), CharSet::all(), CharSet(),
        letters & CharSet({{0x100, 0x20FF}}), CharSet({{0xFF, 0x100}, {0x10FFFF, 0x10FFFF}})}) {
    const Bitmap map(set);
    for (uint32_t c = 0; c <= kLastCodePoint; ++c) {
      ASSERT_EQ(map.contains(c), set.contains(c)) << std::hex << c;
      if (c < 128) {
        ASSERT_EQ(map.ascii(static_cast<uint8_t>(c)), set.contains(c));
      }
    }
    EXPECT_EQ(~~set, set);
    EXPECT_TRUE((set & ~set).empty());
    EXPECT_EQ(set | ~set, CharSet::all());
  }
}

TEST(CharSet, CategoriesPartitionUnicode) {
  CharSet all, some;
  uint64_t count = 0;
  for (std::string_view name : kCategoryNames) {
    ASSERT_TRUE(CharSet::property(name, some));
    EXPECT_TRUE((all & some).empty()) << name;
    all = all | some;
    for (const Range& r : some.ranges()) count += r.last - r.first + 1;
  }
  EXPECT_EQ(all, CharSet::all());
  EXPECT_EQ(count, kLastCodePoint + 1u);
  ASSERT_TRUE(CharSet::property("Cn", some));
  count = 0;
  for (const Range& r : some.ranges()) count += r.last - r.first + 1;
  EXPECT_EQ(
      count,
      819533u);  // Unicode 16.0: 1114112 - 154998 characters - 2048 surrogates - 137468 private - 65 controls
}

TEST(Regex, APatternIsUtf8) {
  const auto r = Regex::pattern("[\xc3");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::bad_input);
  EXPECT_EQ(r.error().message, "not UTF-8 at byte 1");
}

TEST(Regex, ReplacementsDoNotFillTheMemory) {
  Regex::Scratch scratch;
  for (const auto make : {Replacement::literal, Replacement::pattern}) {
    const auto r = make("a", std::string(1 << 20, 'x'));
    std::string few, many;
    EXPECT_TRUE(r->apply("aaaa", few, scratch));
    const auto refused = r->apply(std::string(1000, 'a'), many, scratch);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::not_covered);
    EXPECT_LT(many.size(), size_t{20} << 20);
  }
}

TEST(Regex, ARangeThatEndsThePatternIsRefused) {
  for (const char* pattern : {"[a-", "(p[La-", "[", "[^", "[a", "[\\p{L}-", "[a-z&&", "\\"})
    EXPECT_FALSE(Regex::pattern(pattern)) << pattern;
}

}  // namespace
}  // namespace invar::prompt
