// Tool calls and reasoning in the text of an answer, in the spellings of the common families.
#include <optional>

#include "base/text/json.h"
#include "prompt/chat.h"

namespace invar::prompt {
namespace {

using json::Value;

constexpr std::string_view kOpen = "<think>", kClose = "</think>";

const Value* member_of(const Value& object, std::string_view key) {
  for (const auto& [name, v] : object.members)
    if (name == key) return &v;
  return nullptr;
}

std::string stripped(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t\r\n"), end = s.find_last_not_of(" \t\r\n");
  return begin == s.npos ? "" : std::string(s.substr(begin, end - begin + 1));
}

// The end of the JSON value that begins at `at`: brackets are counted outside of strings.
size_t end_of_value(std::string_view s, size_t at) {
  int depth = 0;
  bool quoted = false;
  for (; at < s.size(); ++at) {
    const char c = s[at];
    if (quoted) {
      at += c == '\\';
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return s.npos;
}

std::string source(const Value& v) {
  if (v.kind == Value::string) return json::quote(v.text);
  if (v.kind == Value::null) return "null";
  std::string out(1, v.kind == Value::array ? '[' : '{');
  if (v.kind == Value::array)
    for (size_t i = 0; i < v.items.size(); ++i) out += (i ? ", " : "") + source(v.items[i]);
  else if (v.kind == Value::object)
    for (size_t i = 0; i < v.members.size(); ++i)
      out += (i ? ", " : "") + json::quote(v.members[i].first) + ": " + source(v.members[i].second);
  else
    return v.text;
  return out + (v.kind == Value::array ? ']' : '}');
}

// {"name", "arguments" or "parameters"} -> OpenAI's form, whose arguments are JSON in a string.
bool add_call(const Value& v, std::vector<std::string>& calls) {
  if (v.kind != Value::object) return false;
  const Value* inner = member_of(v, "function");
  const Value& call = inner && inner->kind == Value::object ? *inner : v;
  const Value *name = member_of(call, "name"), *arguments = member_of(call, "arguments");
  if (!arguments) arguments = member_of(call, "parameters");
  if (!name || name->kind != Value::string || !arguments) return false;
  const bool written = arguments->kind == Value::string;
  calls.push_back("{\"id\":\"call_" + std::to_string(calls.size()) +
                  "\",\"type\":\"function\",\"function\":{\"name\":" + json::quote(name->text) +
                  ",\"arguments\":" + json::quote(written ? arguments->text : source(*arguments)) + "}}");
  return true;
}

// A call, or a list of calls; nothing is added where one of them is none.
bool add_calls(std::string_view text, std::vector<std::string>& calls) {
  const auto parsed = json::parse(text, "tool call");
  if (!parsed) return false;
  std::vector<std::string> made = calls;
  if (parsed->kind == Value::array) {
    if (parsed->items.empty()) return false;
    for (const Value& one : parsed->items)
      if (!add_call(one, made)) return false;
  } else if (!add_call(*parsed, made)) {
    return false;
  }
  calls = std::move(made);
  return true;
}

// <tool_call>{...}</tool_call>, of Hermes and Qwen; the last may lack its end.
std::string take_tagged(std::string_view text, std::vector<std::string>& calls) {
  constexpr std::string_view open = "<tool_call>", close = "</tool_call>";
  std::string content;
  for (;;) {
    const size_t at = text.find(open);
    if (at == text.npos) return content.append(text);
    const size_t end = text.find(close, at);
    const std::string_view inside =
        text.substr(at + open.size(), end == text.npos ? end : end - at - open.size());
    const std::string_view rest = end == text.npos ? std::string_view() : text.substr(end + close.size());
    content += text.substr(0, at);
    if (!add_calls(stripped(inside), calls)) content += text.substr(at, text.size() - at - rest.size());
    text = rest;
  }
}

// [TOOL_CALLS] [{...}], of Mistral; <|python_tag|>{...} of Llama 3; or the answer is a call alone.
std::string take_marked(const std::string& text, std::vector<std::string>& calls) {
  for (const std::string_view mark : {"[TOOL_CALLS]", "<|python_tag|>", ""}) {
    const size_t at = text.find(mark);
    if (at == text.npos) continue;
    const size_t begin = text.find_first_not_of(" \t\r\n", at + mark.size());
    if (begin == text.npos || (text[begin] != '{' && text[begin] != '[')) continue;
    size_t end = end_of_value(text, begin);
    if (end == text.npos || !add_calls(std::string_view(text).substr(begin, end - begin), calls)) continue;
    for (;;) {  // several objects, with a semicolon or a line between
      const size_t more = text.find_first_not_of("; \t\r\n", end);
      if (more == text.npos || text[more] != '{') break;
      const size_t stop = end_of_value(text, more);
      if (stop == text.npos || !add_calls(std::string_view(text).substr(more, stop - more), calls)) break;
      end = stop;
    }
    if (mark.empty() && !stripped(std::string_view(text).substr(end)).empty()) {  // text that goes on
      calls.clear();
      continue;
    }
    return text.substr(0, at) + text.substr(end);
  }
  return text;
}

// The text that continue_final_message continues (chat.6).
std::string final_text(const Value& message) {
  const Value& content = message.get("content");
  for (size_t i = content.items.size(); i-- > 0;)
    if (content.items[i].get("text").is_string()) return content.items[i].get("text").text;
  return content.text;
}

}  // namespace

bool begins_in_reasoning(std::string_view text, std::string_view input) {
  const std::string before = stripped(text);
  if (before.ends_with(kOpen)) return true;
  constexpr std::string_view continues = R"("continue_final_message":true)";
  if (input.find(continues) == input.npos) return false;  // no other chat is read
  const Value chat = json::read_or_null(input);
  const auto& messages = chat.get("messages").items;
  if (!chat.get("continue_final_message").is_true() || messages.empty()) return false;
  const std::string last = stripped(final_text(messages.back()));
  const size_t at = last.rfind(kOpen);
  return at != last.npos && last.find(kClose, at) == last.npos && before.ends_with(last.substr(at));
}

ChatAnswer parse_answer(std::string_view text, bool reasons, bool with_calls) {
  ChatAnswer answer;
  const bool opens = stripped(text).starts_with(kOpen);
  std::string rest(text);
  if (reasons || opens) {
    const size_t begin = opens ? text.find(kOpen) + kOpen.size() : 0, end = text.find(kClose, begin);
    answer.reasoning = stripped(text.substr(begin, end == text.npos ? end : end - begin));
    rest = end == text.npos ? "" : std::string(text.substr(end + kClose.size()));
  }
  std::vector<std::string> calls;
  if (with_calls) rest = take_tagged(rest, calls);
  if (with_calls && calls.empty()) rest = take_marked(rest, calls);
  answer.content = calls.empty() && answer.reasoning.empty() ? rest : stripped(rest);
  answer.tool_calls = "[";
  for (size_t i = 0; i < calls.size(); ++i) answer.tool_calls += (i ? "," : "") + calls[i];
  answer.tool_calls += "]";
  return answer;
}

}  // namespace invar::prompt
