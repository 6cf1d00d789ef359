// Answers that decode in groups, on several devices or workers: while the tokens of one group are
// chosen, the devices compute the steps of the others (run::Session::start_many). No bit depends on
// the groups (plan.11).
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "generate/engine/generation_loop.h"

namespace invar::generate {

class DecodeGroups {
 public:
  // The session, and loops that are started, outlive the groups.
  explicit DecodeGroups(run::Session& session) : session_(session) {}
  DecodeGroups(const DecodeGroups&) = delete;
  ~DecodeGroups() { finish(); }
  bool empty() const { return groups_.empty(); }
  // Whether so many loops that are ready go in groups. Otherwise GenerationLoop::advance() is as
  // good.
  bool divide(size_t ready) const { return !empty() || session_.groups(ready) > 1; }
  // Begins the next step of these, which decode: in even groups where none is in flight. Few of
  // them wait for the next group.
  Status start(std::span<GenerationLoop* const> ready);
  // A token more of each loop of the group that was started first. After an error none is in
  // flight.
  Result<std::vector<GenerationLoop*>> take();
  // The same of all groups, for somebody who has no use for errors.
  void finish();

 private:
  run::Session& session_;
  std::deque<std::vector<GenerationLoop*>> groups_;  // in flight
};

}  // namespace invar::generate
