// The body of a request in the protocols of OpenAI, Anthropic and Jina -> what it asks for. The
// table of its members is fields.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text/json.h"
#include "generate/options.h"

namespace invar::serve {

// An answer that says why there is none, in OpenAI's form. Its type follows from the status.
struct Problem {
  int status = 400;
  std::string message;
  std::string param = {};  // the member that is wrong; "": none
  std::string code = {};   // "model_not_found", ...; "": null
};
json::Value json_of(const Problem&);
// Bytes of a message, which may have words of the request: one line, whatever they are.
inline constexpr size_t kLongestMessage = 2000;
// Texts that are looked for at each token (stop, bad_words) take the time of a step, which others
// wait for: so many, of so many bytes together.
inline constexpr size_t kMostTexts = 1024, kMostTextBytes = 16384;
// A value in a message: short, and on one line.
std::string shown(const json::Value&);
// What an error of Invar's says of a request.
Problem problem_of(const Error&);

// Whose body it is. Members of several are declared once: a set of bits.
enum Endpoint {
#include "options/request_endpoints.inc"
};

struct Call {
  Endpoint endpoint = kCompletions;
  bool chat = false;  // messages are answered, in whichever protocol
  std::string model;
  generate::SamplingOptions sampling;
  std::optional<uint64_t> seed;
  bool include_stop = false;
  bool stream = false;
  json::Value stream_options;
  bool token_ids = false;
  int64_t n = 1;
  int64_t priority = 0;  // the lowest goes first
  json::Value logit_bias;
  json::Value response_format, structured_outputs;
  // of a completion
  json::Value prompt;
  bool echo = false;
  bool only_echo = false;  // max_tokens is 0: no token of the answer is shown
  // of a chat
  bool chat_logprobs = false;
  std::optional<int32_t> top_logprobs;
  json::Value messages, tools, tool_choice, variables;
  std::string date, reasoning_effort;
  std::optional<bool> parallel_calls;
  std::optional<bool> add_generation_prompt, continue_final_message;
  // of messages (Anthropic) and responses, until they are those of a chat
  json::Value system, thinking, input, text_options, reasoning;
  std::string instructions;
  // of texts: embeddings, rerank, score
  std::string encoding_format, query;
  std::optional<int64_t> dimensions, top_n, truncate_prompt_tokens;
  json::Value documents, text_1, text_2;  // documents: of a chat, too, which its template shows
  bool return_documents = false;
  // of recordings: transcriptions and translations
  std::string file, audio_format, language;
  json::Value granularities;
  // of tokenize and detokenize
  bool add_special_tokens = true, token_texts = false;
  json::Value tokens;

  bool include_usage() const {
    return stream_options.get("include_usage").is_true() || endpoint == kMessages || endpoint == kResponses;
  }
  // Each piece of a stream has the numbers of tokens so far.
  bool counts_each_piece() const {
    return include_usage() && stream_options.get("continuous_usage_stats").is_true();
  }
  // The functions of which the answer has to call one; empty: it need not.
  json::Value forced_tools() const;
  bool shows_tools() const { return !tools.empty() && tool_choice.text != "none"; }
};

// A T or a Problem.
template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : value_(std::move(value)) {}
  Outcome(Problem problem) : problem_(std::move(problem)) {}
  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  const Problem& problem() const { return problem_; }

 private:
  std::optional<T> value_;
  Problem problem_;
};

// Reads the body of a request: every member is known, of its type and in its range.
Outcome<Call> read_call(std::string_view body, Endpoint);
// The same of its members.
Outcome<Call> read_members(json::Value, Endpoint);
// Adds a part of a form to the members: the text as a value of the member's type, or a text.
void add_form_member(json::Value& members, const std::string& name, std::string text, Endpoint);

// The object of chat.1 (spec/chat.md) of a chat's request, as JSON. `date`: "" is none.
Outcome<std::string> chat_of(const Call&, const std::string& date);

// The prompts of a completion: texts, or ids.
struct GivenPrompt {
  std::string text;
  std::optional<std::vector<int32_t>> ids;
};
Outcome<std::vector<GivenPrompt>> prompts_of(const Call&);

// The ids of a list. `param` is what messages call it.
Outcome<std::vector<int32_t>> ids_of(const json::Value& list, const std::string& param);

}  // namespace invar::serve
