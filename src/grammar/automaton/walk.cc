#include "grammar/automaton/walk.h"

#include <algorithm>
#include <unordered_set>

namespace invar::grammar {

void Walk::clear() {
  nodes_.clear(), known_.clear(), frames_.assign(1, {0, 0, 0}), known_frames_.clear();
  intern({});
  start_ = intern(close({{nfa_.start, 0}}));
}

uint32_t Walk::push(Frame frame) {
  const auto [known, is_new] = known_frames_.try_emplace(frame, static_cast<uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(frame);
  return known->second;
}

// All that is reached without a byte. What needs more levels than there are left is no way.
Walk::Node Walk::close(const std::vector<Configuration>& kernel) {
  Node node;
  std::vector<Configuration> open = kernel;
  std::unordered_set<uint64_t> seen;
  while (!open.empty()) {
    const Configuration c = open.back();
    open.pop_back();
    const NfaState& state = nfa_.states[c.state];
    const int levels = frames_[c.stack].levels;
    if (state.need + levels > kMostJsonLevels) continue;
    if (!seen.insert(uint64_t{c.state} << 32 | c.stack).second) continue;
    if (seen.size() > kMostConfigurations) {
      node.at.clear(), node.accepts = false, node.too_many = true;
      return node;
    }
    if (!state.bytes.empty() || state.room > 0) node.at.push_back(c);
    if (state.end) {
      if (c.stack == 0)
        node.accepts = true;
      else
        open.push_back({frames_[c.stack].back, frames_[c.stack].below});
    }
    for (const uint32_t to : state.skips) open.push_back({to, c.stack});
    for (const CallEdge& e : state.calls) {
      const int inside = levels + (e.level ? 1 : 0);
      if (nfa_.states[e.to].need + levels <= kMostJsonLevels &&
          nfa_.states[e.rule].need + inside <= kMostJsonLevels)
        open.push_back({e.rule, push({e.to, c.stack, static_cast<uint8_t>(inside)})});
    }
  }
  std::ranges::sort(node.at);
  return node;
}

int32_t Walk::intern(Node node) {
  if (!node.too_many) {
    const auto [known, is_new] =
        known_.try_emplace({node.accepts, node.at}, static_cast<int32_t>(nodes_.size()));
    if (!is_new) return known->second;
  }
  nodes_.push_back(std::move(node));
  return static_cast<int32_t>(nodes_.size() - 1);
}

int32_t Walk::step(int32_t from, uint8_t byte) {
  Node& node = (*this)[from];
  if (!node.next) {
    node.next = std::make_unique<std::array<int32_t, 256>>();
    node.next->fill(from == kDead || node.too_many ? kDead : kUnknown);
  }
  int32_t& next = (*node.next)[byte];
  if (next != kUnknown) return next;
  std::vector<Configuration> kernel;
  for (const Configuration& c : node.at)
    for (const ByteEdge& e : nfa_.states[c.state].bytes)
      if (e.first <= byte && byte <= e.last) kernel.push_back({e.to, c.stack});
  next = kernel.empty() ? kDead : intern(close(kernel));
  return next;
}

Walk::Room Walk::room(int32_t at, int32_t most) {
  const Node& node = (*this)[at];
  const Configuration* widest = nullptr;
  for (const Configuration& c : node.at)
    if (!widest || nfa_.states[c.state].room > nfa_.states[widest->state].room) widest = &c;
  if (!widest) return {};
  const int32_t characters = nfa_.states[widest->state].room;
  if (characters >= most || characters == 0) return {std::min(characters, most), false};
  // Nothing else is there but what follows from this one.
  const Node alone = close({*widest});
  return {characters, alone.at == node.at && alone.accepts == node.accepts};
}

}  // namespace invar::grammar
