// Building of the double array, see trie.h.
#include "prompt/models/trie.h"

#include <algorithm>

namespace invar::prompt {
namespace {

// The keys begin..end share their first `depth` bytes, which lead to `node`.
struct Span {
  size_t begin, end, depth;
  uint32_t node;
};
struct Child {
  uint8_t byte;
  size_t begin, end;
};

}  // namespace

Trie::Trie(const std::vector<std::pair<std::string_view, int32_t>>& keys) {
  nodes_[kRoot].parent = kRoot;
  std::vector<Span> open{{0, keys.size(), 0, kRoot}};
  std::vector<Child> children;
  size_t search = 1;  // no room is sought below: nearly all of it is taken
  while (!open.empty()) {
    Span s = open.back();
    open.pop_back();
    if (s.begin < s.end && keys[s.begin].first.size() == s.depth)
      nodes_[s.node].value = keys[s.begin++].second;
    children.clear();
    for (size_t i = s.begin; i < s.end; ++i) {
      const auto byte = static_cast<uint8_t>(keys[i].first[s.depth]);
      if (children.empty() || children.back().byte != byte) children.push_back({byte, i, i});
      children.back().end = i + 1;
    }
    if (children.empty()) continue;
    // The first place where all children are free; search + 1 - first byte is the lowest base.
    size_t taken = 0, at = std::max<size_t>(search, children[0].byte + size_t{1});
    const size_t start = at;
    for (;; ++at) {
      if (at + 512 > nodes_.size()) nodes_.resize(nodes_.size() * 2 + 512);
      if (nodes_[at].parent != kFree) {
        ++taken;
        continue;
      }
      const size_t base = at - children[0].byte;
      bool free = true;
      for (const Child& c : children) free = free && nodes_[base + c.byte].parent == kFree;
      if (free) break;
    }
    if (taken * 20 >= (at - start + 1) * 19) search = at;
    const auto base = static_cast<uint32_t>(at - children[0].byte);
    nodes_[s.node].base = base;
    for (const Child& c : children) {
      nodes_[base + c.byte].parent = s.node;
      open.push_back({c.begin, c.end, s.depth + 1, base + c.byte});
    }
  }
}

}  // namespace invar::prompt
