// Which nodes remember in a state of fixed size: that of the last position alone. The state of
// others grows with positions, and has pages.
#pragma once

#include <algorithm>
#include <span>

#include "run/prepare/executable.h"

namespace invar::run {

// Whether the state of such a call has the same size for every capacity, beyond what the call has
// itself.
inline bool has_fixed_state(const ops::KernelRef& kernel, const ops::Call& call) {
  // The difference of two sizes shows where bytes are numbers of 32 bits, too: it is below 2^32.
  constexpr int64_t kLarge = int64_t{1} << 30, kMore = 12288;
  return kernel.state_bytes(call, kLarge) == kernel.state_bytes(call, kLarge + kMore);
}

// Layers may share their keys and values (decoder.36): the first node whose state gets the same
// operands in the same way as that of node i, whose state is then its own. i itself: no other does.
inline size_t state_owner(const Executable& e, size_t i) {
  const plan::Node& node = *e.nodes[i].node;
  const auto kept = [](const plan::Node& n) { return std::span(n.in).subspan(1); };
  for (size_t j = 0; j < i; ++j) {
    const plan::Node& other = *e.nodes[j].node;
    if (other.state >= 0 && e.nodes[j].kernel == e.nodes[i].kernel && other.in.size() == node.in.size() &&
        std::ranges::equal(kept(other), kept(node)) && other.attrs == node.attrs)
      return j;
  }
  return i;
}

// A node that its room refuses has none: validate() says why.
inline bool has_fixed_states(const Executable& e) {
  constexpr StepShape kStep{1, 1, 0};
  for (size_t i = 0; i < e.nodes.size(); ++i) {
    const PreparedNode& n = e.nodes[i];
    NodeShapes s;
    if (n.node->state >= 0 && e.check(i, kStep) && e.shapes(n, kStep, s) &&
        has_fixed_state(n.kernel, {s.in, s.out, &n.node->attrs}))
      return true;
  }
  return false;
}

}  // namespace invar::run
