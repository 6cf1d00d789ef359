#include "run/execute/state_pages.h"

#include <algorithm>

namespace invar::run {

Status StatePages::reset(const std::vector<size_t>& node_bytes, int64_t sequences, int64_t capacity,
                         const char* purpose) {
  owned_.clear(), free_.clear(), offsets_.clear(), tables_.clear();
  page_bytes_ = 0;
  for (const size_t bytes : node_bytes) {
    offsets_.push_back(page_bytes_);
    page_bytes_ += Allocation::round_up(bytes);
  }
  per_sequence_ = pages_of(capacity);
  const double per_page =
      static_cast<double>(page_bytes_) +
      static_cast<double>(sequences) * static_cast<double>(node_bytes.size() * sizeof(std::byte*));
  const double needed = static_cast<double>(per_sequence_) * per_page;
  if (needed > static_cast<double>(Allocation::physical_memory()))
    return Allocation::make(static_cast<uint64_t>(std::min(needed, 0x1p63)), purpose).error();
  taken_.assign(static_cast<size_t>(sequences), 0);
  tables_.assign(node_bytes.size(), std::vector<std::byte*>(static_cast<size_t>(sequences * per_sequence_)));
  return {};
}

Status StatePages::take(int64_t sequence, int64_t positions) {
  if (offsets_.empty()) return {};
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  for (const int64_t needed = std::min(pages_of(positions), per_sequence_); taken < needed; ++taken) {
    if (free_.empty()) {
      INVAR_TRY(owned_.emplace_back(), Allocation::make(page_bytes_, "memory between steps"));
      free_.push_back(owned_.back().data());
    }
    for (size_t n = 0; n < offsets_.size(); ++n)
      tables_[n][static_cast<size_t>(sequence * per_sequence_ + taken)] = free_.back() + offsets_[n];
    free_.pop_back();
  }
  return {};
}

void StatePages::give_back(int64_t sequence, int64_t keep) {
  if (offsets_.empty()) return;
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  for (const int64_t kept = pages_of(keep); taken > kept; --taken)
    free_.push_back(tables_[0][static_cast<size_t>(sequence * per_sequence_ + taken - 1)]);
}

}  // namespace invar::run
