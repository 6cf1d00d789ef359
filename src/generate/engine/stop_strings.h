// Texts that end an answer (spec/sampling.md sampling.20).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "prompt/prompt.h"

namespace invar::generate {

// The stop strings of one sequence. The tokenizer and the texts outlive it.
class StopStrings {
 public:
  StopStrings(const prompt::Tokenizer&, std::span<const std::string> texts, std::span<const int32_t> prompt);
  // Takes the next token of the answer; whether one of the texts ends within what the token gives.
  bool ends(int32_t token);

 private:
  prompt::Stream stream_;
  const std::span<const std::string> texts_;
  std::string recent_;  // as much of the text as may begin one of them
};

// How many tokens of the answer there are up to the one at which a text ends it; 0: none does.
size_t stop_string_length(const prompt::Tokenizer&, std::span<const std::string> texts,
                          std::span<const int32_t> prompt, std::span<const int32_t> answer);

}  // namespace invar::generate
