// Templates and conversations of tests/chat render as transformers renders them
// (tools/chat/parity.py --write), or are refused.
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
    // The object that a receipt binds makes the same text.
    const auto again = render(text, rendered->input);
    ASSERT_TRUE(again) << rendered->input;
    EXPECT_EQ(again->text, rendered->text);
    EXPECT_EQ(again->input, rendered->input);
    ++equal;
  }
  EXPECT_GE(equal, 300);
  EXPECT_GE(refused, 30);
}

// An attribute that Python or jinja2 gives to a value has its text or is refused by name
// (tools/chat/parity.py --write).
TEST(ChatTest, AttributesOfPythonAreShownOrRefused) {
  const std::string chat = R"({"messages":[{"role":"user","content":"Hi"}],"date":"2026-03-07T15:04:05"})";
  std::vector<std::string> names;
  int refused = 0;
  for (const std::string& line : lines(read("attributes.jsonl"))) {
    const auto v = json::parse(line, "line");
    ASSERT_TRUE(v) << line;
    if (v->members[0].first == "names") {
      for (const auto& name : v->members[0].second.items) names.push_back(name.text);
      continue;
    }
    std::map<std::string, json::Value> texts;
    for (const auto& [name, shown] : v->members[1].second.members) texts[name] = shown;
    for (const std::string& name : names) {
      std::string text = v->members[0].second.text;
      for (size_t at; (at = text.find("NAME")) != text.npos;) text.replace(at, 4, name);
      const auto rendered = render(text, chat);
      if (!rendered) {
        EXPECT_EQ(rendered.error().code, Code::not_covered) << text << "\n" << rendered.error().message;
        const bool later = name == "gi_suspended" || name == "is_integer" || name == "from_number";
        EXPECT_TRUE(texts.contains(name) || later) << text << "\n" << rendered.error().message;
        ++refused;
        continue;
      }
      const std::string expected = texts.contains(name) ? texts[name].text : "False|";
      EXPECT_EQ(rendered->text, expected) << text;
    }
  }
  EXPECT_GE(refused, 150);
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

TEST(ChatTest, WhatIsNoTextIsRefusedBeforeTheTemplateRuns) {
  const auto refusal = [](const std::string& message) {
    return error("{{ raise_exception('ran') }}", R"({"messages":[{"role":"user"},)" + message + "]}");
  };
  for (const char* type : {"image", "image_url", "audio", "input_audio", "video", "file", "another"})
    EXPECT_EQ(
        refusal(R"({"content":[{"type":"text","text":"See"},{"type":")" + std::string(type) + R"("}]})"),
        "3 chat.json: messages[1]: content[1]: a part of type \"" + std::string(type) +
            "\" is no text, and a prompt is text alone: leave it out");
  EXPECT_EQ(
      refusal(R"({"content":[{"image":"a.png"}]})"),
      "3 chat.json: messages[1]: content[0]: image is no text, and a prompt is text alone: leave it out");
  EXPECT_EQ(refusal(R"({"content":{"type":"image"}})").substr(0, 2), "3 ");
  EXPECT_EQ(refusal(R"({"content":[{"type":"text","text":"a","image_url":{"url":"b"}}]})").substr(0, 2),
            "3 ");
  EXPECT_EQ(refusal(R"({"content":"a","images":["b"]})").substr(0, 2), "3 ");
  EXPECT_EQ(refusal(R"({"content":[{"type":"thinking","thinking":[{"type":"image"}]}]})").substr(0, 2), "3 ");
  for (const char* text :
       {R"({"content":"a","images":[],"audio":null})", R"({"content":[{"type":"text","text":"a"},"b"]})",
        R"({"content":[{"text":"a"},{"type":"thinking","thinking":"b"}]})"})
    EXPECT_EQ(refusal(text).substr(0, 2), "2 ") << text;  // the template ran
}

TEST(ChatTest, TextThatTheTemplateLeavesOutIsNamed) {
  const auto left_out = [](const std::string& text, const std::string& messages) {
    const ChatTemplates templates{{{"default", text}}, {}};
    const auto rendered = render_chat(templates, R"({"messages":)" + messages + "}", "chat.json");
    return rendered ? texts_left_out(templates, *rendered) : rendered.error().message;
  };
  const std::string what = "the chat template leaves text of the messages out of the prompt: ";
  const std::string two = R"([{"role":"system","content":"b"},{"role":"user","content":" Hub \n"}])";
  EXPECT_EQ(left_out("{% for m in messages %}{{ m.content|trim|upper }}{% endfor %}", two), "");
  EXPECT_EQ(left_out("{{ messages|tojson }}", two), "");
  EXPECT_EQ(left_out("{{ messages[-1].content }}", two), what + "messages[0]");
  EXPECT_EQ(left_out("{{ messages[0].content }}{{ messages[1].content|join('|') }}", two), "");
  EXPECT_EQ(left_out("{{ messages[1].content|join('|') }}", two), what + "messages[0]");
  EXPECT_EQ(left_out("{% if messages[0].role == 'system' %}b{% endif %}{{ messages[1].content }}", two),
            what + "messages[0]");
  const std::string parts =
      R"([{"content":[{"type":"text","text":"One"},{"type":"text","text":"Two"}]},{"content":" "}])";
  EXPECT_EQ(left_out("{% for p in messages[0].content %}{{ p.text }}{% endfor %}", parts), "");
  EXPECT_EQ(left_out("{{ messages[0].content[0].text }}", parts), what + "messages[0]: content[1]");
  EXPECT_EQ(left_out("-", R"([{"content":"a"},{"content":"b"},{"content":"c"},{"content":"d"}])"),
            what + "messages[0], messages[1], messages[2] and 1 more");
}

// jinja2 computes with integers of any size, and it folds constants. Invar refuses both.
TEST(ChatTest, WhatWouldDifferIsRefused) {
  for (const char* text :
       {"{{ (-9223372036854775807 - 1)|abs }}", "{{ -(-9223372036854775807 - 1) }}", "{{ {'a': 1}[1:] }}",
        "{{ (5)[:1] }}", "{{ 'inf'|float }}", "{{ '1_0'|float }}", "{{ self }}"})
    EXPECT_EQ(error(text).substr(0, 2), "3 ") << text << error(text);
}

// Values that share their parts, and texts that are searched badly: each function charges what it
// walks, so all of these end within the limit of steps.
TEST(ChatTest, SharedPartsAndSlowSearchesAreCharged) {
  const std::string doubled =
      "{% set a = namespace(x='a') %}{% set b = namespace(x='a') %}{% for i in range(60) %}"
      "{% set a.x = [a.x, a.x] %}{% set b.x = [b.x, b.x] %}{% endfor %}";
  const std::string tuples =
      "{% set a = namespace(x=('a',)) %}{% for i in range(60) %}{% set a.x = (a.x, a.x) %}{% endfor %}";
  for (const char* use :
       {"{{ a.x }}", "{{ a.x|tojson }}", "{{ a.x|replace('a', 'b') }}", "{{ a.x == b.x }}", "{{ a.x < b.x }}",
        "{{ a.x in [b.x] }}", "{{ [a.x, b.x]|sort }}", "{{ [a.x, b.x]|unique|list }}",
        "{{ [a.x].index(b.x) }}", "{{ {1: a.x} == {1: b.x} }}", "{{ [{'k': a.x}, {'k': b.x}]|groupby('k') }}",
        "{% for i in range(2) %}{{ loop.changed([a.x, b.x][i]) }}{% endfor %}"})
    EXPECT_EQ(error(doubled + use).substr(0, 2), "3 ") << use << error(doubled + use).substr(0, 200);
  for (const char* use : {"{{ {a.x: 1} }}", "{{ {1: 1}[a.x] }}"})
    EXPECT_EQ(error(tuples + use).substr(0, 2), "3 ") << use << error(tuples + use).substr(0, 200);
  const std::string large = "{% set n = 'a' * 400000 %}{% set m = 'a' * 200000 ~ 'b' %}";
  for (const char* use :
       {"{{ m in n }}", "{{ n.find(m) }}", "{{ n.rfind(m) }}", "{{ n.count(m) }}",
        "{{ n.replace(m, '')|length }}", "{{ n.split(m)|length }}", "{{ n.rsplit(m)|length }}",
        "{{ n.strip(m)|length }}", "{{ n.partition(m)|length }}", "{{ n.rpartition(m)|length }}"})
    EXPECT_EQ(error(large + use).substr(0, 10), "rendered: ") << use << error(large + use).substr(0, 200);
  EXPECT_EQ(error("{{ ('a ' * 300000)|title|length }}"), "rendered: 600000");
  for (const char* use :
       {"{% for i in range(99999) %}{% set x = 'a' * 9999999 in 'a' * 9999999 %}{% endfor %}",
        "{{ ('a' * 60000000)|list|length }}", "{{ (',' * 60000000).split(',')|length }}",
        "{% set d = namespace(x='a' * 6000000) %}{% for i in range(99999) %}{{ d.x in {'a': 1} }}{% endfor "
        "%}",
        "{{ ('%s' * 99) % (('a' * 9999999,) * 99) }}"})
    EXPECT_EQ(error(use).substr(0, 2), "3 ") << use << error(use).substr(0, 200);
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

// `messages` is a list of objects, so their members have two levels less.
TEST(ChatTest, AChatNestsNoDeeperThanATemplateMay) {
  const auto outcome = [](const std::string& before, int levels, const std::string& after) {
    const std::string value = std::string(levels, '[') + std::string(levels, ']');
    const auto made = render("{{ messages[0].x is defined }}", before + value + after);
    return made ? made->text : made.error().message;
  };
  const auto told = [](const std::string& where) {
    return "chat.json: " + where + ": a value nests deeper than 200 levels";
  };
  const std::string message = R"({"messages":[{"x":)",
                    variable = R"({"messages":[{"x":1}],"variables":{"v":)";
  EXPECT_EQ(outcome(message, 198, "}]}"), "True");
  EXPECT_EQ(outcome(message, 199, "}]}"), told("messages"));
  EXPECT_EQ(outcome(message, 201, "}]}"), told("messages[0]: x"));
  EXPECT_EQ(outcome(variable, 200, "}}"), "True");
  EXPECT_EQ(outcome(variable, 201, "}}"), told("variables"));
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

TEST(ChatTest, AnswersBeginInReasoning) {
  const std::string_view no_chat;
  EXPECT_TRUE(begins_in_reasoning("hi<think>\n \t", no_chat));
  EXPECT_FALSE(begins_in_reasoning("<think>\nhm</think>\n", no_chat));
  EXPECT_FALSE(begins_in_reasoning("what is <think> for?", no_chat));
  const auto continued = [](const std::string& content, const char* source = "{{ messages[-1].content }}",
                            const char* more = R"(,"continue_final_message":true)") {
    const auto made = render(source, R"({"messages":[{"role":"user","content":"<think>"},{"content":)" +
                                         content + "}]" + more + "}");
    EXPECT_TRUE(made) << made.error().message;
    return made && begins_in_reasoning(made->text, made->input);
  };
  EXPECT_TRUE(continued(R"("<think>\nhm, so ")"));
  EXPECT_TRUE(continued(R"("<think>a</think> <think> b")"));
  EXPECT_TRUE(continued(R"([{"type":"text","text":"a"},{"type":"text","text":"<think>b"}])",
                        "{{ messages[-1].content[1].text }}"));
  EXPECT_FALSE(continued(R"("<think>hm</think>yes")"));
  EXPECT_FALSE(continued(R"("hm, so")"));
  // The template has taken the reasoning out, or the answer does not go on with it.
  EXPECT_FALSE(
      continued(R"("<think>hm, so")", "<think>hm, so {{ messages[-1].content.replace('<think>', '') }}"));
  EXPECT_FALSE(continued(R"("<think>hm, so")", "{{ messages[-1].content }}", ""));
  EXPECT_FALSE(continued(R"("<think> \"continue_final_message\":true")", "{{ messages[-1].content }}", ""));
}

std::string taken_apart(const std::string& text, const std::string& prompt = "") {
  const ChatAnswer a = parse_answer(text, begins_in_reasoning(prompt, ""));
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
