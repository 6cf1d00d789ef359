// The strict JSON parser: what it accepts, keeps and refuses.
#include "base/text/json.h"

#include <gtest/gtest.h>

namespace invar::json {
namespace {

std::string error(std::string_view text) {
  auto v = parse(text, "f");
  return v ? "parsed" : v.error().message;
}

TEST(Json, Kinds) {
  auto v = parse(" {\"a\": [null, true, -0.5e+3], \"a\": \"\\u00e9\\ud83c\\udfad\\n\\/\"} ", "f");
  ASSERT_TRUE(v);
  ASSERT_EQ(v->members.size(), 2u);  // both of the same name
  const Value& list = v->members[0].second;
  ASSERT_EQ(list.items.size(), 3u);
  EXPECT_EQ(list.items[0].kind, Value::null);
  EXPECT_EQ(list.items[1].text, "true");
  EXPECT_EQ(list.items[2].text, "-0.5e+3");
  EXPECT_EQ(v->members[1].second.text, "\xc3\xa9\xf0\x9f\x8e\xad\n/");
}

TEST(Json, ErrorsSayLineAndColumn) {
  EXPECT_EQ(error("{\n  \"a\": 1,\n  b}"), "f:3:3: not JSON: expected a member's name in quotes");
  EXPECT_EQ(error(""), "f:1:1: not JSON: the text ends here; expected a value");
  EXPECT_EQ(error("[1"), "f:1:3: not JSON: the text ends here; expected ',' or ']'");
  EXPECT_EQ(error("[1]x"), "f:1:4: not JSON: only white space may follow the value");
}

TEST(Json, TheNumberOfValuesIsBounded) {
  std::string most = "[";
  for (size_t i = 1; i < kMostValues; ++i) most += "0,";
  most.back() = ']';
  EXPECT_EQ(error(most), "parsed");
  most.back() = ',';
  EXPECT_EQ(error(most + "0]"),
            "f:1:" + std::to_string(most.size() + 1) + ": more than 4194304 values in one text");
  EXPECT_EQ(parse(most + "0]", "f").error().kind, ErrorKind::other);
  EXPECT_EQ(parse(most, "f").error().kind, ErrorKind::not_json);
}

TEST(Json, Refusals) {
  for (const char* bad : {"01",
                          "-",
                          "1.",
                          ".5",
                          "1e",
                          "+1",
                          "tru",
                          "nul",
                          "NaN",
                          "[1,]",
                          "{,}",
                          "{\"a\" 1}",
                          "{\"a\":1,}",
                          "\"",
                          "\"\\x\"",
                          "\"\\u12g4\"",
                          "\"\\ud800\"",
                          "\"\\ud800\\u0041\"",
                          "\"\\udc00\"",
                          "\"\n\"",
                          "\"\xff\"",
                          "\"\xc0\x80\"",
                          "\"\xed\xa0\x80\"",
                          "\"\xf4\x90\x80\x80\"",
                          "\"\xe2\x82\"",
                          "\xef\xbb\xbf{}",
                          "[1 2]",
                          "'a'",
                          "{\"a\":1}}"})
    EXPECT_NE(error(bad).find("not JSON"), std::string::npos) << bad;
  EXPECT_NE(error(std::string(100000, '[')).find("nested deeper than 32 levels"), std::string::npos);
}

TEST(Json, QuoteRoundTrips) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xad";
  auto v = parse(quote(all), "f");
  ASSERT_TRUE(v);
  EXPECT_EQ(v->text, all);
  EXPECT_EQ(quote("a\"\\\b\f\n\r\t\x1f\x7f/"), "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u001f\x7f/\"");
  EXPECT_EQ(quote("\xff\xe2\x82q"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdq\"");
}

}  // namespace
}  // namespace invar::json
