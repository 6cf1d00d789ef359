// How many tokens of prompts a step computes beside running answers, by the times of earlier steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace invar::generate {

// Running answers wait for a step's prompts. Where no more prompts than answers are there, they
// wait as long as kSteps steps of their own take; where prompts are more, longer in proportion, so
// that many requests that come at once are soon under way. None of it changes a bit.
class PromptPace {
 public:
  explicit PromptPace(int64_t most) : most_(most) {}

  int64_t tokens(size_t prompts, size_t answers) const {
    if (answers == 0 || token_ <= 0 || step_ <= 0) return most_;
    const double share = std::max(1.0, static_cast<double>(prompts) / static_cast<double>(answers));
    const double tokens = kSteps * step_ * share / token_;
    if (tokens >= static_cast<double>(most_)) return most_;
    return std::max(static_cast<int64_t>(tokens), std::max<int64_t>(most_ / kLeast, 1));
  }
  void prompts_took(int64_t tokens, double seconds) { follow(token_, seconds / static_cast<double>(tokens)); }
  void answers_took(double seconds) { follow(step_, seconds); }

 private:
  static constexpr double kSteps = 1.5;
  static constexpr int64_t kLeast = 16;  // a pass of fewer tokens than this part costs hardly less
  static void follow(double& mean, double now) { mean = mean > 0 ? 0.7 * mean + 0.3 * now : now; }

  const int64_t most_;
  double token_ = 0, step_ = 0;  // seconds
};

}  // namespace invar::generate
