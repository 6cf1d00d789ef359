// What the memory planner of plan.h must respect where views depend on the shapes of a step.
#pragma once

#include "plan/plan.h"

namespace invar::plan {

// As for plan_memory(). keeps: per value, an earlier value that is alive as long as it is; -1:
// none.
struct MemoryRules {
  std::span<const int> group{}, shares_slot_with{}, view_of{}, keeps{};
  std::span<const double> typical{};
};
SlotAssignment plan_memory(const Plan&, const MemoryRules&);

}  // namespace invar::plan
