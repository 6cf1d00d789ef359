// The body of OpenAI's responses -> a chat.
#include <utility>

#include "serve/protocol/forms/translate.h"

namespace invar::serve {
namespace {

using json::Value;

Problem wrong_item(const std::string& why) {
  return {400, "input: " + why, "input"};
}

// The items of an input: messages, the model's calls of functions and what those gave.
std::optional<Problem> take_item(const Value& item, Value& messages) {
  const std::string type = item.get("type").is_null() ? "message" : item.get("type").text;
  const auto last_of_assistant = [&]() -> Value& {
    if (messages.empty() || messages.items.back().get("role").text != "assistant")
      messages.add({{"role", "assistant"}, {"content", ""}});
    return messages.items.back();
  };
  if (type == "message") {
    const std::string& role = item.get("role").text;
    if (role != "user" && role != "assistant" && role != "system" && role != "developer")
      return wrong_item("a message has the role user, assistant, system or developer, not " +
                        shown(item.get("role")));
    auto text = text_of_blocks(item.get("content"), {"input_text", "output_text", "text"}, "input");
    if (!text) return text.problem();
    Value* last = messages.empty() ? nullptr : &messages.items.back();
    if (role == "assistant" && last && last->contains("reasoning_content") &&
        last->get("content").text.empty() && !last->contains("tool_calls"))
      (*last)["content"] = *text;
    else
      messages.add({{"role", role == "developer" ? "system" : role}, {"content", *text}});
    return std::nullopt;
  }
  if (type == "function_call") {
    if (!item.get("call_id").is_string() || !item.get("name").is_string() ||
        !item.get("arguments").is_string())
      return wrong_item("a function_call needs call_id, name and arguments, texts");
    Value& calls = last_of_assistant()["tool_calls"];
    if (!calls.is_array()) calls = Value::array;
    calls.add({{"id", item.get("call_id")},
               {"type", "function"},
               {"function", {{"name", item.get("name")}, {"arguments", item.get("arguments")}}}});
    return std::nullopt;
  }
  if (type == "function_call_output") {
    auto text = text_of_blocks(item.get("output"), {"input_text", "output_text", "text"}, "input");
    if (!text) return text.problem();
    messages.add({{"role", "tool"}, {"tool_call_id", item.get("call_id")}, {"content", *text}});
    return std::nullopt;
  }
  if (type == "reasoning") {
    const Value& content = item.get("content");
    auto text = content.is_null() ? Outcome<std::string>(std::string())
                                  : text_of_blocks(content, {"reasoning_text"}, "input");
    if (!text) return text.problem();
    if (!text->empty()) messages.add({{"role", "assistant"}, {"content", ""}, {"reasoning_content", *text}});
    return std::nullopt;
  }
  return wrong_item("items of type " + type + " are not supported: send messages and calls of functions");
}

std::optional<Problem> take_functions(Call& call) {
  Value tools = Value::array;
  for (const Value& tool : call.tools.items) {
    if (tool.get("type").text != "function" || !tool.get("name").is_string())
      return Problem{400, "tools: only functions with a name are here, not " + shown(tool), "tools",
                     "unsupported_parameter"};
    Value function = tool;
    function.erase("type");
    tools.add({{"type", "function"}, {"function", std::move(function)}});
  }
  if (!call.tools.is_null()) call.tools = std::move(tools);
  if (const Value choice = call.tool_choice; choice.is_object() && choice.get("type").text == "function")
    call.tool_choice = {{"type", "function"}, {"function", {{"name", choice.get("name")}}}};
  return std::nullopt;
}

}  // namespace

std::optional<Problem> take_responses(Call& call) {
  Value messages = Value::array;
  if (!call.instructions.empty()) messages.add({{"role", "system"}, {"content", call.instructions}});
  if (call.input.is_string()) {
    messages.add({{"role", "user"}, {"content", call.input}});
  } else if (call.input.is_array()) {
    for (const Value& item : call.input.items)
      if (auto problem = take_item(item, messages)) return problem;
  } else {
    return wrong_item("a text or a list of items is needed, not " + shown(call.input));
  }
  call.messages = std::move(messages);
  for (const auto& [name, value] : call.text_options.members) {
    if (name == "verbosity" && value.text != "medium")
      return Problem{400, "text.verbosity: only medium is supported", "text", "unsupported_parameter"};
    if (name == "format" && value.get("type").text != "text")
      return Problem{400, "text.format: only the type text is supported yet, not " + shown(value), "text",
                     "unsupported_parameter"};
    if (name != "format" && name != "verbosity")
      return Problem{400, "text." + name + ": is not known: leave it out", "text", "unknown_parameter"};
  }
  for (const auto& [name, value] : call.reasoning.members) {
    if (name == "effort")
      call.reasoning_effort = value.text;
    else if (name != "summary" && name != "generate_summary")
      return Problem{400, "reasoning." + name + ": is not known: leave it out", "reasoning",
                     "unknown_parameter"};
  }
  return take_functions(call);
}

}  // namespace invar::serve
