// Keys and values of a decoder on the host, in pages of kPagePositions positions. A page has those
// of all nodes. It is taken when a step first needs it. Sequences that begin with the same tokens
// may share pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/memory.h"
#include "kernels/op_contract.h"

namespace invar::run {

class StatePages {
 public:
  // All pages before are gone, and none is taken. node_bytes: of a page, per node. most_bytes: of
  // all pages together; 0: no bound. bad_input: the machine or the bound has too little memory for
  // one sequence of this capacity.
  Status reset(const std::vector<size_t>& node_bytes, int64_t sequences, int64_t capacity,
               uint64_t most_bytes, const char* purpose);
  // The positions of a sequence from `past` to `positions` have pages that it alone writes from now
  // on. bad_input: too little memory.
  Status take(int64_t sequence, int64_t past, int64_t positions);
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

  // The pages of a node, by sequence and page (Call::pages).
  std::byte* const* of(size_t node) const { return tables_[node].data(); }
  int64_t per_sequence() const { return per_sequence_; }
  bool empty() const { return offsets_.empty(); }
  int64_t most() const { return most_; }  // pages; INT64_MAX: no bound
  int64_t used() const { return static_cast<int64_t>(owned_.size() - free_.size()); }
  size_t page_bytes() const { return page_bytes_; }
  size_t bytes() const { return owned_.size() * page_bytes_; }
  static int64_t pages_of(int64_t positions) {
    return (positions + ops::kPagePositions - 1) / ops::kPagePositions;
  }

 private:
  Result<int64_t> take_page();
  void set(int64_t sequence, int64_t index, int64_t page);
  size_t at(int64_t sequence, int64_t index) const {
    return static_cast<size_t>(sequence * per_sequence_ + index);
  }

  std::vector<Allocation> owned_;  // by the page's number
  std::vector<int64_t> users_;     // of each
  std::vector<int64_t> free_;
  std::vector<size_t> offsets_;                  // of each node in a page
  std::vector<std::vector<std::byte*>> tables_;  // per node
  std::vector<int64_t> numbers_;                 // of the pages, by sequence and index
  std::vector<int64_t> taken_;                   // pages, per sequence
  int64_t per_sequence_ = 0, most_ = INT64_MAX;
  size_t page_bytes_ = 0;
};

}  // namespace invar::run
