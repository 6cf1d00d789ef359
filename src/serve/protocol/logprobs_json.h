// Log-probabilities of tokens in the two forms of OpenAI's protocol.
#pragma once

#include <cstddef>

#include "base/text/json.h"
#include "prompt/prompt.h"
#include "sample/logprobs.h"

namespace invar::serve {

class LogprobsJson {
 public:
  // `offset`: code points of the text before the first of the tokens.
  LogprobsJson(const prompt::Tokenizer&, bool chat, size_t offset);
  void add(const sample::StepLogprobs&);
  // The first token of a prompt, which follows nothing.
  void add_first(int32_t token);
  // The object; `offset` becomes that of the next token.
  json::Value take(size_t& offset);

 private:
  json::Value entry(const sample::TokenLogprob&) const;
  std::string text_of(int32_t token) const;
  void count(int32_t token);

  const prompt::Tokenizer& tokenizer_;
  const bool chat_;
  prompt::Stream stream_;
  size_t offset_;
  json::Value json_;
};

}  // namespace invar::serve
