// Text for terminals: what stays visible and what is escaped.
#include "base/text/display.h"

#include <gtest/gtest.h>

#include "base/text/utf8.h"

namespace invar {
namespace {

TEST(Display, VisibleTextStays) {
  for (const char* text : {"plain 'quoted' \\ \"text\"", "naïve café", "Straße", "Ελλάδα", "Кириллица",
                           "עברית", "العربية", "हिन्दी", "ไทย", "日本語", "한국어", "\U0001F600", "a\u00A0b",
                           "e\u0301", "\u2764\uFE0F", "\u845B\U000E0100"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
    EXPECT_EQ(printable_json(text), text);
  }
}

TEST(Display, WhatATerminalObeysOrHidesIsEscaped) {
  const struct {
    const char *text, *shown;
  } cases[] = {{"\x1b[2J\nVERIFIED  r.json", "\\x1b[2J\\x0aVERIFIED  r.json"},
               {"a\tb\rc\x7f", "a\\x09b\\x0dc\\x7f"},
               {"\u009b31m", "\\u{9b}31m"},
               {"\u202Etxt.exe", "\\u{202e}txt.exe"},
               {"\u2066x\u2069", "\\u{2066}x\\u{2069}"},
               {"a\u2028b\u2029c", "a\\u{2028}b\\u{2029}c"},
               {"a\u200Bb\u200Dc\uFEFF", "a\\u{200b}b\\u{200d}c\\u{feff}"},
               {"\U000E0041", "\\u{e0041}"},
               {"caf\xe9", "caf\\xe9"},
               {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
               {"\xe2\x80", "\\xe2\\x80"},
               {"\x9b", "\\x9b"}};
  for (const auto& c : cases) {
    EXPECT_EQ(printable(c.text), c.shown);
    EXPECT_EQ(printable(printable(c.text)), c.shown);
  }
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Display, NoCodePointLeavesTheLine) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    const bool control =
        c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    if (control) {
      EXPECT_EQ(printable(text)[0], '\\') << std::hex << c;
      const bool stays = c == '\n' || c == '\t';
      EXPECT_EQ(printable_lines(text) == text, stays) << std::hex << c;
      EXPECT_EQ(printable_json(text) == text, stays) << std::hex << c;
    }
  }
}

TEST(Display, LinesKeepWhatScriptsAreWrittenWith) {
  const std::string persian = "می\u200Cخواهم", family = "\U0001F468\u200D\U0001F469";
  EXPECT_EQ(printable_lines("a\n\tb " + persian + family), "a\n\tb " + persian + family);
  EXPECT_EQ(printable_lines("\x1b]0;x\x07\r\u202E"), "\\x1b]0;x\\x07\\x0d\\u{202e}");
}

TEST(Display, JsonKeepsItsMeaning) {
  EXPECT_EQ(printable_json("{\"a\": \"\u202E\u009B\x7f\U000E0041\"}\n"),
            "{\"a\": \"\\u202e\\u009b\\u007f\\udb40\\udc41\"}\n");
  EXPECT_EQ(printable_json("\"\xff\""), "\"\\ufffd\"");
}

TEST(Display, ExcerptsAreShortAndOneLine) {
  EXPECT_EQ(excerpt("a\nb\x1B\xFF\u0085\u00E9"), "a\\x0ab\\x1b\\xff\\u{85}\u00E9");
  EXPECT_LT(excerpt(std::string(100000, 'x')).size(), 200u);
  std::string long_text;
  for (int i = 0; i < 1000; ++i) long_text += "日本";
  EXPECT_EQ(excerpt(long_text, 32).find("\\x"), std::string::npos) << excerpt(long_text, 32);
  EXPECT_EQ(excerpt(std::string(400, '\x80')).find("[...]") != std::string::npos, true);
}

TEST(Display, ItemsStandBelowTheirLine) {
  Error e = bad_input("g: 2 nodes:\n  forged");
  e.items = {"one\ntwo", "three"};
  EXPECT_EQ(printable(e), "g: 2 nodes:\\x0a  forged\n  one\\x0atwo\n  three");
}

}  // namespace
}  // namespace invar
