#include "serve/protocol/forms/form.h"

namespace invar::serve {

std::string event_text(std::string_view name, const json::Value& data) {
  return (name.empty() ? "" : "event: " + std::string(name) + "\n") + "data: " + json::dump(data) + "\n\n";
}

std::string Form::chunk(const json::Value& chunk) {
  return event_text("", chunk);
}

std::string Form::error(const Problem& problem) {
  return event_text("", json_of(problem));
}

std::unique_ptr<Form> form_of(const Call& call, size_t prompt_tokens) {
  if (call.endpoint == kMessages) return messages_form(call, prompt_tokens);
  if (call.endpoint == kResponses) return responses_form(call);
  return std::make_unique<Form>();
}

json::Value error_body_of(const Problem& problem, std::string_view path) {
  return path.starts_with("/v1/messages") ? messages_error(problem) : json_of(problem);
}

}  // namespace invar::serve
