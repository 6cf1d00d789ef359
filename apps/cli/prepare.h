// Checkpoint -> plan, through the task folder: export and compile once per state of the checkpoint's files.
#pragma once

#include <string>

#include "base/operation_set.h"
#include "base/status.h"
#include "commands.h"
#include "model.h"
#include "plan/plan.h"

namespace invar::cli {

struct Prepared {
  plan::Plan plan;
  std::string folder;  // where the plan's weight files lie
};

// reproducible where the name is empty; an error lists the names.
Result<OperationSet> operation_set(const std::string& name);

// options.plan, or the plan in the task folder if it was made from the files as they are now (names, sizes, times and
// the content of the JSON files; weights are hashed at load anyway), or a new one.
Result<Prepared> prepare(const Place& place, const ModelOptions& options, bool quiet);

}  // namespace invar::cli
