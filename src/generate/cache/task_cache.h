// Checkpoint -> plan: export and compile once per state of the checkpoint's files. Task folders
// keep the results.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file/temporary_file.h"
#include "base/hash/digest_cache.h"
#include "base/operation_set.h"
#include "base/status.h"
#include "generate/model/model_folder.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "plan/plan.h"

namespace invar::generate {

struct CompiledModel {
  plan::Plan plan;
  std::string folder;                               // where the plan's weight files lie
  std::shared_ptr<TemporaryFolder> temporary = {};  // that folder, where it goes when the process ends
  std::shared_ptr<DigestCache> hashed = {};         // weights whose bytes this process has seen
  bool cached = false;                              // from a task folder
  bool has_copies = false;                          // of weights, in that folder
  bool given = false;                               // nobody compiled it here from its program
  bool of_call = false;                             // for one call's sizes, and values of inputs
  std::shared_ptr<const void> in_use = {};          // keeps prune_tasks() from that folder
};

// The set of this name, absent for an empty one; an error lists the names.
Result<std::optional<OperationSet>> operation_set(const std::string& name);
// The same of a profile.
Result<std::optional<Profile>> profile(const std::string& name);
// bad_input: the plan in this file has not the profile or the set that was asked for.
Status check_made_for(const plan::Plan&, const std::string& path, std::optional<OperationSet>,
                      std::optional<Profile>);

// How a task folder is used.
// use      its plan, if that was made of the files as they are now (names, sizes, times, the
//          content of the JSON files and of an ONNX model; weights are hashed at load anyway) and
//          nothing in the folder was changed; else a new one
// replace  a new one in any case
// none     the plan is compiled in a temporary folder and stands for the files alone
enum class CachePolicy { use, replace, none };
// Digests that somebody claims of the tensors of a checkpoint, by name.
using TensorDigests = std::map<std::string, Digest, std::less<>>;
// A plan that was given, which must compute with the tensors of its program
// (plan::check_weight_provenance).
Result<CompiledModel> given_plan(const std::string& path);
// options.plan, or the checkpoint's. Plans are made at the compiler's default level, so a program
// has one digest. `presumed`: taken into the plan as they are, so that the bytes are hashed once,
// when the weights are loaded, which compares them; of a checkpoint alone. Null: none.
Result<CompiledModel> prepare(const ModelLocation&, const ModelOptions&, Observer&,
                              CachePolicy = CachePolicy::use, const TensorDigests* presumed = nullptr);

// The same of the checkpoint's head for several tokens alone, in a temporary folder. not_covered:
// it has none.
Result<CompiledModel> prepare_prediction_head(const ModelLocation&, Profile, Observer&);

// What a plan of an ONNX model depends on: its file by content; the files around it, which may hold
// its weights, by name, size, time and inode: all, or those of `files`.
Result<std::string> key_of_onnx(const std::string& model, OperationSet, Profile,
                                const std::set<std::string>* files = nullptr);
// Whether the user asked for the compiler's intermediate artifacts, which a cached plan has not.
bool wants_artifacts();

// The user's cache folder of Invar, "" where neither XDG_CACHE_HOME nor HOME is set.
std::string cache_folder();

// Task folders as they are kept from run to run. `root`: as ModelOptions::tasks_root.
struct CachedTask {
  std::string path;
  uint64_t bytes = 0;    // of its own files; linked weights are elsewhere
  int64_t last_use = 0;  // seconds since 1970
  bool in_use = false;   // by a run on this machine
};
std::string tasks_folder(const std::string& root);
std::vector<CachedTask> cached_tasks(const std::string& root);  // by last use, the oldest first

// The folders that go. One that a run uses stays.
struct PruneRule {
  bool all = false;
  std::optional<int64_t> used_before = {};  // seconds since 1970
  std::optional<uint64_t> most_bytes = {};  // the oldest go until so much is left
};
struct Pruned {
  size_t removed = 0;
  uint64_t bytes = 0;
  std::vector<std::string> kept = {};  // in use, or not to be removed
};
Pruned prune_tasks(const std::string& root, const PruneRule&);

// The folder of the compiler's intermediate artifacts: with INVAR_DEBUG set a new folder, which the
// observer is told, else nowhere (empty).
Result<std::string> artifacts_folder(Observer&);

}  // namespace invar::generate
