// Keys and values of a decoder, in pages of kPagePositions positions. A page has those of all
// nodes. It is taken when a step first needs it. Sequences that begin with the same tokens may
// share pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/memory.h"
#include "kernels/op_contract.h"

namespace invar::run {

class StatePages {
 public:
  struct Place {
    std::shared_ptr<Device> device = {};  // null: the host
    // On a device: the memory of all sequences is taken at once, since nobody makes room where it
    // is too little. Otherwise that of one is, and more when it is needed.
    bool whole = false;
  };
  // All pages before are gone, and none is taken. node_bytes: of a page, per node. bad_input: the
  // machine has too little memory for one sequence of this capacity.
  Status reset(const std::vector<size_t>& node_bytes, int64_t sequences, int64_t capacity, Place place,
               const char* purpose);
  // The positions of a sequence from `past` to `positions` have pages that it alone writes from now
  // on. Pages get the same numbers whatever memory there is. bad_input: too little of it, and
  // nothing is changed.
  Status take(int64_t sequence, int64_t past, int64_t positions);
  // The pages that take() needs more.
  int64_t needed(int64_t sequence, int64_t past, int64_t positions) const;
  // Whether take() copies a page that others read, too.
  bool copies(int64_t sequence, int64_t past) const;
  // There is memory for so many pages more.
  Status make_ready(int64_t pages);
  // Whether so many pages more may be in use; on a device their memory is there then.
  bool has_room(int64_t pages);
  // Makes what was taken and appended known to the device's kernels, in the order of its queue.
  Status publish();
  // The sequence lets pages behind the first `keep` positions go.
  void give_back(int64_t sequence, int64_t keep);
  // Adds a user to the page of these positions of a sequence, which the sequence has computed.
  // Returns the page's number, for drop() and append().
  int64_t share(int64_t sequence, int64_t index);
  // A user of share() less. A page without users is free for any sequence.
  void drop(int64_t page);
  // A sequence has these behind its own, all of whose positions are computed.
  void append(int64_t sequence, std::span<const int64_t> pages);
  int64_t users(int64_t page) const { return users_[static_cast<size_t>(page)]; }
  int64_t taken(int64_t sequence) const { return taken_[static_cast<size_t>(sequence)]; }

  // Call::pages, by sequence and page; and where a node's memory is in a page.
  std::byte* const* table() const;
  size_t offset(size_t node) const { return offsets_[node]; }
  int64_t per_sequence() const { return per_sequence_; }
  bool empty() const { return offsets_.empty(); }
  // Pages that may be in use; INT64_MAX: no bound is known. It becomes less where a device has no
  // memory for more.
  int64_t most() const { return most_; }
  static Error all_in_use(int64_t most);
  int64_t used() const { return numbered_ - static_cast<int64_t>(free_.size()); }
  size_t page_bytes() const { return page_bytes_; }
  size_t bytes() const { return addresses_.size() * page_bytes_; }
  static int64_t pages_of(int64_t positions) {
    return (positions + ops::kPagePositions - 1) / ops::kPagePositions;
  }

 private:
  int64_t count() const { return static_cast<int64_t>(addresses_.size()); }
  void add_memory(Allocation memory);
  Status grow();
  int64_t take_number();
  void set(int64_t sequence, int64_t index, int64_t page);
  Status copy_page(int64_t to, int64_t from);
  size_t at(int64_t sequence, int64_t index) const {
    return static_cast<size_t>(sequence * per_sequence_ + index);
  }

  Place place_;
  std::vector<Allocation> memory_;     // each of one page or more
  std::vector<std::byte*> addresses_;  // by the page's number
  std::vector<int64_t> users_;         // of the pages that have been taken
  std::vector<int64_t> free_;          // of these, the ones without users; the last one is taken first
  int64_t numbered_ = 0;               // how many have been taken
  std::vector<size_t> offsets_;        // of each node in a page
  Allocation table_, device_table_;    // addresses by sequence and index; the device's copy
  size_t changed_begin_ = 0, changed_end_ = 0;  // entries of the table that the device has yet to get
  std::vector<int64_t> numbers_;                // of the pages, by sequence and index
  std::vector<int64_t> taken_;                  // pages, per sequence
  int64_t per_sequence_ = 0, most_ = INT64_MAX;
  size_t page_bytes_ = 0;
};

}  // namespace invar::run
