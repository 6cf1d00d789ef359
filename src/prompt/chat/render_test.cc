// What transformers renders of the templates and conversations of tests/chat
// (tools/chat/parity.py --write), and what is refused.
#include <gtest/gtest.h>

#include <map>

#include "base/file/file.h"
#include "base/text/json.h"
#include "prompt/chat.h"

namespace invar::prompt {
namespace {

const std::string kFolder = INVAR_SOURCE_DIR "/tests/chat/";

std::string read(const std::string& name) {
  const auto text = read_file(kFolder + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// The members of an object as texts; a string is its content.
std::map<std::string, std::string> members(const std::string& object) {
  std::map<std::string, std::string> all;
  const auto v = json::parse(object, "line");
  EXPECT_TRUE(v) << object;
  for (const auto& [key, value] : v->members)
    all[key] = value.kind == json::Value::null ? "\x01" : value.text;
  return all;
}

// Name -> the JSON of each conversation; the file has one a line.
std::map<std::string, std::string> conversations() {
  std::map<std::string, std::string> all;
  for (const std::string& line : lines(read("conversations.json"))) {
    const size_t name = line.find('"'), begin = line.find("\": {");
    if (begin == line.npos || name != 2) continue;
    const size_t end = line.rfind('}');
    all[line.substr(name + 1, begin - name - 1)] =
        line.substr(begin + 3, end - begin - 3) + R"(,"date":"2026-03-07T15:04:05"})";
  }
  return all;
}

Result<RenderedChat> render(const std::string& text, const std::string& chat) {
  return render_chat({{{"default", text}}, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}}, chat, "chat.json");
}

TEST(ChatTest, ErrorsAboutTemplatesAreShort) {
  const std::string chat = R"({"messages":[{"role":"user","content":"Hi"}]})";
  const auto broken = render("{{ a \xff }}", chat);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("not UTF-8 at byte 5"), std::string::npos) << broken.error().message;
  const auto longer = render("{{ a '" + std::string(5000, 'x') + "' }}", chat);
  ASSERT_FALSE(longer);
  EXPECT_LT(longer.error().message.size(), 400u);
}

TEST(ChatTest, RendersWhatTransformersRenders) {
  const auto chats = conversations();
  const auto snippets = lines(read("snippets.txt"));
  int equal = 0, refused = 0;
  for (const std::string& line : lines(read("expected.jsonl"))) {
    auto expected = members(line);
    const bool snippet = expected.contains("line");
    const std::string text =
        snippet ? snippets.at(std::stoul(expected["line"]) - 1) : read("templates/" + expected["template"]);
    const std::string chat =
        snippet ? R"({"messages":[{"role":"user","content":"Hi"}],"date":"2026-03-07T15:04:05"})"
                : chats.at(expected["chat"]);
    const auto rendered = render(text, chat);
    if (expected["text"] == "\x01") {
      ASSERT_FALSE(rendered) << line << "\n" << rendered->text;
      EXPECT_EQ(rendered.error().code, Code::bad_input) << rendered.error().message;
      EXPECT_EQ(rendered.error().message.find('\n'), std::string::npos) << rendered.error().message;
      ++refused;
      continue;
    }
    ASSERT_TRUE(rendered) << line << "\n" << rendered.error().message;
    EXPECT_EQ(rendered->text, expected["text"]) << line;
    // What a receipt binds makes the same text.
    const auto again = render(text, rendered->input);
    ASSERT_TRUE(again) << rendered->input;
    EXPECT_EQ(again->text, rendered->text);
    EXPECT_EQ(again->input, rendered->input);
    ++equal;
  }
  EXPECT_GE(equal, 300);
  EXPECT_GE(refused, 30);
}

std::string error(const std::string& text, const std::string& chat = R"({"messages":[{"role":"user"}]})") {
  const auto rendered = render(text, chat);
  if (rendered) return "rendered: " + rendered->text;
  return std::to_string(static_cast<int>(rendered.error().code)) + " " + rendered.error().message;
}

TEST(ChatTest, ErrorsNameTheLine) {
  EXPECT_EQ(error("a\n\n{{ b.c }}"), "2 chat template \"default\", line 3: 'b' is undefined");
  EXPECT_EQ(error("{% if x %}\n"),
            "2 chat template \"default\", line 1: unexpected end of template, {% endif %} is missing");
  EXPECT_EQ(error("{{ raise_exception('roles') }}"),
            "2 chat template \"default\", line 1: the template refuses: roles");
  EXPECT_EQ(error("\n{% include 'x' %}"),
            "3 chat template \"default\", line 2: the statement 'include' is not covered");
  EXPECT_EQ(error("{{ 'é'|upper }}"),
            "3 chat template \"default\", line 1: the case of the letter é is changed; only that of ASCII "
            "letters is "
            "covered");
  EXPECT_EQ(error("{{ strftime_now('%Y') }}"),
            "2 chat.json: the chat template asks for the date: give one with --date");
}

TEST(ChatTest, ErrorsNameThePlaceInTheMessages) {
  EXPECT_EQ(error("", "[1"), "2 chat.json:1:3: not JSON: the text ends here; expected ',' or ']'");
  EXPECT_EQ(error("", "[]"), "2 chat.json: an object is needed, not a list");
  EXPECT_EQ(error("", "{}"), "2 chat.json: a chat needs \"messages\"");
  EXPECT_EQ(error("", R"({"messages":[]})"), "2 chat.json: messages: at least one message is needed");
  EXPECT_EQ(error("", R"({"messages":[{},7]})"),
            "2 chat.json: messages[1]: an object is needed, not a number");
  EXPECT_EQ(error("", R"({"messages":[{}],"tools":{}})"),
            "2 chat.json: tools: a list is needed, not an object");
  EXPECT_EQ(error("", R"({"messages":[{}],"date":"2026-02-29T00:00:00"})"),
            "2 chat.json: date: no date such as 2026-11-24T15:04:05");
  EXPECT_EQ(error("", R"({"messages":[{"n":99999999999999999999}]})"),
            "3 chat.json: messages[0]: n: the number 99999999999999999999 needs more than 64 bits");
  EXPECT_EQ(error("", R"({"messages":[{}],"template":"rag"})"),
            "2 chat.json: the model has no chat template \"rag\", it has \"default\"");
}

// Time, memory, text and depth are bounded, whatever the template is.
TEST(ChatTest, HostileTemplatesAreStopped) {
  for (const char* text : {
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
           "{% set ns = namespace(x='ab') %}{% for i in range(99999) %}{% set ns.x = ns.x ~ ns.x %}{% endfor "
           "%}",
           "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ns.x %}{% endfor "
           "%}",
           "{{ 'x' * 999999999999 }}",
           "{{ 'x'.ljust(999999999999) }}",
           "{{ ('x' * 60000000).replace('x', 'y' * 60000000) }}",
           "{{ [1] * 9999999 * 9999999 }}",
           "{% for i in range(99999) %}{{ 'x' * 1000000 }}{% endfor %}",
           "{{ ((((((((((9 ** 9) ** 9) ** 9)))))))) }}",
       }) {
    const std::string why = error(text);
    EXPECT_EQ(why.substr(0, 2), "3 ") << text << "\n" << why.substr(0, 200);
  }
  const std::string nested(100000, '('), closing(100000, ')');
  EXPECT_EQ(error("{{ " + nested + closing + " }}").substr(0, 2), "3 ");
  std::string ifs;
  for (int i = 0; i < 10000; ++i) ifs += "{% if 1 %}";
  EXPECT_EQ(error(ifs).substr(0, 2), "3 ");
  std::string sum = "{{ 1";
  for (int i = 0; i < 10000; ++i) sum += "+1";
  EXPECT_EQ(error(sum + " }}").substr(0, 2), "3 ");
}

TEST(ChatTest, TheTemplateIsChosenAsTransformersDoes) {
  const ChatTemplates both{{{"default", "D"}, {"tool_use", "T"}}, {}}, named{{{"rag", "R"}, {"a", "A"}}, {}};
  const auto text = [](const ChatTemplates& t, const std::string& more) {
    const auto rendered = render_chat(t, R"({"messages":[{}])" + more + "}", "c");
    return rendered ? rendered->text : rendered.error().message;
  };
  EXPECT_EQ(text(both, ""), "D");
  EXPECT_EQ(text(both, R"(,"tools":[])"), "T");
  EXPECT_EQ(text(both, R"(,"tools":null)"), "D");
  EXPECT_EQ(text(both, R"(,"tools":[],"template":"default")"), "D");
  EXPECT_EQ(text(named, R"(,"template":"rag")"), "R");
  EXPECT_EQ(text(named, ""),
            "c: none of the model's chat templates is the default: name one of \"a\", \"rag\"");
  EXPECT_EQ(text({}, ""), "c: the model has no chat template: give the prompt as text");
}

TEST(ChatTest, WhatIsBoundHasOneSpelling) {
  const auto input = [](const std::string& chat) { return render("{{ messages }}", chat)->input; };
  EXPECT_EQ(
      input(
          R"({ "add_generation_prompt": true, "messages" : [ {"role":"user"} ], "tools": null, "date": "2026-01-01T00:00:00" })"),
      R"({"messages":[{"role":"user"}]})");
  EXPECT_EQ(
      input(R"({"variables":{"a":1.50},"messages":[{"b":1,"a":[true,null]}],"add_generation_prompt":false})"),
      R"({"messages":[{"b":1,"a":[true,null]}],"add_generation_prompt":false,"variables":{"a":1.50}})");
}

std::string taken_apart(const std::string& text, const std::string& prompt = "") {
  const ChatAnswer a = parse_answer(text, prompt);
  return a.content + "|" + a.reasoning + "|" + a.tool_calls;
}

TEST(ChatTest, AnswersAreTakenApart) {
  const std::string call =
      R"([{"id":"call_0","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}])";
  EXPECT_EQ(taken_apart(" Hello\n"), " Hello\n||[]");
  EXPECT_EQ(taken_apart("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\":1}}\n</tool_call>"),
            "||" + call);
  EXPECT_EQ(taken_apart("Yes.<tool_call>{\"name\": \"f\", \"arguments\": {\"x\":1}}"), "Yes.||" + call);
  EXPECT_EQ(taken_apart("{\"name\": \"f\", \"parameters\": {\"x\":1}}"), "||" + call);
  EXPECT_EQ(taken_apart("<|python_tag|>{\"name\": \"f\", \"parameters\": {\"x\":1}}"), "||" + call);
  EXPECT_EQ(taken_apart("[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\":1}}]"), "||" + call);
  EXPECT_EQ(taken_apart("{\"name\": \"f\", \"arguments\": {}} is a call"),
            "{\"name\": \"f\", \"arguments\": {}} is a call||[]");
  EXPECT_EQ(taken_apart("<tool_call>broken</tool_call>"), "<tool_call>broken</tool_call>||[]");
  EXPECT_EQ(taken_apart("{\"name\": 1}"), "{\"name\": 1}||[]");
  EXPECT_EQ(taken_apart("<think>\nwhy\n</think>\n\nA"), "A|why|[]");
  EXPECT_EQ(taken_apart("why\n</think>\nA", "...<think>\n"), "A|why|[]");
  EXPECT_EQ(taken_apart("<think>unfinished"), "|unfinished|[]");
}

}  // namespace
}  // namespace invar::prompt
