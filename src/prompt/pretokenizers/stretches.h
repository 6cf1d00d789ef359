// The part that splitting pre-tokenizers share: matches and the stretches between them become
// words.
#pragma once

#include <vector>

#include "prompt/pretokenizers/pretokenizer.h"

namespace invar::prompt {

// A split turns the text into stretches, matches and what lies between; the behavior says which of
// them are joined to their neighbour or dropped. Stretches arrive in order.
class Stretches {
 public:
  Stretches(Behavior behavior, bool invert, Word piece, std::vector<Word>& out)
      : behavior_(behavior), invert_(invert), piece_(piece), out_(out) {}

  void add(size_t begin, size_t end, bool match) {
    match = match != invert_;
    bool join = false;
    switch (behavior_) {
      case Behavior::isolated: break;
      case Behavior::removed:
        if (match) return;
        break;
      case Behavior::merged_with_previous: join = match && !previous_; break;
      case Behavior::merged_with_next: join = !match && held_alone_; break;
      case Behavior::contiguous: join = match == previous_; break;
    }
    // Only the last of several matches in a row is merged with what follows.
    held_alone_ = match;
    previous_ = match;
    if (join && held_) {
      end_ = end;
      return;
    }
    flush();
    begin_ = begin, end_ = end, held_ = true;
  }
  void flush() {
    if (held_ && end_ > begin_)
      out_.push_back({piece_.text.substr(begin_, end_ - begin_), piece_.from_start && begin_ == 0});
    held_ = false;
  }

 private:
  Behavior behavior_;
  bool invert_;
  Word piece_;
  std::vector<Word>& out_;
  bool previous_ = false, held_alone_ = false, held_ = false;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace invar::prompt
