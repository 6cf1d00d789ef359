// Splits what several sequences append into passes of the decoder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/partitions/stage.h"
#include "run/session.h"

namespace invar::run {

// A pass has equally many tokens of each of its sequences, so sequences of similar lengths share
// one. Shorter ones are padded: their memory gets values behind their end, which nothing reads
// before they are written again (attention.3).
// States of fixed size have no place behind the end: with them, equally long ones share a pass.
class PromptPasses {
 public:
  // position: per sequence of the session. rows: of a pass at most. pads: shorter ones may be
  // padded.
  PromptPasses(std::span<const NewTokens> prompts, std::span<const int64_t> position, int64_t rows,
               bool pads = true);
  PromptPasses(const PromptPasses&) = delete;
  std::span<const StagePass> passes() const { return passes_; }  // without a tail
  int64_t tokens(size_t pass) const { return tokens_[pass]; }    // without padding
  int64_t tokens() const { return all_tokens_; }

 private:
  struct Prompt {
    int64_t sequence, past;
    std::span<const int32_t> tokens;
    int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  };
  void add_pass(std::span<const Prompt> prompts, int64_t width);

  std::vector<StagePass> passes_;
  std::vector<int64_t> tokens_;  // per pass
  int64_t all_tokens_ = 0;
  // The passes refer to these, one per pass.
  std::vector<std::vector<int32_t>> padded_;
  std::vector<std::vector<ops::Sequence>> sequences_;
};

}  // namespace invar::run
