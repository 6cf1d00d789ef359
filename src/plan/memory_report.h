// What a plan needs of memory, in a line for people (docs/reference/cli.md, "Memory of a plan").
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

// Where its dimensions have these sizes, by name; kTypical where none is given.
Result<std::string> memory_report(const Plan&, const std::map<std::string, int64_t>& sizes);

}  // namespace invar::plan
