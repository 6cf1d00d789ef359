// An answer in the form of OpenAI's responses: items of output, numbered events.
#include <utility>

#include "serve/protocol/forms/form.h"

namespace invar::serve {
namespace {

using json::Value;

Value text_part(const std::string& text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", Value::array}, {"logprobs", Value::array}};
}

Value or_null(const Value& value, const Value& otherwise) {
  return value.is_null() ? otherwise : value;
}

class ResponsesForm : public Form {
 public:
  explicit ResponsesForm(const Call& call) {
    tools_ = Value::array;
    for (const Value& tool : call.tools.items) {
      Value one = tool.get("function");
      one["type"] = "function";
      tools_.add(std::move(one));
    }
    choice_ = or_null(call.tool_choice, "auto");
    if (choice_.is_object()) choice_ = {{"type", "function"}, {"name", choice_.get("function").get("name")}};
    parallel_ = call.parallel_calls.value_or(true);
    if (!call.instructions.empty()) instructions_ = call.instructions;
    if (!call.reasoning_effort.empty()) effort_ = call.reasoning_effort;
    format_ = call.text_options.get("format");
    if (format_.is_null()) format_ = {{"type", "text"}};
    if (call.sampling.max_new_tokens) max_tokens_ = *call.sampling.max_new_tokens;
  }

  Value body(Value answer) const override {
    const Value& choice = answer.get("choices").items[0];
    const Value& message = choice.get("message");
    const bool complete = choice.get("finish_reason").text != "length";
    Value output = Value::array;
    const std::string id = id_of(answer);
    if (const Value& text = message.get("reasoning_content"); !text.text.empty())
      output.add(reasoning_item(id, 0, text.text, "completed"));
    if (const Value& text = message.get("content"); !text.text.empty() || message.get("tool_calls").empty())
      output.add(message_item(id, output.size(), text.text, complete ? "completed" : "incomplete"));
    for (const Value& call : message.get("tool_calls").items)
      output.add(call_item(id, output.size(), call, "completed"));
    return response(answer, complete ? "completed" : "incomplete", std::move(output), answer.get("usage"));
  }

  std::string chunk(const Value& chunk) override {
    std::string out;
    id_ = id_of(chunk);
    if (!std::exchange(begun_, true)) {
      const Value begun = response(chunk, "in_progress", Value::array, Value());
      out += event("response.created", {{"response", begun}});
      out += event("response.in_progress", {{"response", begun}});
    }
    if (const Value& invar = chunk.get("invar"); !invar.is_null()) invar_ = invar;
    if (chunk.get("choices").empty()) {
      Value whole = chunk;
      whole["invar"] = invar_;
      const char* status = complete_ ? "completed" : "incomplete";
      return out + event(complete_ ? "response.completed" : "response.incomplete",
                         {{"response", response(whole, status, output_, chunk.get("usage"))}});
    }
    const Value& choice = chunk.get("choices").items[0];
    const Value& delta = choice.get("delta");
    if (const std::string& text = delta.get("reasoning_content").text; !text.empty()) {
      out += open(Kind::reasoning);
      out += piece("response.reasoning_text.delta", text);
    }
    if (const std::string& text = delta.get("content").text; !text.empty()) {
      out += open(Kind::message);
      out += piece("response.output_text.delta", text);
    }
    if (!delta.get("tool_calls").empty()) called_ = true;
    for (const Value& call : delta.get("tool_calls").items) {
      out += close("completed");
      out += called(call);
    }
    if (!choice.get("finish_reason").is_null()) {
      complete_ = choice.get("finish_reason").text != "length";
      if (kind_ != Kind::message && !called_) out += open(Kind::message);  // an answer without a text
      out += close(complete_ ? "completed" : "incomplete");
    }
    return out;
  }

  std::string end() override { return ""; }
  std::string error(const Problem& problem) override {
    const Value error = json_of(problem).get("error");
    return event("error", {{"code", or_null(error.get("code"), error.get("type"))},
                           {"message", error.get("message")},
                           {"param", error.get("param")}});
  }

 private:
  enum class Kind { none, reasoning, message };

  static std::string id_of(const Value& answer) {
    const std::string& id = answer.get("id").text;
    return id.substr(id.rfind('-') + 1);
  }
  static Value message_item(const std::string& id, size_t n, const std::string& text, const char* status,
                            bool empty = false) {
    return {{"id", "msg_" + id + std::to_string(n)},
            {"type", "message"},
            {"status", status},
            {"role", "assistant"},
            {"content", empty ? Value(Value::array) : json::list({text_part(text)})}};
  }
  static Value reasoning_item(const std::string& id, size_t n, const std::string& text, const char* status,
                              bool empty = false) {
    const Value part = {{"type", "reasoning_text"}, {"text", text}};
    return {{"id", "rs_" + id + std::to_string(n)},
            {"type", "reasoning"},
            {"status", status},
            {"summary", Value::array},
            {"content", empty ? Value(Value::array) : json::list({part})}};
  }
  static Value call_item(const std::string& id, size_t n, const Value& call, const char* status,
                         bool empty = false) {
    const Value& function = call.get("function");
    return {{"id", "fc_" + id + std::to_string(n)},
            {"type", "function_call"},
            {"status", status},
            {"call_id", "call_" + call.get("id").text},
            {"name", function.get("name")},
            {"arguments", empty ? Value("") : function.get("arguments")}};
  }

  Value response(const Value& answer, const std::string& status, Value output, const Value& usage) const {
    Value json = {{"id", "resp_" + id_of(answer)},
                  {"object", "response"},
                  {"created_at", answer.get("created")},
                  {"status", status},
                  {"background", false},
                  {"error", nullptr},
                  {"incomplete_details", nullptr},
                  {"instructions", instructions_},
                  {"max_output_tokens", max_tokens_},
                  {"model", answer.get("model")},
                  {"output", std::move(output)},
                  {"parallel_tool_calls", parallel_},
                  {"previous_response_id", nullptr},
                  {"reasoning", {{"effort", effort_}, {"summary", nullptr}}},
                  {"store", false},
                  {"text", {{"format", format_}}},
                  {"tool_choice", choice_},
                  {"tools", tools_},
                  {"truncation", "disabled"},
                  {"metadata", Value::object},
                  {"usage", nullptr}};
    const Value& sampling = answer.get("invar").get("sampling");
    json["temperature"] = sampling.get("temperature"), json["top_p"] = sampling.get("top_p");
    if (status == "incomplete") json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (!usage.is_null())
      json["usage"] = {{"input_tokens", usage.get("prompt_tokens")},
                       {"input_tokens_details",
                        {{"cached_tokens", usage.get("prompt_tokens_details").get("cached_tokens")}}},
                       {"output_tokens", usage.get("completion_tokens")},
                       {"output_tokens_details", usage.get("completion_tokens_details")},
                       {"total_tokens", usage.get("total_tokens")}};
    if (const Value& invar = answer.get("invar"); !invar.is_null()) json["invar"] = invar;
    return json;
  }

  std::string event(const char* type, Value data) {
    Value all = {{"type", type}, {"sequence_number", number_++}};
    for (auto& [name, value] : data.members) all[name] = std::move(value);
    return event_text(type, all);
  }
  Value here(Value more) const {  // an event of the item that is open
    Value all = {{"item_id", item_.get("id")}, {"output_index", output_.size()}, {"content_index", 0}};
    for (auto& [name, value] : more.members) all[name] = std::move(value);
    return all;
  }
  std::string open(Kind kind) {
    if (kind == kind_) return "";
    std::string out = close("completed");
    kind_ = kind, text_.clear();
    const size_t n = output_.size();
    item_ = kind == Kind::message ? message_item(id_, n, "", "in_progress", true)
                                  : reasoning_item(id_, n, "", "in_progress", true);
    out += event("response.output_item.added", {{"output_index", n}, {"item", item_}});
    Value part = {{"type", "reasoning_text"}, {"text", ""}};
    if (kind == Kind::message) part = text_part("");
    return out + event("response.content_part.added", here({{"part", part}}));
  }
  std::string piece(const char* type, const std::string& text) {
    text_ += text;
    Value data = here({{"delta", text}});
    if (kind_ == Kind::message) data["logprobs"] = Value::array;
    return event(type, std::move(data));
  }
  std::string close(const char* status) {
    if (kind_ == Kind::none) return "";
    const bool message = std::exchange(kind_, Kind::none) == Kind::message;
    Value done = here({{"text", text_}});
    if (message) done["logprobs"] = Value::array;
    std::string out = event(message ? "response.output_text.done" : "response.reasoning_text.done", done);
    const size_t n = output_.size();
    item_ = message ? message_item(id_, n, text_, status) : reasoning_item(id_, n, text_, status);
    out += event("response.content_part.done", here({{"part", item_.get("content").items[0]}}));
    out += event("response.output_item.done", {{"output_index", n}, {"item", item_}});
    output_.add(item_);
    return out;
  }
  std::string called(const Value& call) {
    const size_t n = output_.size();
    const Value whole = call_item(id_, n, call, "completed");
    std::string out = event("response.output_item.added",
                            {{"output_index", n}, {"item", call_item(id_, n, call, "in_progress", true)}});
    out += event("response.function_call_arguments.delta",
                 {{"item_id", whole.get("id")}, {"output_index", n}, {"delta", whole.get("arguments")}});
    out += event("response.function_call_arguments.done", {{"item_id", whole.get("id")},
                                                           {"output_index", n},
                                                           {"name", whole.get("name")},
                                                           {"arguments", whole.get("arguments")}});
    out += event("response.output_item.done", {{"output_index", n}, {"item", whole}});
    output_.add(whole);
    return out;
  }

  Value tools_, choice_, instructions_, effort_, max_tokens_, format_;
  bool parallel_ = true;
  bool begun_ = false, complete_ = true, called_ = false;
  size_t number_ = 0;
  std::string id_, text_;
  Kind kind_ = Kind::none;
  Value item_, output_ = Value::array, invar_;
};

}  // namespace

std::unique_ptr<Form> responses_form(const Call& call) {
  return std::make_unique<ResponsesForm>(call);
}

}  // namespace invar::serve
