// Which messages are hashed together: two take less than twice as long as one (sha256_blocks.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace invar {

struct HashPair {
  size_t first, second;  // equal: one message alone
};

// Every message once, the longest first; two of about one length together, where that leaves enough
// for all threads: a longer pair would end last.
inline std::vector<HashPair> hash_pairs(std::span<const uint64_t> lengths, int threads) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  const uint64_t total = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  const uint64_t share = total / static_cast<uint64_t>(std::max(threads, 1));
  std::vector<HashPair> pairs;
  for (size_t at = 0; at < order.size();) {
    const size_t a = order[at++];
    const bool two =
        at < order.size() && lengths[order[at]] >= lengths[a] / 2 && lengths[a] + lengths[order[at]] <= share;
    pairs.push_back({a, two ? order[at++] : a});
  }
  return pairs;
}

}  // namespace invar
