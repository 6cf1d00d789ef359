// Where a sequence can go back to. A state of fixed size is that of the last position and no
// other, so a session of one sequence copies it as a step of several rows ends, and keeps the last
// copies. Where drafts are verified (Options::goes_back) it copies as every step ends; short steps
// have copies of their own, so that they never replace those of prompts. Executors keep the copies
// by this rule (executor.h), and a stepper knows by it which there are.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace invar::run {

class SnapshotPositions {
 public:
  static constexpr int kOfEach = 2, kKept = 2 * kOfEach;  // of long steps, then of short ones
  static constexpr int64_t kShort = 32;                   // rows of a short step at most
  // every: see Options::goes_back.
  explicit SnapshotPositions(bool every = false) : every_(every) {}
  // A pass of so many rows has moved the states to `position`. Returns the number of the copy to
  // make; -1: none.
  int ended(int64_t position, int64_t rows) {
    now_ = position;
    if (rows < 2 && !every_) return -1;
    const auto begin = at_.begin() + (every_ && rows <= kShort ? kOfEach : 0);
    const auto oldest = std::min_element(begin, begin + kOfEach);
    *oldest = position;
    return static_cast<int>(oldest - at_.begin());
  }
  // A pass failed: nobody knows what the states are.
  void lose() { at_ = {}, now_ = kLost; }
  bool lost() const { return now_ == kLost; }
  // The last position up to `keep` that the states can have.
  int64_t last(int64_t keep) const {
    int64_t found = 0;
    for (const int64_t position : at_)
      if (position <= keep) found = std::max(found, position);
    return now_ <= keep ? std::max(found, now_) : found;
  }
  // The states go to last(keep). Returns the number of the copy that they are; -1: they are there
  // already, or begin anew.
  int go_back(int64_t keep) {
    const int64_t to = last(keep);
    int copy = -1;
    for (int i = 0; i < kKept; ++i) {
      if (to > 0 && to != now_ && at_[i] == to) copy = i;
      if (at_[i] > to) at_[i] = 0;
    }
    now_ = to;
    return copy;
  }

 private:
  static constexpr int64_t kLost = -1;
  bool every_;
  int64_t now_ = 0;
  std::array<int64_t, kKept> at_{};  // 0: no copy
};

}  // namespace invar::run
