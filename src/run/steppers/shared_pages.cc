#include "run/steppers/shared_pages.h"

#include <algorithm>
#include <string>

namespace invar::run {

Result<SharedPages> SharedPages::of(std::vector<StatePages*> stages, uint64_t most_bytes, int64_t capacity,
                                    std::shared_mutex& preparing) {
  SharedPages all(std::move(stages), preparing);
  const size_t page = all.page_bytes();
  if (most_bytes) all.bound_ = static_cast<int64_t>(most_bytes / page);
  const int64_t one = StatePages::pages_of(capacity);
  if (all.bound_ < one)
    return bad_input("--kv-cache-memory-bytes " + std::to_string(most_bytes) + " holds " +
                     std::to_string(all.bound_ * ops::kPagePositions) + " positions, and one sequence has " +
                     std::to_string(capacity) + ", which take " +
                     std::to_string(static_cast<uint64_t>(one) * page) +
                     " bytes: give more, or a smaller context");
  return all;
}

Status SharedPages::take(int64_t sequence, int64_t past, int64_t positions) {
  const int64_t needed = stages_[0]->needed(sequence, past, positions);
  if (needed == 0) return {};
  const auto lock = alone();
  if (used() + needed > most()) return StatePages::all_in_use(most());
  for (StatePages* const stage : stages_) INVAR_CHECK_OK(stage->make_ready(needed));
  for (StatePages* const stage : stages_) INVAR_CHECK_OK(stage->take(sequence, past, positions));
  return {};
}

bool SharedPages::has_room(int64_t pages) {
  const auto lock = alone();
  bool room = used() + pages <= most();
  for (StatePages* const stage : stages_) room = room && stage->has_room(pages);
  return room;
}

int64_t SharedPages::share(int64_t sequence, int64_t index) {
  const auto lock = alone();
  int64_t page = 0;
  for (StatePages* const stage : stages_) page = stage->share(sequence, index);
  return page;
}

void SharedPages::drop(int64_t page) {
  const auto lock = alone();
  for (StatePages* const stage : stages_) stage->drop(page);
}

void SharedPages::append(int64_t sequence, std::span<const int64_t> pages) {
  const auto lock = alone();
  for (StatePages* const stage : stages_) stage->append(sequence, pages);
}

int64_t SharedPages::most() const {
  int64_t most = bound_;
  for (const StatePages* const stage : stages_) most = std::min(most, stage->most());
  return most;
}

size_t SharedPages::page_bytes() const {
  size_t bytes = 0;
  for (const StatePages* const stage : stages_) bytes += stage->page_bytes();
  return bytes;
}

}  // namespace invar::run
