// Shows that neighbouring leaves belong to a Merkle root (receipt.6), by the digests beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/hash/sha256.h"

namespace invar::dispute {

// The digests that root_of_range() needs besides the leaves [first, last], level by level, left
// before right. 0 <= first <= last < leaves.size().
std::vector<Digest> range_proof(std::span<const Digest> leaves, size_t first, size_t last);

// The root of a tree of `count` leaves in which `known` stand from `first` on. Absent: they do not
// fit, or the proof has another number of digests.
std::optional<Digest> root_of_range(std::span<const Digest> known, size_t first, size_t count,
                                    std::span<const Digest> proof);

// merkle_root() of leaves that come one by one: a digest for each bit of their number.
class MerkleSum {
 public:
  void add(const Digest& leaf);
  Digest root() const;

 private:
  std::vector<std::pair<int, Digest>> trees_;  // complete ones, height and root, the highest first
};

}  // namespace invar::dispute
