// The strict JSON parser: what it accepts, keeps and refuses.
#include "base/text/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <utility>

#include "base/text/utf8.h"

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
  EXPECT_EQ(parse("[1", "f").error().kind, ErrorKind::not_json);
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
  EXPECT_EQ(error(std::string(1000000, '0')), "f:1:1: not JSON: a number must not start with 0");
}

TEST(Json, LevelsAreBounded) {
  for (const auto& [open, close] : {std::pair{"[", "]"}, {"{\"a\":", "}"}}) {
    std::string text = "1";
    for (int i = 0; i < kMostLevels; ++i) text = open + text + close;
    const auto deepest = read(text, "f");
    ASSERT_TRUE(deepest) << deepest.error().message;
    EXPECT_EQ(dump(sorted(*deepest)), text);
    EXPECT_EQ(*deepest, *parse(text, "f"));
    EXPECT_NE(error(open + text + close).find("nested deeper than 512 levels"), std::string::npos);
  }
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

// Values that a seed chooses come back equal from every form of text.
TEST(Json, EveryFormReadsBack) {
  uint64_t state = 1;
  const auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  const auto text = [&] {
    std::string s;
    for (uint64_t n = draw(5); n > 0; --n) {
      const uint64_t c = draw(3) ? draw(0x80) : draw(0x110000);
      append_utf8(s, static_cast<uint32_t>(c >= 0xd800 && c < 0xe000 ? 0xfffd : c));
    }
    return s;
  };
  const auto value = [&](const auto& self, int levels) -> Value {
    switch (draw(levels > 0 ? 8 : 6)) {
      case 0: return {};
      case 1: return draw(2) == 0;
      case 2: return static_cast<int64_t>(draw(1u << 31) << 32 | draw(1u << 31)) - INT32_MAX;
      case 3: return std::bit_cast<double>(draw(1u << 31) << 33 | draw(1u << 31));
      case 4: return UINT64_MAX - draw(1000);
      case 5: return text();
      case 6: {
        Value list = Value::array;
        for (uint64_t n = draw(4); n > 0; --n) list.add(self(self, levels - 1));
        return list;
      }
      default: {
        Value object = Value::object;
        for (uint64_t n = draw(4); n > 0; --n) object[text()] = self(self, levels - 1);
        return object;
      }
    }
  };
  for (int i = 0; i < 3000; ++i) {
    const Value v = value(value, 4);
    const std::string written = dump(v);
    for (const Form form : {Form{}, {.indent = 0}, {.indent = 3}, {.ascii = true}}) {
      const auto back = read(dump(v, form), "f", Order::as_written);
      ASSERT_TRUE(back) << back.error().message << dump(v, form);
      ASSERT_EQ(*back, v) << written;
      ASSERT_EQ(dump(*back), written);
    }
    ASSERT_EQ(compact(v), written);
    ASSERT_EQ(dump(sorted(v)), dump(*read(written, "f")));
    // Text that is cut or has more after it is refused, but for digits, which are a number as well.
    ASSERT_FALSE(parse(written + "x", "f")) << written;
    if (v.is_structured() || v.is_string()) {
      ASSERT_FALSE(parse(written.substr(0, written.size() - 1), "f")) << written;
    }
  }
}

TEST(Json, SurrogatesMakeOneCharacter) {
  for (const auto& [escaped, utf8] : {std::pair{"\\ud800\\udc00", "\xf0\x90\x80\x80"},
                                      {"\\uDBFF\\uDFFF", "\xf4\x8f\xbf\xbf"},
                                      {"\\ud7ff\\ue000", "\xed\x9f\xbf\xee\x80\x80"}}) {
    const auto v = parse(std::string("\"") + escaped + '"', "f");
    ASSERT_TRUE(v) << escaped;
    EXPECT_EQ(v->text, utf8);
  }
  for (const char* half : {"\\ud83c", "\\ud83cx", "\\ud83c\\ud83c", "\\udfad\\ud83c", "\\ud83c\\n"})
    EXPECT_NE(error(std::string("\"") + half + '"').find("half of a surrogate pair"), std::string::npos)
        << half;
}

TEST(Json, SpelledNumbersAreTheShortest) {
  const std::pair<double, const char*> known[] = {{0.1, "0.1"},
                                                  {1e15, "1e+15"},
                                                  {123456789012345.0, "123456789012345.0"},
                                                  {1e-4, "0.0001"},
                                                  {1e-5, "1e-05"},
                                                  {5e-324, "5e-324"},
                                                  {2e22, "2e+22"},
                                                  {9.5, "9.5"},
                                                  {1.7976931348623157e308, "1.7976931348623157e+308"},
                                                  {1.0 / 3, "0.3333333333333333"},
                                                  {-0.0, "-0.0"},
                                                  {3.0517578125e-05, "3.0517578125e-05"}};
  for (const auto& [value, text] : known) EXPECT_EQ(spelled(value), text);
  EXPECT_EQ(dump(*read("[-0, -0.0, -0e5]", "f")), "[0,-0.0,-0.0]");
  EXPECT_EQ(parse("-0", "f")->text, "-0");
  EXPECT_EQ(Value(0), *parse("-0", "f"));
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
  for (const auto& [text, byte] :
       {std::pair{"", 1}, {"{\"a\" 123}", 8}, {"[1 \"xy\"]", 7}, {"trux", 4}, {"0028", 2}}) {
    Failure failure;
    EXPECT_FALSE(parse(text, "f", &failure));
    EXPECT_EQ(failure.byte, static_cast<size_t>(byte)) << text;
  }
}

}  // namespace
}  // namespace invar::json
