// The strict JSON parser: what it accepts, keeps and refuses.
#include "base/text/json.h"

#include <gtest/gtest.h>

#include <utility>

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
  EXPECT_NE(error(std::string(100000, '[')).find("nested deeper than 512 levels"), std::string::npos);
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

TEST(Json, NumbersAreReadAndSpelled) {
  EXPECT_EQ(
      dump(*read("[1.50, 1e5, 1e15, 1e16, 0.00001, -0.0, 18446744073709551615, 18446744073709551616]", "f")),
      "[1.5,100000.0,1e+15,1e+16,1e-05,-0.0,18446744073709551615,1.8446744073709552e+19]");
  EXPECT_FALSE(read("[1e400]", "f"));
  EXPECT_EQ(parse("1e-400", "f")->to_double(), 0);
  EXPECT_EQ(dump({{"infinite", 1e308 * 10}, {"whole", -1}, {"flag", true}}),
            "{\"infinite\":null,\"whole\":-1,\"flag\":true}");
  EXPECT_EQ(Value(1), Value(1.0));
  EXPECT_NE(Value(1), Value(true));
  EXPECT_FALSE(parse("-1", "f")->is_unsigned());
  EXPECT_EQ(Value(UINT64_MAX).to_uint64(), UINT64_MAX);
}

TEST(Json, MembersOfOneNameAndTheirOrder) {
  const char* text = "\xef\xbb\xbf{\"b\": 1, \"a\": {\"z\": 1, \"y\": []}, \"b\": 2}";
  EXPECT_EQ(dump(*read(text, "f")), "{\"a\":{\"y\":[],\"z\":1},\"b\":2}");
  const Value written = *read(text, "f", Order::as_written);
  EXPECT_EQ(dump(written), "{\"b\":2,\"a\":{\"z\":1,\"y\":[]}}");
  EXPECT_EQ(written, *read(text, "f"));
  EXPECT_EQ(*repeated_name(*parse(text + 3, "f")), "b");
  EXPECT_EQ(repeated_name(written), nullptr);
  EXPECT_EQ(dump(written, {.indent = 1}), "{\n \"b\": 2,\n \"a\": {\n  \"z\": 1,\n  \"y\": []\n }\n}");
  EXPECT_TRUE(written.get("none").is_null());
}

TEST(Json, AnyBytesCanBeWritten) {
  EXPECT_EQ(dump("\xff\xe2\x82q"), "\"\xef\xbf\xbd\xef\xbf\xbdq\"");
  EXPECT_EQ(dump("\xc3\xa9\xf0\x9f\x8e\xad\x7f\n", {.ascii = true}), "\"\\u00e9\\ud83c\\udfad\\u007f\\n\"");
}

TEST(Json, FailuresCountTheBytesOfTheWrongToken) {
  for (const auto& [text, byte] : {std::pair{"", 1}, {"{\"a\" 123}", 8}, {"[1 \"xy\"]", 7}, {"trux", 4}}) {
    Failure failure;
    EXPECT_FALSE(parse(text, "f", &failure));
    EXPECT_EQ(failure.byte, static_cast<size_t>(byte)) << text;
  }
}

}  // namespace
}  // namespace invar::json
