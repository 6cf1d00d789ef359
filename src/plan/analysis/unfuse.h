// Linear layers that were fused by their columns, such as queries, keys and values in one: ranks
// divide each of them by itself.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace invar::plan {

struct Unfused {
  Plan plan;                  // values keep their numbers
  std::vector<int> node_of;   // per node: its node in the plan before
  std::vector<int> value_of;  // per value
};
// A linear layer, with or without a bias behind it, whose result is only read in slices of columns
// becomes a layer for each slice. The bits of a column are its own, so they stay. Slices of weights
// have no digest.
Unfused unfuse(const Plan&);

}  // namespace invar::plan
