#include "run/execute/state_pages.h"

#include <algorithm>
#include <cstring>

namespace invar::run {

Status StatePages::reset(const std::vector<size_t>& node_bytes, int64_t sequences, int64_t capacity,
                         uint64_t most_bytes, const char* purpose) {
  owned_.clear(), users_.clear(), free_.clear(), offsets_.clear(), tables_.clear();
  page_bytes_ = 0;
  for (const size_t bytes : node_bytes) {
    offsets_.push_back(page_bytes_);
    page_bytes_ += Allocation::round_up(bytes);
  }
  per_sequence_ = pages_of(capacity);
  most_ = most_bytes && page_bytes_ ? static_cast<int64_t>(most_bytes / page_bytes_) : INT64_MAX;
  if (most_ < per_sequence_)
    return bad_input("--kv-cache-memory-bytes " + std::to_string(most_bytes) + " holds " +
                     std::to_string(most_ * ops::kPagePositions) + " positions, and one sequence has " +
                     std::to_string(capacity) + ", which take " +
                     std::to_string(static_cast<uint64_t>(per_sequence_) * page_bytes_) +
                     " bytes: give more, or a smaller context");
  const double per_page =
      static_cast<double>(page_bytes_) +
      static_cast<double>(sequences) * static_cast<double>(node_bytes.size() * sizeof(std::byte*));
  const double needed = static_cast<double>(per_sequence_) * per_page;
  if (needed > static_cast<double>(Allocation::physical_memory()))
    return Allocation::make(static_cast<uint64_t>(std::min(needed, 0x1p63)), purpose).error();
  taken_.assign(static_cast<size_t>(sequences), 0);
  numbers_.assign(node_bytes.empty() ? 0 : static_cast<size_t>(sequences * per_sequence_), -1);
  tables_.assign(node_bytes.size(), std::vector<std::byte*>(static_cast<size_t>(sequences * per_sequence_)));
  return {};
}

Result<int64_t> StatePages::take_page() {
  if (free_.empty()) {
    if (static_cast<int64_t>(owned_.size()) >= most_)
      return bad_input("the memory of keys and values has " + std::to_string(most_) +
                       " pages, and all are in use");
    INVAR_TRY(Allocation page, Allocation::make(page_bytes_, "memory between steps"));
    free_.push_back(static_cast<int64_t>(owned_.size()));
    owned_.push_back(std::move(page)), users_.push_back(0);
  }
  const int64_t page = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(page)] = 1;
  return page;
}

void StatePages::set(int64_t sequence, int64_t index, int64_t page) {
  numbers_[at(sequence, index)] = page;
  for (size_t n = 0; n < offsets_.size(); ++n)
    tables_[n][at(sequence, index)] = owned_[static_cast<size_t>(page)].data() + offsets_[n];
}

Status StatePages::take(int64_t sequence, int64_t past, int64_t positions) {
  if (offsets_.empty()) return {};
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  // A sequence may go back into a page that others read.
  for (int64_t i = past / ops::kPagePositions; i < taken; ++i) {
    const int64_t before = numbers_[at(sequence, i)];
    if (users(before) == 1) continue;
    INVAR_TRY(const int64_t own, take_page());
    std::memcpy(owned_[static_cast<size_t>(own)].data(), owned_[static_cast<size_t>(before)].data(),
                page_bytes_);
    drop(before);
    set(sequence, i, own);
  }
  for (const int64_t needed = std::min(pages_of(positions), per_sequence_); taken < needed; ++taken) {
    INVAR_TRY(const int64_t page, take_page());
    set(sequence, taken, page);
  }
  return {};
}

void StatePages::give_back(int64_t sequence, int64_t keep) {
  if (offsets_.empty()) return;
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  for (const int64_t kept = pages_of(keep); taken > kept; --taken) drop(numbers_[at(sequence, taken - 1)]);
}

int64_t StatePages::share(int64_t sequence, int64_t index) {
  const int64_t page = numbers_[at(sequence, index)];
  ++users_[static_cast<size_t>(page)];
  return page;
}

void StatePages::drop(int64_t page) {
  if (--users_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void StatePages::append(int64_t sequence, std::span<const int64_t> pages) {
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  for (const int64_t page : pages) {
    ++users_[static_cast<size_t>(page)];
    set(sequence, taken++, page);
  }
}

}  // namespace invar::run
