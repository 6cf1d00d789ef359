#include "grammar/grammar.h"

#include <gtest/gtest.h>

#include <random>

namespace invar::grammar {
namespace {

using Tokens = std::vector<std::optional<std::string>>;

std::shared_ptr<const Vocabulary> of(Tokens tokens) {
  return std::make_shared<const Vocabulary>(std::move(tokens));
}
// Token i is the byte i.
std::shared_ptr<const Vocabulary> bytes() {
  Tokens all;
  for (int b = 0; b < 256; ++b) all.emplace_back(std::string(1, static_cast<char>(b)));
  return of(std::move(all));
}
std::shared_ptr<const Constraint> constraint(const std::string& asked,
                                             std::shared_ptr<const Vocabulary> v = bytes()) {
  const auto text = canonical(asked, "test");
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  if (!text) return nullptr;
  EXPECT_TRUE(check(*text));
  auto made = Constraint::make(*text, std::move(v));
  EXPECT_TRUE(made);
  return made ? *made : nullptr;
}
// Whether every byte may come, and then the end.
bool accepts(const Constraint& c, std::string_view text) {
  std::vector<int32_t> answer;
  for (const char byte : text) {
    const auto next = static_cast<int32_t>(static_cast<uint8_t>(byte));
    const auto allowed = c.after(answer);
    if (!allowed || !allowed->has(next)) return false;
    answer.push_back(next);
  }
  const auto allowed = c.after(answer);
  return allowed && allowed->complete;
}

struct Case {
  const char* asked;
  std::vector<std::string> fit, others;
};
void expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto made = constraint(c.asked);
    ASSERT_TRUE(made) << c.asked;
    for (const std::string& text : c.fit) EXPECT_TRUE(accepts(*made, text)) << c.asked << " and " << text;
    for (const std::string& text : c.others) EXPECT_FALSE(accepts(*made, text)) << c.asked << " and " << text;
  }
}

TEST(Grammar, SchemasAcceptTheirValuesInOneForm) {
  expect({
      {R"({"json":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},
          "required":["a"],"additionalProperties":false}})",
       {R"({"a":1})", R"({"a":-20,"b":"x"})"},
       {R"({})", R"({"b":"x"})", R"({"a":1,})", R"({"a": 1})", R"({"b":"x","a":1})", R"({"a":1,"c":2})",
        R"({"a":01})", R"({"a":-0})", R"({"a":1.0})", R"({"a":123456789012345678901})"}},
      {R"({"json":{"type":"object","properties":{"ab":{"type":"null"},"a":{}}}})",
       {"{}", R"({"ab":null})", R"({"abc":[{}]})", R"({"a":1,"b":2,"":true})", R"({"é":1})",
        R"({"ab":null,"a":"x","z":0})"},
       {R"({"ab":1})", R"({"a":1,"ab":null})", R"({"x":1,"a":2})", R"({"\u0061":1})", R"({"x\n":1})"}},
      {R"({"json":{"type":"object","required":["x"],"additionalProperties":{"type":"boolean"}}})",
       {R"({"x":true})", R"({"x":false,"y":true})"},
       {"{}", R"({"y":true})", R"({"x":1})", R"({"y":true,"x":true})"}},
      {R"({"json":{"type":["string","null"],"minLength":2,"maxLength":3}})",
       {R"("ab")", R"("aé€")", R"("😀\n")", R"("\ud83d\ude00a")", R"("\u00e9\"")", "null"},
       {R"("a")", R"("abcd")", R"("\ud83da")", R"("\ude00aa")", "\"a\n\"", "\"a\xff\"", "\"a\xc3\"",
        R"("\x41a")", "\"a\xed\xa0\x80\""}},
      {R"({"json":{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":2}})",
       {"[0]", "[-1.5,2e10]", "[1E-999]"},
       {"[]", "[1,2,3]", "[1, 2]", "[.5]", "[1.]", "[1e1000]", "[+1]"}},
      {R"({"json":{"type":"array","prefixItems":[{"const":"a"},{"const":1}],"items":false,"minItems":1}})",
       {R"(["a"])", R"(["a",1])"},
       {"[]", "[1]", R"(["a",1,2])"}},
      {R"({"json":{"enum":["a",1,null,{"b":[true]}]}})",
       {R"("a")", "1", "null", R"({"b":[true]})"},
       {R"("b")", "2", R"({"b": [true]})"}},
      {R"({"json":{"type":"string","enum":["a",1]}})", {R"("a")"}, {"1"}},
      {R"({"json":{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#"}}]}})",
       {"1", "[]", "[1,[2,[]]]"},
       {R"("a")", "[null]", "[1,]"}},
      {R"({"json":{"$ref":"#/$defs/n~1o","$defs":{"n/o":{"type":"object","properties":{
          "v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n~1o"},{"type":"null"}]}},
          "required":["v","next"],"additionalProperties":false}}}})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1})", R"({"v":1,"next":{}})"}},
      {R"({"json":{"type":"integer","minimum":-12,"exclusiveMaximum":205}})",
       {"-12", "-9", "0", "7", "99", "100", "199", "204"},
       {"-13", "205", "-0", "210", "1000", "00", "-20"}},
      {R"({"json":{"type":"integer","minimum":9223372036854775}})",
       {"9223372036854775", "99999999999999999999"},
       {"9223372036854774", "-1", "0"}},
      {R"({"json":{"type":"string","pattern":"^[a-c\"]{2}\\d?$"}})",
       {R"("ab")", R"("c\"7")"},
       {R"("a")", R"("abc")", R"("\u0061b")", R"("ab77")"}},
      {R"({"json":{"type":"string","pattern":"b+"}})", {R"("b")", R"("abbc\n")"}, {R"("")", R"("ac")"}},
      {R"({"json":true})", {"[]", "{}", "null", R"({"a":[1,{"b":"c"}]})", "0"}, {"", " 1", "nul", "[1"}},
      {R"({"json_object":true})", {"{}", R"({"a":{"b":[]}})"}, {"[]", "1", R"({"a" :1})"}},
  });
}

TEST(Grammar, RegexChoiceAndTools) {
  expect({
      {R"({"regex":"(a|bc)*d{2,3}e+?[^x-z\\s]"})",
       {"ddee", "abcaddde!", "dde€"},
       {"de!", "dddde!", "ddex", "ddee "}},
      {R"({"regex":"\\w+@\\w+\\.com"})", {"ab_1@c.com"}, {"@c.com", "a@c-com", "xa@c.com "}},
      {R"({"regex":"(?:ab){0}c|^.$"})", {"c", "\"", "😀"}, {"abc", "\n", ""}},
      {R"({"choice":["yes","no","not sure"]})", {"yes", "no", "not sure"}, {"", "ye", "not", "yesno"}},
      {R"({"tools":[{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"integer"}},
          "required":["x"],"additionalProperties":false}},{"name":"g"}],"begin":"<t>\n","end":"\n</t>"})",
       {"<t>\n{\"name\":\"f\",\"arguments\":{\"x\":1}}\n</t>",
        "<t>\n{\"name\":\"g\",\"arguments\":{}}\n</t>"},
       {"{\"name\":\"g\",\"arguments\":{}}", "<t>\n{\"name\":\"f\",\"arguments\":{}}\n</t>",
        "<t>\n{\"name\":\"g\",\"arguments\":{}}\n</t>\n<t>\n{\"name\":\"g\",\"arguments\":{}}\n</t>"}},
      {R"({"tools":[{"name":"f"},{"name":"g"}],"several":true,"begin":"<t>","end":"</t>"})",
       {"<t>{\"name\":\"f\",\"arguments\":{}}</t>",
        "<t>{\"name\":\"f\",\"arguments\":{}}</t>\n<t>{\"name\":\"g\",\"arguments\":{}}</t>"},
       {"", "<t>{\"name\":\"f\",\"arguments\":{}}</t>\n", "<t>{\"name\":\"f\",\"arguments\":{}}</t><t>"}},
      {R"({"tools":[{"name":"f"}],"several":true})",
       {R"([{"name":"f","arguments":{}}])", R"([{"name":"f","arguments":{}},{"name":"f","arguments":{}}])"},
       {R"({"name":"f","arguments":{}})", "[]", R"([{"name":"f","arguments":{}},])"}},
  });
}

TEST(Grammar, WhatIsOutsideIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"json":{"type":"string","format":"date"}})", "\"format\""},
      {R"({"json":{"oneOf":[{}]}})", "\"oneOf\""},
      {R"({"json":{"properties":{"a":{"type":"array","uniqueItems":true}}}})", "#/properties/a"},
      {R"({"json":{"type":"number","minimum":0}})", "integer"},
      {R"({"json":{"type":"text"}})", "no type"},
      {R"({"json":{"type":"string","maxLength":5000}})", "4096"},
      {R"({"json":{"type":"array","minItems":300}})", "256"},
      {R"({"json":{"type":"array","minItems":-1}})", "minItems"},
      {R"({"json":{"anyOf":[],"title":"x"}})", "anyOf"},
      {R"({"json":{"anyOf":[{}],"type":"string"}})", "beside"},
      {R"({"json":{"$ref":"#/$defs/none"}})", "there is no"},
      {R"({"json":{"$ref":"http://x"}})", "only a place"},
      {R"({"json":{"$ref":"#"}})", "circle"},
      {R"({"json":{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}})",
       "circle"},
      {R"({"json":{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}})", "no answer fits"},
      {R"({"json":{"type":"string","minLength":3,"maxLength":2}})", "no answer fits"},
      {R"({"json":false})", "no answer fits"},
      {R"({"json":{"type":"object","required":["a"],"additionalProperties":false}})", "no property"},
      {R"-({"json":{"type":"string","pattern":"(?=a)"}})-", "a group"},
      {R"({"json":{"type":"string","pattern":"a$b"}})", "regular expression"},
      {R"({"regex":"\\bx"})", "an escape"},
      {R"-({"regex":"(a"})-", "does not end"},
      {R"({"regex":"*"})", "regular expression"},
      {R"({"regex":"((a{4096}){4096}){4096}"})", "too large"},
      {R"({"regex":"((){4096}){4096}"})", "too large"},
      {R"({"regex":[]})", "a text"},
      {R"({"choice":[]})", "choice"},
      {R"({"choice":["a"],"json":{}})", "one of"},
      {R"({"grammar":2,"choice":["a"]})", "not known"},
      {R"({"json":{},"xml":1})", "xml"},
      {R"({"json":{"type":"null","type":"string"}})", "twice"},
      {R"({"json_object":false})", "true"},
      {R"([])", "object"},
  };
  for (const auto& [asked, why] : cases) {
    const auto text = canonical(asked, "test");
    ASSERT_FALSE(text) << asked;
    EXPECT_EQ(text.error().code, Code::bad_input);
    EXPECT_NE(text.error().message.find(why), std::string::npos) << asked << ": " << text.error().message;
  }
}

TEST(Grammar, OneSpelling) {
  EXPECT_EQ(*canonical(R"({ "json" : { "type" : "string", "maxLength": 4 } })", "x"),
            R"({"grammar":1,"json":{"type":"string","maxLength":4}})");
  EXPECT_EQ(with_reasoning(R"({"grammar":1,"json_object":true})", 7, 8),
            R"({"grammar":1,"json_object":true,"think_start":7,"think_end":8})");
  EXPECT_TRUE(check(R"({"grammar":1,"json_object":true,"think_start":7,"think_end":8})"));
  for (const char* other :
       {R"({"json_object":true})", R"({"grammar":1, "json_object":true})",
        R"({"json_object":true,"grammar":1})", R"({"grammar":1,"json_object":true,"think_start":7})"})
    EXPECT_FALSE(check(other)) << other;
}

TEST(Grammar, LevelsEndAndNoWayIsADeadEnd) {
  const auto c = constraint(R"({"json_object":true})");
  std::string open;
  for (int i = 0; i < 63; ++i) open += R"({"":)";
  EXPECT_TRUE(accepts(*c, open + "{}" + std::string(63, '}')));
  EXPECT_FALSE(accepts(*c, open + R"({"":{)"));
  EXPECT_FALSE(accepts(*c, open + R"({"":{}})" + std::string(63, '}')));
  EXPECT_TRUE(accepts(*c, open + R"({"":1})" + std::string(63, '}')));
}

TEST(Grammar, ReasoningComesFirst) {
  const std::string asked = R"({"grammar":1,"choice":["a"]})";
  Tokens tokens{"a", "b", std::nullopt, std::nullopt};
  const auto may = [&](int32_t start, std::vector<int32_t> answer) {
    const auto c = Constraint::make(with_reasoning(asked, start, 3), of(tokens));
    const auto allowed = (*c)->after(answer);
    std::string all;
    for (int32_t t = 0; t < 4; ++t) all += allowed->has(t) ? '1' : '0';
    return all + (allowed->complete ? "." : "");
  };
  EXPECT_EQ(may(-1, {}), "1111.");
  EXPECT_EQ(may(-1, {1, 1}), "1111.");
  EXPECT_EQ(may(-1, {1, 3}), "1000");
  EXPECT_EQ(may(-1, {3, 0}), "0000.");
  EXPECT_EQ(may(2, {}), "1010");
  EXPECT_EQ(may(2, {2, 1}), "1111.");
  EXPECT_EQ(may(2, {2, 1, 3}), "1000");
  EXPECT_EQ(may(2, {0}), "0000.");
}

// Masks are those of their tokens one by one: trees, plain tokens and what is kept change nothing.
TEST(Grammar, MasksEqualSingleTokens) {
  std::mt19937 random(5);
  const std::string pieces[] = {"a",  "bc",  " ",    "\"",   "\",\"", "\":",      "{",     "}",    "[1", "]",
                                ",",  "é",   "\xc3", "\xa9", "\\",    "\\n",      "\\u00", "0",    "-1", "e",
                                ".5", "tru", "e",    "null", "\n",    "\xf0\x9f", "😀",     "hello"};
  Tokens tokens(1);
  for (int i = 0; i < 400; ++i) {
    std::string t;
    for (unsigned n = 1 + random() % 3; n > 0; --n) t += pieces[random() % std::size(pieces)];
    tokens.emplace_back(i % 50 == 7 ? std::string(70, 'x') : t);
  }
  tokens.emplace_back("");
  for (const std::string& p : pieces) tokens.emplace_back(p);
  const char* asked[] = {
      R"({"json":{"type":"object","properties":{"a":{"type":"string","maxLength":70},"bc":{"type":"array","items":{"type":"number"}}}}})",
      R"({"json":{"type":"array","items":{"type":"string","maxLength":3}}})", R"({"json_object":true})",
      R"({"json":{"anyOf":[{"type":"string","maxLength":2},{"type":"string","pattern":"^a+$"}]}})",
      R"({"regex":"[a-e ]*\\\\?.{0,5}"})"};
  for (const char* what : asked) {
    const auto whole = constraint(what, of(tokens)), single = constraint(what);
    for (int walk = 0; walk < 6; ++walk) {
      std::vector<int32_t> answer, spelled;
      for (int step = 0; step < 12; ++step) {
        const auto allowed = whole->after(answer);
        ASSERT_TRUE(allowed);
        std::vector<int32_t> may;
        for (size_t t = 0; t < tokens.size(); ++t) {
          bool fits = tokens[t] && !tokens[t]->empty();
          std::vector<int32_t> with = spelled;
          for (size_t i = 0; fits && i < tokens[t]->size(); ++i) {
            const auto byte = static_cast<int32_t>(static_cast<uint8_t>((*tokens[t])[i]));
            fits = single->after(with)->has(byte);
            with.push_back(byte);
          }
          ASSERT_EQ(allowed->has(static_cast<int32_t>(t)), fits)
              << what << " token " << t << " " << tokens[t].value_or("");
          if (fits) may.push_back(static_cast<int32_t>(t));
        }
        EXPECT_EQ(allowed->complete, single->after(spelled)->complete);
        if (may.empty()) break;
        const int32_t t = may[random() % may.size()];
        answer.push_back(t);
        for (const char c : *tokens[static_cast<size_t>(t)]) spelled.push_back(static_cast<uint8_t>(c));
      }
    }
  }
}

// What would take too long is an error of the step, which everybody finds.
TEST(Grammar, TooManyAlternativesAreAnError) {
  const auto c = constraint(R"({"regex":"(.?){1100}x"})");
  const auto allowed = c->after({});
  ASSERT_FALSE(allowed);
  EXPECT_NE(allowed.error().message.find("alternatives"), std::string::npos);
}

}  // namespace
}  // namespace invar::grammar
