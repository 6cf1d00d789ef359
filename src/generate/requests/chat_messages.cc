// Messages as users give them -> the object of chat.1 (spec/chat.md).
#include <algorithm>
#include <ctime>

#include "base/file/file.h"
#include "base/text/json.h"
#include "generate/requests/request.h"

namespace invar::generate {
namespace {

using json::Value;

constexpr FileKind kChatFile{"a file of messages or tools", uint64_t{64} << 20, true};

Value string(std::string text) {
  return Value(std::move(text));
}

Value* member(Value& object, std::string_view key) {
  for (auto& [name, value] : object.members)
    if (name == key) return &value;
  return nullptr;
}

void set(Value& object, const std::string& key, Value value) {
  if (Value* known = member(object, key))
    *known = std::move(value);
  else
    object.members.push_back({key, std::move(value)});
}

// Local time, as Python's datetime.now() has it.
std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local)};
}

}  // namespace

Result<std::string> chat_input(std::string_view text, const std::string& name, const ChatOptions& options) {
  INVAR_TRY(Value chat, json::parse(text, name));
  if (chat.kind == Value::array) {
    Value object = Value::object;
    set(object, "messages", std::move(chat));
    chat = std::move(object);
  }
  if (chat.kind != Value::object)
    return bad_input(name + ": neither a list of messages nor an object with \"messages\"");
  if (options.system) {
    Value* messages = member(chat, "messages");
    if (!messages || messages->kind != Value::array)
      return bad_input(name + ": a chat needs a list \"messages\"");
    Value first = Value::object;
    set(first, "role", string("system"));
    set(first, "content", string(*options.system));
    messages->items.insert(messages->items.begin(), std::move(first));
  }
  if (!options.tools.empty()) {
    INVAR_TRY(Value tools, json::parse(options.tools, options.tools_file));
    if (tools.kind != Value::array) return bad_input(options.tools_file + ": a list of tools is needed");
    set(chat, "tools", std::move(tools));
  }
  if (options.enable_thinking) {
    if (!member(chat, "variables")) set(chat, "variables", Value::object);
    Value& variables = *member(chat, "variables");
    if (variables.kind != Value::object) return bad_input(name + ": variables: an object is needed");
    set(variables, "enable_thinking", *options.enable_thinking);
  }
  if (!options.date.empty() || !member(chat, "date"))
    set(chat, "date", string(options.date.empty() ? now() : options.date));
  return json::compact(chat);
}

Result<std::string> read_chat_file(const std::string& path) {
  return read_file(path, kChatFile);
}

Status read_tools(const std::string& path, ChatOptions& options) {
  if (path.empty()) return {};
  options.tools_file = path;
  INVAR_TRY(options.tools, read_chat_file(path));
  return {};
}

}  // namespace invar::generate
