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
// Plans are made at the compiler's default level, so a program has one digest.
Result<Prepared> prepare(const Place& place, const ModelOptions& options, bool quiet);

// Where the compiler's intermediate artifacts are kept: with INVAR_DEBUG set a new folder, which is named on standard error, else
// nowhere (empty).
Result<std::string> artifacts_folder();

}  // namespace invar::cli
