// Guesses at the next tokens of an answer, which one step of the model then checks. They decide how
// many tokens a step yields, and never which.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/model/model.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "run/session.h"
#include "sample/sample.h"

namespace invar::generate {

class Drafter {
 public:
  virtual ~Drafter() = default;
  // At most `most` tokens that may follow the prompt and the answer of `known`; none where it has
  // no guess.
  virtual std::vector<int32_t> propose(const sample::Context& known, const sample::Params&, int64_t most) = 0;
  // A step of the model has computed the positions from `first` on; hidden: its rows of these
  // positions that stay, or the last of them (run::Session::hidden).
  virtual bool reads_hidden() const { return false; }
  virtual void computed(int64_t /*first*/, int64_t /*positions*/, std::span<const float> /*hidden*/) {}
};

// How many tokens to draft, by the number that the steps before accepted. It reads no clock.
class DraftLength {
 public:
  static constexpr int64_t kLeast = 3, kMost = 15;
  // For the next step; 0: drafts are rejected so often that this step has none.
  int64_t next() {
    if (pause_ > 0) return --pause_, 0;
    return length_;
  }
  void took(int64_t drafted, int64_t accepted) {
    if (drafted == 0) return;
    length_ = accepted == drafted ? std::max(length_, std::min(2 * drafted, kMost))
                                  : std::clamp(accepted + 1, kLeast, kMost);
    rejected_ = accepted > 0 ? 0 : rejected_ + 1;
    if (rejected_ > 1) pause_ = int64_t{1} << std::min<int64_t>(rejected_, 5);
  }

 private:
  int64_t length_ = 4, rejected_ = 0, pause_ = 0;
};

// The most recent place before where prompt and answer had their last tokens, the longest match
// first; what followed there is the draft.
std::unique_ptr<Drafter> prompt_drafter();
// A model with the vocabulary of `target`, of a folder or a name of the hub, with a session of its
// own. not_covered: another vocabulary.
Result<std::unique_ptr<Drafter>> model_drafter(const Model& target, const std::string& folder,
                                               const ExecutionOptions&, Observer&);
// The head of the checkpoint for several tokens, with memory for so many positions. not_covered: it
// has none.
Result<std::unique_ptr<Drafter>> prediction_head_drafter(const Model& target, int64_t positions,
                                                         const ExecutionOptions&, Observer&);
// The value of a decoder's plan that its logits are made of; -1: none of this size.
int hidden_value(const plan::Plan&);

}  // namespace invar::generate
