// An answer in the form of Anthropic's messages: blocks of content, events with names.
#include <utility>

#include "serve/protocol/forms/form.h"

namespace invar::serve {
namespace {

using json::Value;

std::string id_of_message(const Value& id) {
  return "msg_" + id.text.substr(id.text.rfind('-') + 1);
}

// stop_reason, and stop_sequence where a stop text was found.
void add_reason(const Value& choice, Value& to) {
  const std::string& reason = choice.get("finish_reason").text;
  const Value& stop = choice.get("stop_reason");
  to["stop_reason"] = reason == "length"       ? "max_tokens"
                      : reason == "tool_calls" ? "tool_use"
                      : stop.is_string()       ? "stop_sequence"
                                               : "end_turn";
  to["stop_sequence"] = reason == "stop" && stop.is_string() ? stop : Value();
}

Value usage_of(size_t input, const Value& output) {
  return {{"input_tokens", input},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", 0},
          {"output_tokens", output}};
}

Value tool_block(const Value& call, bool with_input) {
  const Value& function = call.get("function");
  Value input = Value::object;
  if (with_input) input = json::read_or_null(function.get("arguments").text, json::Order::as_written);
  return {{"type", "tool_use"},
          {"id", "toolu_" + call.get("id").text},
          {"name", function.get("name")},
          {"input", input.is_object() ? input : Value(Value::object)}};
}

class MessagesForm : public Form {
 public:
  explicit MessagesForm(size_t prompt_tokens) : prompt_tokens_(prompt_tokens) {}

  Value body(Value answer) const override {
    const Value& choice = answer.get("choices").items[0];
    const Value& message = choice.get("message");
    Value content = Value::array;
    if (const Value& reasoning = message.get("reasoning_content"); !reasoning.text.empty())
      content.add({{"type", "thinking"}, {"thinking", reasoning}, {"signature", ""}});
    if (const Value& text = message.get("content"); !text.text.empty())
      content.add({{"type", "text"}, {"text", text}});
    for (const Value& call : message.get("tool_calls").items) content.add(tool_block(call, true));
    Value out = message_of(answer, std::move(content));
    add_reason(choice, out);
    out["usage"] = usage_of(prompt_tokens_, answer.get("usage").get("completion_tokens"));
    out["invar"] = answer.get("invar");
    return out;
  }

  std::string chunk(const Value& chunk) override {
    std::string out;
    if (!std::exchange(begun_, true)) {
      Value message = message_of(chunk, Value::array);
      message["stop_reason"] = nullptr, message["stop_sequence"] = nullptr;
      message["usage"] = usage_of(prompt_tokens_, 0);
      out += event("message_start", {{"message", std::move(message)}});
    }
    if (const Value& invar = chunk.get("invar"); !invar.is_null()) invar_ = invar;
    if (chunk.get("choices").empty()) return out + last(chunk.get("usage"));
    const Value& choice = chunk.get("choices").items[0];
    const Value& delta = choice.get("delta");
    if (const std::string& text = delta.get("reasoning_content").text; !text.empty()) {
      out += open("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
      out += piece({{"type", "thinking_delta"}, {"thinking", text}});
    }
    if (const std::string& text = delta.get("content").text; !text.empty()) {
      out += open("text", {{"type", "text"}, {"text", ""}});
      out += piece({{"type", "text_delta"}, {"text", text}});
    }
    for (const Value& call : delta.get("tool_calls").items) {
      out += close();
      out += open("tool", tool_block(call, false));
      out +=
          piece({{"type", "input_json_delta"}, {"partial_json", call.get("function").get("arguments").text}});
    }
    if (!choice.get("finish_reason").is_null()) {
      out += close();
      add_reason(choice, delta_);
    }
    return out;
  }

  std::string end() override { return event("message_stop", Value::object); }
  std::string error(const Problem& problem) override { return event_text("error", messages_error(problem)); }

 private:
  static Value message_of(const Value& answer, Value content) {
    return {{"id", id_of_message(answer.get("id"))},
            {"type", "message"},
            {"role", "assistant"},
            {"model", answer.get("model")},
            {"content", std::move(content)}};
  }
  static std::string event(const char* type, Value data) {
    Value all = {{"type", type}};
    for (auto& [name, value] : data.members) all[name] = std::move(value);
    return event_text(type, all);
  }
  // Begins a block of this kind, where the last one is another.
  std::string open(const std::string& kind, Value block) {
    if (kind == kind_) return "";
    std::string out = close();
    kind_ = kind;
    return out + event("content_block_start", {{"index", index_}, {"content_block", std::move(block)}});
  }
  std::string piece(Value delta) const {
    return event("content_block_delta", {{"index", index_}, {"delta", std::move(delta)}});
  }
  std::string close() {
    if (kind_.empty()) return "";
    kind_.clear();
    return event("content_block_stop", {{"index", index_++}});
  }
  std::string last(const Value& usage) {
    return event("message_delta", {{"delta", delta_},
                                   {"usage", usage_of(prompt_tokens_, usage.get("completion_tokens"))},
                                   {"invar", invar_}});
  }

  const size_t prompt_tokens_;
  bool begun_ = false;
  std::string kind_;  // of the block that is open; "": none
  size_t index_ = 0;
  Value delta_, invar_;
};

}  // namespace

std::unique_ptr<Form> messages_form(const Call&, size_t prompt_tokens) {
  return std::make_unique<MessagesForm>(prompt_tokens);
}

Value messages_error(const Problem& p) {
  const char* type = p.status == 401   ? "authentication_error"
                     : p.status == 403 ? "permission_error"
                     : p.status == 404 ? "not_found_error"
                     : p.status == 413 ? "request_too_large"
                     : p.status == 429 ? "rate_limit_error"
                     : p.status == 503 ? "overloaded_error"
                     : p.status >= 500 ? "api_error"
                                       : "invalid_request_error";
  return {{"type", "error"}, {"error", {{"type", type}, {"message", p.message}}}};
}

}  // namespace invar::serve
