// How many tokens of prompts a step computes beside running answers, by the times of earlier steps.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace invar::generate {

// What passes of a model take by their rows: a mean for each power of two, recent times first, and
// lines between them.
class RowCosts {
 public:
  void took(int64_t rows, double seconds) {
    Mean& m = means_[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(rows) + 1))];
    const double part = m.rows > 0 ? 0.3 : 1;
    m.rows += part * (static_cast<double>(rows) - m.rows), m.seconds += part * (seconds - m.seconds);
    seen_.clear();
    for (const Mean& mean : means_)
      if (mean.rows > 0) seen_.push_back(mean);
    for (size_t i = seen_.size(); i-- > 1;)
      seen_[i - 1].seconds = std::min(seen_[i - 1].seconds, seen_[i].seconds);
  }
  bool known() const { return !seen_.empty(); }

  // Of fewer rows than were ever seen in proportion, so that smaller passes are tried.
  double of(double rows) const {
    const auto above = std::ranges::find_if(seen_, [=](const Mean& m) { return m.rows >= rows; });
    if (above == seen_.begin()) return above->seconds * rows / above->rows;
    const Mean& below = *(above - 1);
    if (above == seen_.end()) return below.seconds * rows / below.rows;
    const double part = (rows - below.rows) / (above->rows - below.rows);
    return below.seconds + part * (above->seconds - below.seconds);
  }
  // What a pass takes that its rows share, such as reading the weights: all of it, as long as one
  // size was seen.
  double shared() const {
    const Mean &least = seen_.front(), &most = seen_.back();
    if (seen_.size() == 1) return least.seconds;
    const double row = (most.seconds - least.seconds) / (most.rows - least.rows);
    return std::max(least.seconds - row * least.rows, 0.0);
  }

 private:
  struct Mean {
    double rows = 0, seconds = 0;
  };
  std::array<Mean, 65> means_ = {};
  // Those that were seen. A smaller one takes no longer: a time above that of a larger one had
  // another reason, such as the first step's.
  std::vector<Mean> seen_ = {};
};

// A step's prompts make its answers wait, and shares of a step make a newcomer wait. Steps are cut
// so that neither waits much longer than it may: the newcomer twice its time alone, the others
// three of their own steps. Where more than one comes, steps that do without their rows also waste
// what every step costs whatever its rows, and prompts get at least so much time that this is a
// small part of it. So a burst is computed nearly as a batch, and a newcomer hardly disturbs. None
// of it changes a bit.
class PromptPace {
 public:
  // most: tokens of a step. page: steps of more tokens than a page have whole ones. one_pass: so
  // many tokens that end a prompt bring its first token before the answers' step.
  PromptPace(int64_t most, int64_t page, int64_t one_pass) : most_(most), page_(page), one_pass_(one_pass) {}

  // first: the length of the prompt whose turn it is.
  int64_t tokens(size_t prompts, size_t answers, int64_t first) const {
    if (answers == 0 || prompts == 0 || !prompts_.known() || !answers_.known()) return most_;
    const auto p = static_cast<double>(prompts), a = static_cast<double>(answers);
    const double shared = answers_.shared(), step = std::max(answers_.of(a), shared);
    const double alone = prompts_.of(static_cast<double>(first)) + shared;
    const double prompts_least = kWaste * shared * (p - 1) / (p + a);
    const int64_t least = std::max<int64_t>(most_ / kLeast, 1);
    double least_wait = std::numeric_limits<double>::infinity();
    for (int64_t tokens = most_, best = most_;; tokens = std::max(smaller(tokens, least), least)) {
      const double pass = prompts_.of(static_cast<double>(tokens)), both = pass + step;
      const int64_t steps = (first - 1) / tokens, rest = first - steps * tokens;
      const double newcomer = step / 2 + static_cast<double>(steps) * both +
                              prompts_.of(static_cast<double>(rest)) + (rest <= one_pass_ ? 0 : step);
      const double wait = std::max(newcomer / (kNewcomer * alone), both / (kOthers * step));
      if (wait < least_wait) least_wait = wait, best = tokens;
      if (tokens <= least || pass <= prompts_least) return best;
    }
  }
  void prompts_took(int64_t tokens, double seconds) { prompts_.took(tokens, seconds); }
  void answers_took(size_t answers, double seconds) { answers_.took(static_cast<int64_t>(answers), seconds); }

 private:
  static constexpr double kNewcomer = 2, kOthers = 3;
  static constexpr double kWaste = 128;  // times what is wasted
  static constexpr int64_t kLeast = 16;  // a pass of fewer tokens than this part costs hardly less
  int64_t smaller(int64_t tokens, int64_t least) const {
    const int64_t unit = tokens > page_ ? page_ : least;
    return (tokens - 1) / unit * unit;
  }

  const int64_t most_, page_, one_pass_;
  RowCosts prompts_, answers_;
};

}  // namespace invar::generate
