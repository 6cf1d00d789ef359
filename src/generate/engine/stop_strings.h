// Texts that end an answer (spec/sampling.md sampling.20).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prompt/prompt.h"

namespace invar::generate {

// The stop strings of one sequence. The tokenizer and the texts outlive it.
class StopStrings {
 public:
  // in_answer: a text has to begin behind the prompt.
  StopStrings(const prompt::Tokenizer&, std::span<const std::string> texts, std::span<const int32_t> prompt,
              bool in_answer);
  // Takes the next token of the answer; whether one of the texts ends within what the token gives.
  bool ends(int32_t token);

 private:
  prompt::Stream stream_;
  const std::span<const std::string> texts_;
  std::string recent_;  // as much of the text as may begin one of them
};

// What OpenAI's API shows of an answer: its text up to the first stop text in it (sampling.27). The
// receipt keeps the whole text. Texts are UTF-8; of whole characters, the pieces are whole
// characters, too. The stop texts outlive it.
class StopView {
 public:
  // With `include` the stop text itself is shown.
  explicit StopView(std::span<const std::string> texts, bool include = false)
      : texts_(texts), include_(include) {}
  // Takes the next piece of the answer's text; what may be shown now, which no later piece takes
  // back.
  std::string push(std::string_view piece);
  // Behind the last piece: the rest.
  std::string finish();
  // Whether a stop text was found: all that comes later shows nothing.
  bool found() const { return found_; }
  const std::string& text() const { return stop_; }  // that was found; "": none

 private:
  const std::span<const std::string> texts_;
  const bool include_;
  bool found_ = false;
  std::string stop_, held_;  // not shown: it may begin a stop text
};
// The same of a whole text.
std::string stop_view(std::string_view text, std::span<const std::string> texts, bool include = false);

// How many tokens of the answer there are up to the one at which a text ends it; 0: none does.
size_t stop_string_length(const prompt::Tokenizer&, std::span<const std::string> texts,
                          std::span<const int32_t> prompt, std::span<const int32_t> answer, bool in_answer);

}  // namespace invar::generate
