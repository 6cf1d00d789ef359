// The states of an automaton that are reached together, found as they are asked for and kept.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/nfa.h"

namespace invar::grammar {

// grammar.20
inline constexpr size_t kMostConfigurations = 1024;

// A state of the automaton and what is open around it: a node of Walk's stacks, 0: nothing.
struct Configuration {
  uint32_t state, stack;
  auto operator<=>(const Configuration&) const = default;
};

class Walk {
 public:
  static constexpr int32_t kDead = 0, kUnknown = -1;
  struct Node {
    std::vector<Configuration> at;  // ascending; those that a byte leads on from
    bool accepts = false;           // what came so far fits
    bool too_many = false;          // more than kMostConfigurations
    std::unique_ptr<std::array<int32_t, 256>> next;
    uint32_t visited = 0;                                 // the user's
    std::shared_ptr<const std::vector<uint64_t>> tokens;  // the user's
  };

  explicit Walk(Nfa nfa) : nfa_(std::move(nfa)) { clear(); }
  int32_t start() const { return start_; }
  // The node behind a byte; kDead: nothing fits any more.
  int32_t step(int32_t node, uint8_t byte);
  Node& operator[](int32_t node) { return nodes_[static_cast<size_t>(node)]; }
  size_t size() const { return nodes_.size(); }
  // Forgets all nodes.
  void clear();

  // So many plain characters may follow, whatever they are, up to `most`. `only`: and no more.
  struct Room {
    int32_t characters = 0;
    bool only = false;
  };
  Room room(int32_t node, int32_t most);

 private:
  struct Frame {
    uint32_t back, below;  // the state to go on from, and the frame under it
    uint8_t levels;
    auto operator<=>(const Frame&) const = default;
  };
  Node close(const std::vector<Configuration>& kernel);
  int32_t intern(Node node);
  uint32_t push(Frame frame);

  const Nfa nfa_;
  std::deque<Node> nodes_;
  std::map<std::pair<bool, std::vector<Configuration>>, int32_t> known_;
  std::vector<Frame> frames_;
  std::map<Frame, uint32_t> known_frames_;
  int32_t start_ = kDead;
};

}  // namespace invar::grammar
