// Groups of messages that are hashed together: many take less time than one after another
// (sha256_blocks.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/hash/sha256_blocks.h"

namespace invar {

using HashGroup = std::vector<size_t>;  // indices of messages

// Every message once, the longest first; those of about one length together, where that leaves
// enough for all threads: a longer group would end last. `lanes`: how many go together in vectors;
// 0: there are none.
inline std::vector<HashGroup> hash_groups(std::span<const uint64_t> lengths, int threads,
                                          size_t lanes = sha256_lane_blocks_native() ? kSha256Lanes : 0) {
  HashGroup order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  const uint64_t total = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  const uint64_t share = total / static_cast<uint64_t>(std::max(threads, 1));
  std::vector<HashGroup> groups;
  for (size_t at = 0; at < order.size();) {
    const uint64_t longest = lengths[order[at]];
    // The parts after the end of the shortest are hashed alone.
    const auto count = [&](size_t most, uint64_t shortest, uint64_t bytes) {
      size_t n = 1;
      for (uint64_t sum = longest; n < most && at + n < order.size(); ++n) {
        const uint64_t next = lengths[order[at + n]];
        if (next < shortest || (sum += next) > bytes) break;
      }
      return n;
    };
    // Lanes take two fifths of the time that their bytes take one by one.
    size_t n = lanes ? count(lanes, longest - longest / 16, share * 5 / 2) : 0;
    if (n <= lanes / 2) n = count(2, longest / 2, share);
    groups.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(at),
                        order.begin() + static_cast<std::ptrdiff_t>(at + n));
    at += n;
  }
  return groups;
}

}  // namespace invar
