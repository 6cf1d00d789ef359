#include "dispute/proof/range_proof.h"

namespace invar::dispute {
namespace {

Digest of_leaf(const Digest& d) {
  return Sha256().update("\0", 1).update(d.data(), d.size()).finish();
}
Digest join(const Digest& left, const Digest& right) {
  return Sha256()
      .update("\1", 1)
      .update(left.data(), left.size())
      .update(right.data(), right.size())
      .finish();
}

// The next level: neighbours joined, an odd last one as it is.
std::vector<Digest> next_level(std::span<const Digest> level) {
  std::vector<Digest> up;
  for (size_t i = 0; i < level.size(); i += 2)
    up.push_back(i + 1 < level.size() ? join(level[i], level[i + 1]) : level[i]);
  return up;
}

std::vector<Digest> level_of(std::span<const Digest> leaves) {
  std::vector<Digest> level;
  for (const Digest& d : leaves) level.push_back(of_leaf(d));
  return level;
}

}  // namespace

std::vector<Digest> range_proof(std::span<const Digest> leaves, size_t first, size_t last) {
  std::vector<Digest> proof;
  for (std::vector<Digest> level = level_of(leaves); level.size() > 1; level = next_level(level)) {
    if (first % 2) proof.push_back(level[first - 1]);
    if (last % 2 == 0 && last + 1 < level.size()) proof.push_back(level[last + 1]);
    first /= 2, last /= 2;
  }
  return proof;
}

std::optional<Digest> root_of_range(std::span<const Digest> known, size_t first, size_t count,
                                    std::span<const Digest> proof) {
  if (known.empty() || first >= count || known.size() > count - first) return std::nullopt;
  std::vector<Digest> level = level_of(known);
  for (; count > 1; count = (count + 1) / 2) {
    const size_t last = first + level.size() - 1;
    const bool left = first % 2, right = last % 2 == 0 && last + 1 < count;
    if (proof.size() < size_t{left} + size_t{right}) return std::nullopt;
    if (left) level.insert(level.begin(), proof[0]), proof = proof.subspan(1), --first;
    if (right) level.push_back(proof[0]), proof = proof.subspan(1);
    level = next_level(level);
    first /= 2;
  }
  if (!proof.empty()) return std::nullopt;
  return level[0];
}

void MerkleSum::add(const Digest& leaf) {
  std::pair<int, Digest> tree{0, of_leaf(leaf)};
  for (; !trees_.empty() && trees_.back().first == tree.first; trees_.pop_back())
    tree = {tree.first + 1, join(trees_.back().second, tree.second)};
  trees_.push_back(tree);
}

Digest MerkleSum::root() const {
  if (trees_.empty()) return merkle_root({});
  Digest root = trees_.back().second;  // an odd last one goes up as it is
  for (size_t i = trees_.size() - 1; i-- > 0;) root = join(trees_[i].second, root);
  return root;
}

}  // namespace invar::dispute
