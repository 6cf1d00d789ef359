// The pages of keys and values of all stages of a decoder. They are taken, shared and dropped
// together, so that a page has one number in all of them.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "run/execute/state_pages.h"

namespace invar::run {

class SharedPages {
 public:
  // most_bytes: of all pages of all stages; 0: no bound. bad_input: one sequence of this capacity
  // needs more. The stages outlive it. preparing: those that read the pages share it.
  static Result<SharedPages> of(std::vector<StatePages*> stages, uint64_t most_bytes, int64_t capacity,
                                std::shared_mutex& preparing);

  // As StatePages has them, of all stages.
  Status take(int64_t sequence, int64_t past, int64_t positions);
  bool copies(int64_t sequence, int64_t past) const { return stages_[0]->copies(sequence, past); }
  bool has_room(int64_t pages);
  int64_t share(int64_t sequence, int64_t index);
  void drop(int64_t page);
  void append(int64_t sequence, std::span<const int64_t> pages);
  int64_t users(int64_t page) const { return stages_[0]->users(page); }
  int64_t taken(int64_t sequence) const { return stages_[0]->taken(sequence); }
  int64_t used() const { return stages_[0]->used(); }
  int64_t most() const;
  size_t page_bytes() const;

 private:
  SharedPages(std::vector<StatePages*> stages, std::shared_mutex& preparing)
      : stages_(std::move(stages)), preparing_(&preparing) {}
  [[nodiscard]] auto alone() const { return std::unique_lock(*preparing_); }

  std::vector<StatePages*> stages_;
  std::shared_mutex* preparing_;
  int64_t bound_ = INT64_MAX;
};

}  // namespace invar::run
