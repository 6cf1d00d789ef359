#include "prepare.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "console.h"
#ifdef INVAR_COMPILER
#include "ir/ir.h"
#include "onnx/onnx.h"
#endif

namespace invar::cli {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const fs::path p = fs::path(path).parent_path();
  return p.empty() ? "." : p.string();
}

std::string default_tasks_root() {
  if (const char* v = std::getenv("XDG_CACHE_HOME"); v && *v) return std::string(v) + "/invar/tasks";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/invar/tasks" : "invar-tasks";
}

// What a plan depends on, cheap to compute: weights by name, size, time and inode, JSON files by content.
std::string identity(const std::string& folder, bool colocate, OperationSet set) {
  std::error_code ec;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".json")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  Sha256 h;
  h.update(INVAR_VERSION "\n")
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
  std::fprintf(stderr, "artifacts in %s\n", folder.c_str());
  return folder;
}

Result<Prepared> prepare(const Place& place, const ModelOptions& options, bool quiet) {
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
  (void)set;
  return not_covered(
      "this build has no compiler: make the plan elsewhere with `invar compile` and pass it with --plan");
#else
  const std::string id = identity(place.folder, options.colocate_tensors, set);
  std::string task = options.task_dir;
  if (task.empty()) {
    const std::string root = options.tasks_root.empty() ? default_tasks_root() : options.tasks_root;
    std::string name = place.name;
    std::replace(name.begin(), name.end(), '/', '-');
    task = root + "/" + name + "-" + id.substr(0, 16);
  }
  const std::string plan_path = task + "/plan.invar", id_path = task + "/identity";
  if (auto known = read_file(id_path); known && *known == id) {
    Phase phase("plan", quiet);
    if (auto plan = plan::load(plan_path)) {
      phase.done("ready in " + task);
      return Prepared{std::move(*plan), task};
    }
  }
  std::error_code ec;
  fs::create_directories(task, ec);
  if (ec) return bad_input("task folder " + task + ": " + ec.message() + ": choose another with --task-dir");
  // Until both stages are done, the folder claims nothing.
  fs::remove(id_path, ec);

  Phase exporting("export", quiet);
  INVAR_TRY(std::string model, onnx::export_checkpoint(place.folder, task, {options.colocate_tensors}));
  exporting.done(model);
  Phase compiling("compile", quiet);
  INVAR_TRY(onnx::Graph graph, onnx::read(model));
  ir::Options compiler;
  compiler.folder = task, compiler.operation_set = set;
  INVAR_TRY(compiler.artifacts, artifacts_folder());
  INVAR_TRY(plan::Plan plan, ir::compile_to(graph, compiler, plan_path));
  INVAR_CHECK_OK(write_file(id_path, id));
  compiling.done(plan_path + "  program " + to_hex(plan::digest(plan)).substr(0, 16));
  return Prepared{std::move(plan), task};
#endif
}

}  // namespace invar::cli
