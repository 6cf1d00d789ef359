#include "prepare.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/text/display.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "console.h"
#include "task_folder.h"
#ifdef INVAR_COMPILER
#include "compiler/compiler.h"
#include "checkpoint/checkpoint.h"
#include "onnx/onnx.h"
#endif

namespace invar::cli {
namespace {

namespace fs = std::filesystem;

// What a plan depends on, cheap to compute: weights by name, size, time and inode, JSON files by content.
std::string key_of(const std::string& folder, bool colocate, OperationSet set) {
  std::error_code ec;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".json")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  Sha256 h;
  h.update("task 1, " INVAR_VERSION "\n")
      .update(plan::kNumerics)
      .update(colocate ? "copy" : "link")
      .update(name_of(set));
  h.update(fs::weakly_canonical(folder, ec).string());
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0) continue;
    h.update("\n" + name + " ");
    if (name.ends_with(".json")) {
      if (auto text = read_file(path)) h.update(to_hex(sha256(*text)));
    } else {
      h.update(std::to_string(s.st_size) + " " + std::to_string(s.st_mtim.tv_sec) + "." +
               std::to_string(s.st_mtim.tv_nsec) + " " + std::to_string(s.st_ino));
    }
  }
  return to_hex(h.finish());
}

#ifdef INVAR_COMPILER
// Exports and compiles into the folder. `kept`: the folder where a person will find the result, "" for none.
Status make_plan(const Place& place, const ModelOptions& options, OperationSet set, const std::string& folder,
                 const std::string& kept, bool quiet, Prepared& prepared) {
  Phase exporting("export", quiet);
  INVAR_TRY(const std::string model,
            checkpoint::export_checkpoint(place.folder, folder, {options.colocate_tensors}));
  const auto shown = [&](const char* file) { return (kept.empty() ? "" : kept + "/") + file; };
  exporting.done(shown("model.onnx"));
  Phase compiling("compile", quiet);
  INVAR_TRY(onnx::Graph graph, onnx::read(model));
  compiler::Options compiler;
  prepared.hashed = std::make_shared<DigestCache>();
  compiler.folder = folder, compiler.operation_set = set, compiler.hashed = prepared.hashed.get();
  INVAR_TRY(compiler.artifacts, artifacts_folder());
  INVAR_TRY(prepared.plan, compiler::compile_to(graph, compiler, folder + "/plan.invar"));
  compiling.done(shown("plan.invar") + "  program " + to_hex(plan::digest(prepared.plan)).substr(0, 16));
  return {};
}

// The user's folder for this checkpoint and this key; "" where there is no place for one.
std::string task_path(const Place& place, const ModelOptions& options, const std::string& key) {
  if (!options.task_dir.empty()) return options.task_dir;
  std::string root = options.tasks_root;
  if (root.empty()) {
    const std::string cache = cache_folder();
    if (cache.empty()) return "";
    root = cache + "/tasks";
  }
  std::string name = place.name.substr(0, 128);  // file names have at most 255 bytes
  std::replace(name.begin(), name.end(), '/', '-');
  return root + "/" + name + "-" + key.substr(0, 16);
}
#endif

}  // namespace

Result<OperationSet> operation_set(const std::string& name) {
  if (name.empty()) return OperationSet::reproducible;
  if (const auto set = operation_set_from(name)) return *set;
  return bad_input("operation set '" + name + "' is not known; use one of " +
                   std::string(kOperationSetNames));
}

Result<std::string> artifacts_folder() {
  const char* wanted = std::getenv("INVAR_DEBUG");
  if (!wanted || !*wanted) return std::string();
  std::error_code ec;
  std::string folder = (fs::temp_directory_path(ec) / "invar-XXXXXX").string();
  if (ec || !::mkdtemp(folder.data()))
    return bad_input("INVAR_DEBUG is set and no folder for artifacts can be made in " +
                     fs::path(folder).parent_path().string() +
                     ": set TMPDIR to a folder that can be written");
  std::fprintf(stderr, "artifacts in %s\n", printable(folder).c_str());
  return folder;
}

std::string cache_folder() {
  if (const char* v = std::getenv("XDG_CACHE_HOME"); v && *v) return std::string(v) + "/invar";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/invar" : "";
}

Result<Prepared> prepare(const Place& place, const ModelOptions& options, bool quiet, Cache cache) {
  INVAR_TRY(const OperationSet set, operation_set(options.operation_set));
  if (!options.plan.empty()) {
    INVAR_TRY(plan::Plan plan, plan::load(options.plan));
    if (!options.operation_set.empty() && plan.operation_set != set)
      return bad_input(options.plan + ": it was compiled for the operation set " +
                       std::string(name_of(plan.operation_set)) + ", not " + options.operation_set +
                       ": compile again, or leave --operation-set out");
    return Prepared{std::move(plan), folder_of(options.plan)};
  }
#ifndef INVAR_COMPILER
  (void)place;
  (void)quiet;
  (void)cache;
  return not_covered(
      "this build has no compiler: make the plan elsewhere with `invar compile` and pass it with --plan");
#else
  Prepared prepared;
  const std::string key = key_of(place.folder, options.colocate_tensors, set);
  const std::string path = cache == Cache::none ? "" : task_path(place, options, key);
  if (path.empty()) {
    std::error_code ec;
    INVAR_TRY(TemporaryFolder made, TemporaryFolder::make(fs::temp_directory_path(ec).string()));
    INVAR_CHECK_OK(make_plan(place, options, set, made.path(), "", quiet, prepared));
    prepared.folder = made.path();
    prepared.temporary = std::make_shared<TemporaryFolder>(std::move(made));
    return prepared;
  }
  INVAR_TRY(const TaskFolder task, TaskFolder::open(path));
  prepared.folder = task.path();
  if (cache == Cache::use) {
    Phase phase("plan", quiet);
    TaskFolder::Content content = task.read(key);
    if (content.plan) {
      phase.done("ready in " + task.path());
      prepared.plan = std::move(*content.plan), prepared.cached = true;
      return prepared;
    }
    if (!content.damage.empty())
      std::fprintf(stderr, "  %-9s %s: %s; made anew\n", "damaged", task.path().c_str(),
                   content.damage.c_str());
  }
  INVAR_TRY(const TemporaryFolder made, task.make_temporary());
  INVAR_CHECK_OK(make_plan(place, options, set, made.path(), task.path(), quiet, prepared));
  const bool another_was_faster = cache == Cache::use && task.read(key).plan;
  if (!another_was_faster) {
    INVAR_CHECK_OK(task.store(made, key));
  }
  return prepared;
#endif
}

}  // namespace invar::cli
