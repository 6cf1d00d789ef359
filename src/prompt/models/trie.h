// A set of byte strings with numbers, walked byte by byte: a double array (Aoe, "An Efficient
// Digital Search Algorithm by Using a Double-Array Structure", 1989).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace invar::prompt {

class Trie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr int32_t kNone = -1;

  Trie() = default;
  // The keys ascend by their bytes, each once, none empty.
  explicit Trie(const std::vector<std::pair<std::string_view, int32_t>>& keys);

  // Goes from a node along a byte; false: no key goes on so.
  bool step(uint32_t& node, uint8_t byte) const {
    const uint32_t next = nodes_[node].base + byte;
    if (nodes_[next].parent != node) return false;
    node = next;
    return true;
  }
  bool walk(uint32_t& node, std::string_view bytes) const {
    for (const char b : bytes)
      if (!step(node, static_cast<uint8_t>(b))) return false;
    return true;
  }
  int32_t value(uint32_t node) const { return nodes_[node].value; }  // kNone: no key ends here

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Node {
    uint32_t base = 0, parent = kFree;
    int32_t value = kNone;
  };
  std::vector<Node> nodes_ = std::vector<Node>(257);
};

}  // namespace invar::prompt
