// Keys and values of a decoder on the host, in pages of kPagePositions positions. A page has those
// of all nodes. It is taken when a step first needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/memory.h"
#include "kernels/op_contract.h"

namespace invar::run {

class StatePages {
 public:
  // All pages before are gone, and none is taken. node_bytes: of a page, per node. bad_input: the
  // machine has too little memory for one sequence of this capacity.
  Status reset(const std::vector<size_t>& node_bytes, int64_t sequences, int64_t capacity,
               const char* purpose);
  // So many positions of a sequence have their pages from now on. bad_input: too little memory.
  Status take(int64_t sequence, int64_t positions);
  // Pages behind the first `keep` positions are free for any sequence.
  void give_back(int64_t sequence, int64_t keep);
  // The pages of a node, by sequence and page (Call::pages).
  std::byte* const* of(size_t node) const { return tables_[node].data(); }
  int64_t per_sequence() const { return per_sequence_; }
  size_t bytes() const { return owned_.size() * page_bytes_; }

 private:
  static int64_t pages_of(int64_t positions) {
    return (positions + ops::kPagePositions - 1) / ops::kPagePositions;
  }

  std::vector<Allocation> owned_;
  std::vector<std::byte*> free_;
  std::vector<size_t> offsets_;                  // of each node in a page
  std::vector<std::vector<std::byte*>> tables_;  // per node
  std::vector<int64_t> taken_;                   // pages, per sequence
  int64_t per_sequence_ = 0;
  size_t page_bytes_ = 0;
};

}  // namespace invar::run
