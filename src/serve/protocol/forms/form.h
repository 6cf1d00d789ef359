// The form of an answer: OpenAI's own, or that of another protocol made of it. What a form gets is
// the body of a chat's or a completion's answer, or the chunks of its stream.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/text/json.h"
#include "serve/protocol/call.h"

namespace invar::serve {

class Form {
 public:
  virtual ~Form() = default;
  // The whole answer.
  virtual json::Value body(json::Value answer) const { return answer; }
  // A stream, as bytes of events: a chunk, what follows the last chunk, or an error instead.
  virtual std::string chunk(const json::Value&);
  virtual std::string end() { return "data: [DONE]\n\n"; }
  virtual std::string error(const Problem&);
};

// `prompt_tokens`: of the answer to come.
std::unique_ptr<Form> form_of(const Call&, size_t prompt_tokens);
std::unique_ptr<Form> messages_form(const Call&, size_t prompt_tokens);
std::unique_ptr<Form> responses_form(const Call&);

// The body of an error in the form of the protocol that this path belongs to.
json::Value error_body_of(const Problem&, std::string_view path);
json::Value messages_error(const Problem&);

// One server-sent event; "": without a name.
std::string event_text(std::string_view name, const json::Value& data);

}  // namespace invar::serve
