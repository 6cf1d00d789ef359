// Checkpoint -> plan, through the task folder: export and compile once per state of the checkpoint's files.
#pragma once

#include <memory>
#include <string>

#include "base/hash/digest_cache.h"
#include "base/operation_set.h"
#include "base/status.h"
#include "base/file/temporary_file.h"
#include "commands.h"
#include "model.h"
#include "plan/plan.h"

namespace invar::cli {

struct Prepared {
  plan::Plan plan;
  std::string folder;                               // where the plan's weight files lie
  std::shared_ptr<TemporaryFolder> temporary = {};  // that folder, where it goes when the process ends
  std::shared_ptr<DigestCache> hashed = {};              // weights whose bytes compiling has seen
  bool cached = false;                              // from a task folder
};

// reproducible where the name is empty; an error lists the names.
Result<OperationSet> operation_set(const std::string& name);

// How a task folder is used: its plan if it was made of the files as they are now (names, sizes, times and the content
// of the JSON files; weights are hashed at load anyway) and nothing in it was changed, else a new one (use); a new one
// in any case (replace); none, the plan is compiled in a temporary folder and stands for the files alone (none).
enum class Cache { use, replace, none };
// options.plan, or the checkpoint's. Plans are made at the compiler's default level, so a program has one digest.
Result<Prepared> prepare(const Place& place, const ModelOptions& options, bool quiet, Cache = Cache::use);

// The user's cache folder of Invar, "" where neither XDG_CACHE_HOME nor HOME is set.
std::string cache_folder();

// Where the compiler's intermediate artifacts are kept: with INVAR_DEBUG set a new folder, which is named on standard error, else
// nowhere (empty).
Result<std::string> artifacts_folder();

}  // namespace invar::cli
