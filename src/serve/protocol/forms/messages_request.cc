// The body of Anthropic's messages -> a chat.
#include <algorithm>
#include <utility>

#include "serve/protocol/forms/translate.h"

namespace invar::serve {

using json::Value;

Outcome<std::string> text_of_blocks(const Value& content, std::initializer_list<std::string_view> types,
                                    const std::string& param) {
  if (content.is_string()) return content.text;
  if (!content.is_array())
    return Problem{400, param + ": a text or a list of blocks is needed, not " + shown(content), param};
  std::string text;
  for (const Value& block : content.items) {
    const std::string& type = block.get("type").text;
    if (std::ranges::find(types, type) == types.end())
      return Problem{400,
                     param + ": blocks of type " + (type.empty() ? shown(block) : type) +
                         " are not supported: send text",
                     param, "unsupported_parameter"};
    if (!block.get("text").is_string())
      return Problem{400, param + ": a block of type " + type + " needs a text", param};
    text += (text.empty() ? "" : "\n") + block.get("text").text;
  }
  return text;
}

namespace {

// The blocks of one message, as messages of a chat.
class MessageBlocks {
 public:
  explicit MessageBlocks(const std::string& role) : role_(role) {}

  std::optional<Problem> take(const Value& block) {
    const std::string& type = block.get("type").text;
    if (type == "text" && block.get("text").is_string())
      return text_ += (text_.empty() ? "" : "\n") + block.get("text").text, std::nullopt;
    if (role_ == "user" && type == "tool_result") return take_result(block);
    if (role_ == "assistant" && type == "tool_use") return take_use(block);
    if (role_ == "assistant" && type == "thinking" && block.get("thinking").is_string())
      return reasoning_ += block.get("thinking").text, std::nullopt;
    return Problem{400,
                   "messages: a block of type " + (type.empty() ? shown(block) : type) +
                       " is not supported in a message of the role " + role_,
                   "messages", "unsupported_parameter"};
  }

  void add_to(Value& messages) {
    for (Value& result : results_.items) messages.add(std::move(result));
    if (text_.empty() && calls_.empty() && reasoning_.empty() && !results_.empty()) return;
    Value message = {{"role", role_}, {"content", text_}};
    if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
    if (!calls_.empty()) message["tool_calls"] = calls_;
    messages.add(std::move(message));
  }

 private:
  std::optional<Problem> take_result(const Value& block) {
    std::string content;
    if (const Value& given = block.get("content"); !given.is_null()) {
      auto text = text_of_blocks(given, {"text"}, "messages");
      if (!text) return text.problem();
      content = *text;
    }
    if (!block.get("tool_use_id").is_string())
      return Problem{400, "messages: a block of type tool_result needs a tool_use_id", "messages"};
    results_.add({{"role", "tool"}, {"tool_call_id", block.get("tool_use_id")}, {"content", content}});
    return std::nullopt;
  }
  std::optional<Problem> take_use(const Value& block) {
    if (!block.get("id").is_string() || !block.get("name").is_string() || !block.get("input").is_object())
      return Problem{400, "messages: a block of type tool_use needs id, name, and input, an object",
                     "messages"};
    calls_.add({{"id", block.get("id")},
                {"type", "function"},
                {"function", {{"name", block.get("name")}, {"arguments", block.get("input")}}}});
    return std::nullopt;
  }

  const std::string role_;
  std::string text_, reasoning_;
  Value calls_ = Value::array, results_ = Value::array;
};

std::optional<Problem> take_tools(Call& call) {
  Value tools = Value::array;
  for (const Value& tool : call.tools.items) {
    const Value& type = tool.get("type");
    if (!type.is_null() && type.text != "custom")
      return Problem{400, "tools: tools of type " + shown(type) + " are not here; custom ones are", "tools",
                     "unsupported_parameter"};
    if (!tool.get("name").is_string())
      return Problem{400, "tools: a tool with a name is needed, not " + shown(tool), "tools"};
    Value function = {{"name", tool.get("name")}};
    if (!tool.get("description").is_null()) function["description"] = tool.get("description");
    function["parameters"] = tool.get("input_schema");
    tools.add({{"type", "function"}, {"function", std::move(function)}});
  }
  if (!call.tools.is_null()) call.tools = std::move(tools);
  const Value choice = call.tool_choice;
  if (choice.is_null()) return std::nullopt;
  const std::string& type = choice.get("type").text;
  const Value& one = choice.get("disable_parallel_tool_use");
  if (one.is_boolean()) call.parallel_calls = !one.is_true();
  if (type == "auto" || type == "none")
    call.tool_choice = type;
  else if (type == "any")
    call.tool_choice = "required";
  else if (type == "tool")
    call.tool_choice = {{"type", "function"}, {"function", {{"name", choice.get("name")}}}};
  else
    return Problem{400, "tool_choice: type is auto, any, tool or none, not " + shown(choice), "tool_choice"};
  return std::nullopt;
}

// The form of the answer, and how much it may reason.
std::optional<Problem> take_output(Call& call) {
  for (const auto& [name, value] : call.text_options.members) {
    if (name == "effort" && (value.is_string() || value.is_null())) {
      call.reasoning_effort = value.text;
      continue;
    }
    if (name != "format")
      return Problem{400, "output_config." + name + ": is not supported: leave it out", "output_config",
                     "unsupported_parameter"};
    if (value.is_null()) continue;
    if (value.get("type").text != "json_schema" || !value.contains("schema"))
      return Problem{400,
                     "output_config.format: {\"type\": \"json_schema\", \"schema\": SCHEMA} is needed, not " +
                         shown(value),
                     "output_config"};
    call.response_format = {{"type", "json_schema"}, {"json_schema", {{"schema", value.get("schema")}}}};
  }
  return std::nullopt;
}

std::optional<Problem> take_thinking(Call& call) {
  if (call.thinking.is_null()) return std::nullopt;
  const std::string& type = call.thinking.get("type").text;
  if (type != "enabled" && type != "adaptive" && type != "disabled")
    return Problem{400, "thinking: type is enabled, adaptive or disabled, not " + shown(call.thinking),
                   "thinking"};
  if (const Value& budget = call.thinking.get("budget_tokens"); !budget.is_null() && type == "enabled") {
    if (!budget.is_integer() || !(budget.to_double() >= 1 && budget.to_double() <= 1073741824))
      return Problem{
          400, "thinking.budget_tokens: a whole number from 1 to 1073741824 is needed, not " + shown(budget),
          "thinking"};
    call.sampling.thinking_token_budget = budget.to_int64();
  }
  if (!call.variables.is_object()) call.variables = Value::object;
  if (!call.variables.contains("enable_thinking") && type != "adaptive")
    call.variables["enable_thinking"] = type == "enabled";
  return std::nullopt;
}

}  // namespace

std::optional<Problem> take_messages(Call& call) {
  Value messages = Value::array;
  if (!call.system.is_null()) {
    auto text = text_of_blocks(call.system, {"text"}, "system");
    if (!text) return text.problem();
    if (!text->empty()) messages.add({{"role", "system"}, {"content", *text}});
  }
  for (const Value& message : call.messages.items) {
    const std::string& role = message.get("role").text;
    if (role != "user" && role != "assistant")
      return Problem{400,
                     "messages: the role is user or assistant, not " + shown(message.get("role")) +
                         "; what the system says is in the member system",
                     "messages"};
    MessageBlocks blocks(role);
    const Value& content = message.get("content");
    if (content.is_string()) {
      messages.add({{"role", role}, {"content", content}});
      continue;
    }
    if (!content.is_array() || content.empty())
      return Problem{400, "messages: the content is a text or a list of blocks, not " + shown(content),
                     "messages"};
    for (const Value& block : content.items)
      if (auto problem = blocks.take(block)) return problem;
    blocks.add_to(messages);
  }
  // An answer goes on with the last message, where that is the assistant's.
  if (!messages.empty() && messages.items.back().get("role").text == "assistant" &&
      messages.items.back().get("tool_calls").is_null())
    call.continue_final_message = true;
  call.messages = std::move(messages);
  if (auto problem = take_tools(call)) return problem;
  if (auto problem = take_output(call)) return problem;
  return take_thinking(call);
}

}  // namespace invar::serve
