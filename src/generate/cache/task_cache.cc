#include "generate/cache/task_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <vector>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "generate/cache/task_folder.h"
#include "generate/onnx/compile_onnx.h"
#include "generate/onnx/onnx_folder.h"
#include "plan/program_text.h"
#include "plan/weight_provenance.h"
#include "weights/weight_file.h"
#ifdef INVAR_COMPILER
#include "checkpoint/checkpoint.h"
#include "compiler/compiler.h"
#include "onnx/onnx.h"
#endif

namespace invar::generate {
namespace {

namespace fs = std::filesystem;

#ifdef INVAR_COMPILER
// A key of all that a plan depends on, cheap to compute: weights by name, size, time and inode,
// JSON files by content.
std::string key_of(const std::string& folder, const ModelOptions& options, OperationSet set,
                   Profile profile) {
  std::error_code ec;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".gguf") || name.ends_with(".json"))
      names.push_back(name);
    // Modules of sentence-transformers have a config.json each.
    if (fs::exists(entry.path() / "config.json", ec)) names.push_back(name + "/config.json");
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(folder + "/" + name);
  if (!options.adapter.empty())
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
      names.push_back(name), paths.push_back(options.adapter + "/" + name);
  Sha256 h;
  h.update("task 3, " INVAR_VERSION "\n")
      .update(plan::kNumerics)
      .update(options.colocate_tensors ? "copy" : "link")
      .update(name_of(set));
  if (profile != Profile::fp32) h.update(name_of(profile));
  if (options.long_context) h.update("long context");
  if (!options.adapter.empty())
    h.update("adapter").update(fs::weakly_canonical(options.adapter, ec).string());
  h.update(fs::weakly_canonical(folder, ec).string());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string &name = names[i], &path = paths[i];
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

// The compilation has hashed the numbers of packed weights: later loads hash the blocks alone.
Status keep_checked(const plan::Plan& plan, const std::string& folder, const DigestCache& hashed) {
  const std::string path = folder + "/" + std::string(weights::kIndexFile);
  std::error_code ec;
  if (!fs::exists(path, ec)) return {};
  INVAR_TRY(const auto file, weights::WeightFile::open(path));
  std::vector<weights::WeightFile::Checked> ranges;
  for (const plan::Weight& w : plan.weights)
    // The files are those that were hashed.
    if (weights::is_index(w.file) && file.is_known(hashed, w.offset, w.length, w.sha256))
      ranges.push_back({w.offset, w.length, w.sha256});
  return file.write_checked(ranges);
}

// Compiles into the folder what lies at `model`, or else exports before. `kept`: the folder where a
// person will find the result, "" for none.
Status make_plan(const ModelLocation& location, const checkpoint::ExportOptions& options, OperationSet set,
                 Profile profile, const std::string& onnx_model, const std::string& folder,
                 const std::string& kept, const TensorDigests* presumed, Observer& observer,
                 CompiledModel& prepared) {
  if (!onnx_model.empty()) {
    TensorProgram program;
    program.model = onnx_model, program.profile = profile;
    return compile_onnx_into(folder, program, set, /*keeps_memory=*/true, observer, prepared);
  }
  const auto exporting = observer.phase("export");
  checkpoint::ExportOptions in_place = options;
  in_place.keep_packed = true;
  INVAR_TRY(const std::string model, checkpoint::export_checkpoint(location.folder, folder, in_place));
  const auto shown = [&](const char* file) { return (kept.empty() ? "" : kept + "/") + file; };
  exporting->done(shown("model.onnx"));
  const auto compiling = observer.phase("compile");
  INVAR_TRY(onnx::Graph graph, onnx::read(model));
  compiler::Options compiler;
  prepared.hashed = std::make_shared<DigestCache>();
  compiler.folder = folder, compiler.operation_set = set, compiler.hashed = prepared.hashed.get();
  compiler.exact16 = profile == Profile::exact16, compiler.presumed = presumed;
  compiler.progress = bytes_of(*compiling);
  compiler.trusts_recipe = true;  // we exported the model just now
  INVAR_TRY(compiler.artifacts, artifacts_folder(observer));
  INVAR_TRY(prepared.plan, compiler::compile_to(graph, compiler, folder + "/plan.invar"));
  if (!presumed) {
    INVAR_CHECK_OK(keep_checked(prepared.plan, folder, *prepared.hashed));
  }
  compiling->done(shown("plan.invar") + "  program " + to_hex(prepared.plan.source->program).substr(0, 16));
  return {};
}

// The user's folder for this checkpoint and this key; "" where there is no place for one.
std::string task_path(const ModelLocation& location, const ModelOptions& options, const std::string& key) {
  if (!options.task_dir.empty()) return options.task_dir;
  const std::string root = tasks_folder(options.tasks_root);
  if (root.empty()) return "";
  std::string name = location.name.substr(0, 128);  // file names have at most 255 bytes
  std::replace(name.begin(), name.end(), '/', '-');
  return root + "/" + name + "-" + key.substr(0, 16);
}
#endif

}  // namespace

#ifdef INVAR_COMPILER
Result<std::string> key_of_onnx(const std::string& model, OperationSet set, Profile profile,
                                const std::set<std::string>* files) {
  std::error_code ec;
  const std::string folder = folder_of(model);
  INVAR_TRY(const MappedFile file, MappedFile::open(model));
  Sha256 h;
  h.update("onnx task 1, " INVAR_VERSION "\n").update(plan::kNumerics).update(name_of(set));
  if (profile != Profile::fp32) h.update(name_of(profile));
  h.update(fs::weakly_canonical(model, ec).string() + "\n" + to_hex(sha256(file.text())));
  std::vector<std::string> others;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    struct stat s {};
    const std::string path = entry.path().string();
    if (path == model || path.ends_with(".json") ||
        (files && !files->contains(entry.path().filename().string())) || ::stat(path.c_str(), &s) != 0 ||
        !S_ISREG(s.st_mode))
      continue;
    others.push_back("\n" + path + " " + std::to_string(s.st_size) + " " + std::to_string(s.st_mtim.tv_sec) +
                     "." + std::to_string(s.st_mtim.tv_nsec) + " " + std::to_string(s.st_ino));
  }
  std::sort(others.begin(), others.end());
  for (const std::string& other : others) h.update(other);
  return to_hex(h.finish());
}
#endif

Result<std::optional<OperationSet>> operation_set(const std::string& name) {
  const auto set = operation_set_from(name);
  if (set || name.empty()) return set;
  return bad_input("operation set '" + name + "' is not known; use one of " +
                   std::string(kOperationSetNames));
}

Result<std::optional<Profile>> profile(const std::string& name) {
  const auto known = profile_from(name);
  if (known || name.empty()) return known;
  return bad_input("numerics: '" + name + "' is not known; use one of " + std::string(kProfileNames));
}

Status check_made_for(const plan::Plan& plan, const std::string& path, std::optional<OperationSet> set,
                      std::optional<Profile> profile) {
  const auto other = [&](const char* what, std::string_view is, std::string_view wanted, const char* option) {
    return bad_input(path + ": it was compiled for the " + what + " " + std::string(is) + ", not " +
                     std::string(wanted) + ": compile again, or leave " + option + " out");
  };
  if (set && plan.operation_set != *set)
    return other("operation set", name_of(plan.operation_set), name_of(*set), "--operation-set");
  if (const Profile is = plan::profile_of(plan.choices); profile && is != *profile)
    return other("numerics", name_of(is), name_of(*profile), "--numerics");
  return {};
}

bool wants_artifacts() {
  const char* wanted = std::getenv("INVAR_DEBUG");
  return wanted && *wanted;
}

Result<std::string> artifacts_folder(Observer& observer) {
  if (!wants_artifacts()) return std::string();
  const auto root = temporary_root();
  if (!root) return Error{root.error().code, "INVAR_DEBUG is set: " + root.error().message};
  std::string folder = *root + "/invar-XXXXXX";
  if (!::mkdtemp(folder.data()))
    return bad_input("INVAR_DEBUG is set and no folder for artifacts can be made in " + *root +
                     ": set TMPDIR to a folder that can be written");
  observer.artifacts(folder);
  return folder;
}

std::string cache_folder() {
  if (const char* v = std::getenv("XDG_CACHE_HOME"); v && *v) return std::string(v) + "/invar";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/invar" : "";
}

static CompiledModel given_as(plan::Plan plan, const std::string& path) {
  CompiledModel model{std::move(plan), folder_of(path)};
  model.given = true;
  return model;
}

Result<CompiledModel> given_plan(const std::string& path) {
  INVAR_TRY(plan::Plan plan, plan::load(path));
  INVAR_CHECK_OK(plan::check_weight_provenance(plan, path));
  return given_as(std::move(plan), path);
}

Result<CompiledModel> prepare(const ModelLocation& location, const ModelOptions& options, Observer& observer,
                              CachePolicy cache, const TensorDigests* presumed) {
  if (!options.plan.empty()) {
    INVAR_TRY(plan::Plan plan, plan::load(options.plan));
    INVAR_CHECK_OK(check_made_for(plan, options.plan, options.operation_set, options.profile));
    Status bound = plan::check_weight_provenance(plan, options.plan);
#ifdef INVAR_COMPILER
    if (!bound && bound.error().code == Code::not_covered) {  // constants that were computed from tensors
      ModelOptions own = options;
      own.plan.clear(), own.operation_set = plan.operation_set;
      own.profile = plan::profile_of(plan.choices);
      INVAR_TRY(const CompiledModel computed, prepare(location, own, observer, CachePolicy::none));
      bound = plan::check_weight_provenance(plan, options.plan, &computed.plan);
    }
#endif
    INVAR_CHECK_OK(bound);
    return given_as(std::move(plan), options.plan);
  }
#ifndef INVAR_COMPILER
  (void)location;
  (void)observer;
  (void)cache, (void)presumed;
  return not_covered(
      "this build has no compiler: make the plan elsewhere with `invar compile` and pass it with --plan");
#else
  CompiledModel prepared;
  const OperationSet set = options.operation_set.value_or(OperationSet::reproducible);
  const Profile profile = options.profile.value_or(Profile::fp32);
  INVAR_TRY(const std::string onnx_model, onnx_model_of(location));
  if (!onnx_model.empty() && !options.adapter.empty())
    return not_covered("--adapter: " + onnx_model +
                       " is an ONNX model, whose layers have no names: give the checkpoint of the model");
  const checkpoint::ExportOptions exported{.colocate_tensors = options.colocate_tensors,
                                           .long_context = options.long_context,
                                           .adapter = options.adapter};
  std::string key;
  if (onnx_model.empty()) {
    key = key_of(location.folder, options, set, profile);
  } else {
    INVAR_TRY(key, key_of_onnx(onnx_model, set, profile));
  }
  const std::string path = cache == CachePolicy::none ? "" : task_path(location, options, key);
  if (path.empty()) {
    INVAR_TRY(TemporaryFolder made, TemporaryFolder::make());
    INVAR_CHECK_OK(make_plan(location, exported, set, profile, onnx_model, made.path(), "", presumed,
                             observer, prepared));
    prepared.folder = made.path();
    prepared.temporary = std::make_shared<TemporaryFolder>(std::move(made));
    return prepared;
  }
  INVAR_TRY(TaskFolder opened, TaskFolder::open(path));
  const auto held = std::make_shared<const TaskFolder>(std::move(opened));
  const TaskFolder& task = *held;
  prepared.folder = task.path(), prepared.in_use = held;
  prepared.has_copies = options.colocate_tensors || !onnx_model.empty();
  if (cache == CachePolicy::use && !wants_artifacts()) {  // artifacts are those of a compilation
    const auto phase = observer.phase("plan");
    TaskFolder::Content content = task.read(key);
    if (content.plan) {
      phase->done("ready in " + task.path());
      prepared.plan = std::move(*content.plan), prepared.cached = true;
      if (!onnx_model.empty() && prepared.plan.states.empty()) observer.note("memory", kWholePrefix);
      return prepared;
    }
    if (!content.damage.empty())
      observer.note("damaged", task.path() + ": " + content.damage + "; made anew");
  }
  INVAR_TRY(const TemporaryFolder made, task.make_temporary());
  INVAR_CHECK_OK(make_plan(location, exported, set, profile, onnx_model, made.path(), task.path(), presumed,
                           observer, prepared));
  const bool another_was_faster = cache == CachePolicy::use && task.read(key).plan;
  if (!another_was_faster) {
    INVAR_CHECK_OK(task.store(made, key));
  }
  return prepared;
#endif
}

Result<CompiledModel> prepare_prediction_head(const ModelLocation& location, Profile profile,
                                              Observer& observer) {
#ifndef INVAR_COMPILER
  (void)location, (void)profile, (void)observer;
  return not_covered("this build has no compiler, which makes the head for several tokens");
#else
  INVAR_TRY(const std::string onnx_model, onnx_model_in(location.folder));
  if (!onnx_model.empty()) return not_covered(onnx_model + ": an ONNX model has no head for several tokens");
  INVAR_TRY(TemporaryFolder made, TemporaryFolder::make());
  CompiledModel prepared;
  INVAR_CHECK_OK(make_plan(location, {.prediction_head = true}, OperationSet::reproducible, profile, "",
                           made.path(), "", nullptr, observer, prepared));
  prepared.folder = made.path();
  prepared.temporary = std::make_shared<TemporaryFolder>(std::move(made));
  return prepared;
#endif
}

}  // namespace invar::generate
