// The memory that a plan needs, in a line for people (docs/reference/cli.md, "Memory of a plan").
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

// The report for dimensions of these sizes, by name; kTypical where none is given.
Result<std::string> memory_report(const Plan&, const std::map<std::string, int64_t>& sizes);

}  // namespace invar::plan
