// What the reader of a plan checks about one word or one line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

inline constexpr uint64_t kMaxBytes = uint64_t{1} << 60;  // of one tensor

// A size that grows dimension by dimension and stays below kMaxBytes. A dimension of 0 makes the tensor empty
// but leaves the bound, so that no product of other dimensions can overflow later.
struct Size {
  uint64_t bound;
  bool empty = false;
  bool multiply(int64_t dim) {
    empty |= dim == 0;
    return dim >= 0 && !__builtin_mul_overflow(bound, std::max<uint64_t>(dim, 1), &bound) &&
           bound <= kMaxBytes;
  }
  uint64_t bytes() const { return empty ? 0 : bound; }
};

// Where a text begins to differ from the canonical one, and how it goes on there.
std::string first_difference(std::string_view text, std::string_view canonical);

// Relative, below the plan's folder, and the same file on every system (spec/plan.md plan.6).
bool safe_path(std::string_view path);

// A numerics choice of this build, behind those before it (plan.14).
Status follows(const std::vector<std::string>& choices, const std::string& name);
// A symbol may be bound to this element (plan.15).
bool has_size(const Value&, uint64_t element);

// The operation, its version and its numerics must be those of this build (spec/plan.md plan.5).
Status covered(const Node&);
// A node of control flow, its bodies complete: that what it and they take and give has the types that it needs (plan.16).
Status fits(const Plan&, const Node&);

}  // namespace invar::plan
