// The parser's checks of single fields and single nodes of a plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

inline constexpr uint64_t kMaxBytes = uint64_t{1} << 60;  // of one tensor

// A size that grows dimension by dimension and stays below kMaxBytes. A dimension of 0 makes the
// tensor empty but leaves the bound, so that no product of other dimensions can overflow later.
struct ByteBound {
  uint64_t bound;
  bool empty = false;
  bool multiply(int64_t dim) {
    empty |= dim == 0;
    return dim >= 0 && !__builtin_mul_overflow(bound, std::max<uint64_t>(dim, 1), &bound) &&
           bound <= kMaxBytes;
  }
  uint64_t bytes() const { return empty ? 0 : bound; }
};

// Names the line at which a text first differs from the canonical text, and the canonical line.
std::string first_difference(std::string_view text, std::string_view canonical);

// Relative, below the plan's folder, and the same file on every system (spec/plan.md plan.6).
bool safe_path(std::string_view path);

// `name` must be a numerics choice of this build and follow the earlier ones in order (plan.14).
Status check_choice(const std::vector<std::string>& choices, const std::string& name);
// Whether a symbol may be bound to this element of a value (plan.15).
bool can_bind(const Value&, uint64_t element);

// The operation, its version and its numerics must be those of this build (spec/plan.md plan.5).
Status check_covered(const Node&);
// Checks the operands and results of a control-flow node and of its bodies (plan.16).
Status check_control_flow(const Plan&, const Node&);

}  // namespace invar::plan
