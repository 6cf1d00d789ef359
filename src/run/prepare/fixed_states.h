// Which nodes remember in a state of fixed size: that of the last position alone. The state of
// others grows with positions, and has pages.
#pragma once

#include <algorithm>

#include "run/prepare/executable.h"

namespace invar::run {

// Whether the state of such a call has the same size for every capacity, beyond what the call has
// itself.
inline bool has_fixed_state(const ops::KernelRef& kernel, const ops::Call& call) {
  constexpr int64_t kLarge = int64_t{1} << 30;
  return kernel.state_bytes(call, kLarge) == kernel.state_bytes(call, 2 * kLarge);
}

inline bool has_fixed_states(const Executable& e) {
  return std::ranges::any_of(e.nodes, [&e](const PreparedNode& n) {
    NodeShapes s;
    return n.node->state >= 0 && e.shapes(n, {1, 1, 0}, s) &&
           has_fixed_state(n.kernel, {s.in, s.out, &n.node->attrs});
  });
}

}  // namespace invar::run
