// Log-probabilities of tokens in the two forms of OpenAI's protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text/json.h"
#include "prompt/prompt.h"
#include "sample/logprobs.h"

namespace invar::serve {

class LogprobsJson {
 public:
  // Where the first of the tokens begins in the text.
  struct Place {
    prompt::Stream text;  // has taken the tokens before
    size_t offset = 0;    // code points of them
  };
  // The place, which outlives it, becomes that of the next token.
  LogprobsJson(const prompt::Tokenizer&, bool chat, Place&);
  void add(const sample::StepLogprobs&);
  // The first token of a prompt, which follows nothing.
  void add_first(int32_t token);
  json::Value take() { return std::move(json_); }

 private:
  json::Value entry(const sample::TokenLogprob&) const;
  std::string text_of(int32_t token) const;
  void count(int32_t token);

  const prompt::Tokenizer& tokenizer_;
  const bool chat_;
  Place& place_;
  json::Value json_;
};

}  // namespace invar::serve
