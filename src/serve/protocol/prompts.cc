// What a call gives the model: the chat of its messages, texts, token ids.
#include <algorithm>
#include <utility>

#include "serve/protocol/call.h"

namespace invar::serve {
namespace {

using json::Value;

// A message as the templates of transformers have it: OpenAI writes the arguments of a call as a
// text, may write a text as a list of parts, and calls the system a developer, which templates know
// not and leave out.
std::optional<Problem> make_plain(Value& message, const std::string& which) {
  if (!message.is_object()) return Problem{400, which + ": an object is needed", "messages"};
  Value* const role = message.find("role");
  if (!role || !role->is_string())
    return Problem{400, which + ".role: a text is needed, such as user", "messages"};
  if (role->text == "developer") *role = "system";
  Value* const content = message.find("content");
  const bool parts = content && content->is_array() && std::ranges::all_of(content->items, &Value::is_object);
  if (content && !content->is_null() && !content->is_string() && !parts)
    return Problem{400, which + ".content: a text or a list of parts is needed, not " + shown(*content),
                   "messages"};
  if (parts) {
    std::string joined;
    bool texts = !content->empty();
    for (const Value& part : content->items) {
      texts &= part.get("type").text == "text" && part.get("text").is_string();
      joined += (joined.empty() ? "" : "\n") + part.get("text").text;
    }
    if (texts) *content = joined;
  }
  Value* calls = message.find("tool_calls");
  if (!calls || !calls->is_array()) return std::nullopt;
  for (Value& call : calls->items) {
    Value* function = call.find("function");
    Value* arguments = function ? function->find("arguments") : nullptr;
    if (!arguments || !arguments->is_string()) continue;
    const Value parsed = json::read_or_null(arguments->text, json::Order::as_written);
    if (parsed.is_object()) *arguments = parsed;
  }
  return std::nullopt;
}

}  // namespace

Outcome<std::string> chat_of(const Call& call, const std::string& date) {
  Value chat = {{"messages", call.messages}};
  Value& messages = *chat.find("messages");
  for (size_t i = 0; i < messages.items.size(); ++i)
    if (auto problem = make_plain(messages.items[i], "messages[" + std::to_string(i) + "]")) return *problem;
  if (call.shows_tools()) chat["tools"] = call.tools;
  if (!call.documents.empty()) chat["documents"] = call.documents;
  Value variables = call.variables.is_object() ? call.variables : Value(Value::object);
  if (!call.reasoning_effort.empty() && !variables.contains("reasoning_effort"))
    variables["reasoning_effort"] = call.reasoning_effort;
  if (!variables.empty()) chat["variables"] = std::move(variables);
  if (call.continue_final_message) chat["continue_final_message"] = *call.continue_final_message;
  if (call.add_generation_prompt)
    chat["add_generation_prompt"] = *call.add_generation_prompt;
  else if (call.continue_final_message.value_or(false))
    chat["add_generation_prompt"] = false;
  if (!date.empty()) chat["date"] = date;
  return json::compact(chat);
}

Outcome<std::vector<int32_t>> ids_of(const Value& list, const std::string& param) {
  std::vector<int32_t> ids;
  for (const Value& id : list.items) {
    if (!id.is_integer() || id.to_double() < 0 || id.to_double() > 2147483647)
      return Problem{400, param + ": token ids are whole numbers from 0, not " + shown(id), param};
    ids.push_back(static_cast<int32_t>(id.to_int64()));
  }
  return ids;
}

Outcome<std::vector<GivenPrompt>> prompts_of(const Call& call) {
  const Value& given = call.prompt;
  std::vector<GivenPrompt> prompts;
  const auto add_ids = [&](const Value& list) -> std::optional<Problem> {
    auto ids = ids_of(list, "prompt");
    if (!ids) return ids.problem();
    if (ids->empty()) return Problem{400, "prompt: a list of token ids is empty", "prompt"};
    prompts.push_back({"", std::move(*ids)});
    return std::nullopt;
  };
  if (given.is_string()) return std::vector<GivenPrompt>{{given.text, std::nullopt}};
  if (!given.is_array() || given.empty())
    return Problem{400, "prompt: a text, token ids, or a list of them is needed, not " + shown(given),
                   "prompt"};
  if (given.items[0].is_number()) {
    if (auto problem = add_ids(given)) return *problem;
    return prompts;
  }
  for (const Value& one : given.items) {
    if (one.is_string() == given.items[0].is_string() && one.is_string()) {
      prompts.push_back({one.text, std::nullopt});
    } else if (one.is_array() && given.items[0].is_array()) {
      if (auto problem = add_ids(one)) return *problem;
    } else {
      return Problem{400, "prompt: a list has texts alone, or lists of token ids alone", "prompt"};
    }
  }
  return prompts;
}

}  // namespace invar::serve
