#include "run/execute/state_pages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace invar::run {
namespace {

constexpr const char* kOfPages = "memory between steps";
// A device gives memory in pieces of at least so many bytes, or a quarter of what there is already:
// each takes it as long as a kernel.
constexpr size_t kDevicePiece = size_t{64} << 20;

std::byte** entries(const Allocation& table) {
  return reinterpret_cast<std::byte**>(table.data());
}

}  // namespace

Status StatePages::reset(const std::vector<size_t>& node_bytes, int64_t sequences, int64_t capacity,
                         Place place, const char* purpose) {
  *this = StatePages();
  place_ = std::move(place);
  std::vector<size_t> offsets;
  for (const size_t bytes : node_bytes) {
    offsets.push_back(page_bytes_);
    page_bytes_ += Allocation::round_up(bytes);
  }
  if (offsets.empty()) return {};
  const std::shared_ptr<Device>& device = place_.device;
  const int64_t one = pages_of(capacity), all = sequences * one;
  const size_t table_bytes = static_cast<size_t>(all) * sizeof(std::byte*);
  const double needed =
      static_cast<double>(one) * static_cast<double>(page_bytes_) + static_cast<double>(table_bytes);
  if (!device && needed > static_cast<double>(Allocation::physical_memory()))
    return Allocation::make(static_cast<uint64_t>(std::min(needed, 0x1p63)), purpose).error();
  if (device) {
    const auto bytes = static_cast<uint64_t>(place_.whole ? all : one) * page_bytes_;
    INVAR_TRY(Allocation memory, Allocation::make(bytes, purpose, device));
    add_memory(std::move(memory));
    INVAR_TRY(table_, Allocation::make_pinned(table_bytes, kOfPages, device));
    INVAR_TRY(device_table_, Allocation::make(table_bytes, kOfPages, device));
    // A tenth of what is free stays for what steps need beside.
    most_ = std::min(all, count() + static_cast<int64_t>(device->free_memory() / 10 * 9 / page_bytes_));
  } else {
    INVAR_TRY(table_, Allocation::make(table_bytes, kOfPages));
  }
  per_sequence_ = one;
  taken_.assign(static_cast<size_t>(sequences), 0);
  numbers_.assign(static_cast<size_t>(all), -1);
  offsets_ = std::move(offsets);
  return {};
}

void StatePages::add_memory(Allocation memory) {
  for (size_t at = 0; at + page_bytes_ <= memory.size(); at += page_bytes_)
    addresses_.push_back(memory.data() + at);
  memory_.push_back(std::move(memory));
}

// By a page, on a device by several, or as many as there are.
Status StatePages::grow() {
  int64_t pages = 1;
  if (place_.device)
    pages = std::clamp<int64_t>(std::max(static_cast<int64_t>(kDevicePiece / page_bytes_), count() / 4), 1,
                                most_ - count());
  for (;; pages /= 2) {
    Result<Allocation> memory =
        Allocation::make(static_cast<uint64_t>(pages) * page_bytes_, kOfPages, place_.device);
    if (memory) {
      add_memory(*std::move(memory));
      return {};
    }
    if (pages > 1) continue;
    if (place_.device) most_ = count();
    return memory.error();
  }
}

Error StatePages::all_in_use(int64_t most) {
  return bad_input("the memory of keys and values has " + std::to_string(most) +
                   " pages, and all are in use");
}

Status StatePages::make_ready(int64_t pages) {
  while (count() < used() + pages) {
    if (count() >= most_) return all_in_use(most_);
    INVAR_CHECK_OK(grow());
  }
  return {};
}

bool StatePages::has_room(int64_t pages) {
  return used() + pages <= most_ && (!place_.device || make_ready(pages));
}

std::byte* const* StatePages::table() const {
  return entries(place_.device ? device_table_ : table_);
}

void StatePages::set(int64_t sequence, int64_t index, int64_t page) {
  const size_t entry = at(sequence, index);
  numbers_[entry] = page;
  entries(table_)[entry] = addresses_[static_cast<size_t>(page)];
  if (changed_begin_ == changed_end_) changed_begin_ = changed_end_ = entry;
  changed_begin_ = std::min(changed_begin_, entry), changed_end_ = std::max(changed_end_, entry + 1);
}

// A step has ended before the table changes again, so its copy has, too.
Status StatePages::publish() {
  const size_t begin = changed_begin_, end = std::exchange(changed_end_, begin);
  if (!place_.device || begin == end) return {};
  return place_.device->upload(entries(device_table_) + begin, entries(table_) + begin,
                               (end - begin) * sizeof(std::byte*));
}

Status StatePages::copy_page(int64_t to, int64_t from) {
  std::byte* const target = addresses_[static_cast<size_t>(to)];
  const std::byte* const source = addresses_[static_cast<size_t>(from)];
  if (place_.device) return place_.device->copy(target, source, page_bytes_);
  std::memcpy(target, source, page_bytes_);
  return {};
}

// A sequence may go back into pages that others read: it gets copies of them.
int64_t StatePages::needed(int64_t sequence, int64_t past, int64_t positions) const {
  if (empty()) return 0;
  const int64_t taken = this->taken(sequence);
  int64_t pages = std::max<int64_t>(std::min(pages_of(positions), per_sequence_) - taken, 0);
  for (int64_t i = past / ops::kPagePositions; i < taken; ++i) pages += users(numbers_[at(sequence, i)]) > 1;
  return pages;
}

bool StatePages::copies(int64_t sequence, int64_t past) const {
  return needed(sequence, past, 0) > 0;  // none behind what it has
}

int64_t StatePages::take_number() {
  int64_t page = numbered_;
  if (free_.empty()) {
    ++numbered_, users_.push_back(1);
  } else {
    page = free_.back();
    free_.pop_back(), users_[static_cast<size_t>(page)] = 1;
  }
  return page;
}

Status StatePages::take(int64_t sequence, int64_t past, int64_t positions) {
  const int64_t more = needed(sequence, past, positions);
  if (more == 0) return {};
  INVAR_CHECK_OK(make_ready(more));
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  for (int64_t i = past / ops::kPagePositions; i < taken; ++i) {
    const int64_t before = numbers_[at(sequence, i)];
    if (users(before) == 1) continue;
    const int64_t own = take_number();
    set(sequence, i, own);
    drop(before);
    INVAR_CHECK_OK(copy_page(own, before));
  }
  for (const int64_t end = std::min(pages_of(positions), per_sequence_); taken < end; ++taken)
    set(sequence, taken, take_number());
  return {};
}

void StatePages::give_back(int64_t sequence, int64_t keep) {
  if (empty()) return;
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  for (const int64_t kept = pages_of(keep); taken > kept; --taken) drop(numbers_[at(sequence, taken - 1)]);
}

int64_t StatePages::share(int64_t sequence, int64_t index) {
  const int64_t page = numbers_[at(sequence, index)];
  ++users_[static_cast<size_t>(page)];
  return page;
}

// Without users all pages are as they were at first, whatever was taken before.
void StatePages::drop(int64_t page) {
  if (--users_[static_cast<size_t>(page)] > 0) return;
  free_.push_back(page);
  if (used() == 0) free_.clear(), users_.clear(), numbered_ = 0;
}

void StatePages::append(int64_t sequence, std::span<const int64_t> pages) {
  int64_t& taken = taken_[static_cast<size_t>(sequence)];
  for (const int64_t page : pages) {
    ++users_[static_cast<size_t>(page)];
    set(sequence, taken++, page);
  }
}

}  // namespace invar::run
