// Plans of ONNX models that `invar infer` is given, in task folders (onnx.40).
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <variant>

#include "base/hash/sha256.h"
#include "generate/cache/task_folder.h"
#include "generate/onnx/compile_onnx.h"
#ifdef INVAR_COMPILER
#include "onnx/onnx.h"
#endif

namespace invar::generate {

#ifdef INVAR_COMPILER
namespace {

// What a plan for one call depends on beside the model: names, types and shapes of its inputs, and
// the values of those that may be in the plan.
std::string key_of_call(const std::string& model_key, run::Function::NamedTensors inputs) {
  std::sort(inputs.begin(), inputs.end(), [](auto& a, auto& b) { return a.first < b.first; });
  Sha256 h;
  h.update("call 1 " + model_key);
  for (const auto& [name, t] : inputs) {
    h.update("\n" + std::to_string(name.size()) + " " + name + " " + std::string(name_of(t.dtype)));
    for (const int64_t d : t.shape) h.update(" " + std::to_string(d));
    if (may_be_in_plan(t.dtype, t.bytes.size()))
      h.update("=").update(std::string_view(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()));
  }
  return to_hex(h.finish());
}

// The entries of the model's folder that hold its weights.
std::set<std::string> weight_files(const onnx::Graph& graph) {
  std::set<std::string> files;
  const auto add = [&](const auto& self, const onnx::Graph& g) -> void {
    for (const onnx::TensorRef& t : g.initializers) files.insert(t.file.substr(0, t.file.find('/')));
    for (const onnx::Node& n : g.nodes) {
      for (const auto& [name, value] : n.attributes)
        if (const auto* t = std::get_if<onnx::TensorRef>(&value))
          files.insert(t->file.substr(0, t->file.find('/')));
      for (const onnx::Body& body : n.bodies) self(self, body.graph);
    }
  };
  add(add, graph);
  return files;
}

std::string task_of(const std::string& root, const std::string& model, const std::string& key) {
  std::string name = model.substr(model.rfind('/') + 1);
  return root + "/" + name.substr(0, name.rfind('.')).substr(0, 128) + "-" + key.substr(0, 16);
}

Result<std::shared_ptr<const void>> open_task(const std::string& path) {
  INVAR_TRY(TaskFolder opened, TaskFolder::open(path));
  return std::shared_ptr<const void>(std::make_shared<const TaskFolder>(std::move(opened)));
}

}  // namespace

Result<CompiledModel> prepare_call(const TensorProgram& program, Observer& observer) {
  const std::string root = tasks_folder("");
  if (root.empty() || wants_artifacts() || !program.dims.empty() || !program.bound.empty())
    return compile_onnx(program, OperationSet::reproducible, /*keeps_memory=*/false, observer);
  INVAR_TRY(onnx::Graph graph, onnx::read(program.model));
  const std::set<std::string> files = weight_files(graph);
  INVAR_TRY(const std::string model,
            key_of_onnx(program.model, OperationSet::reproducible, program.profile, &files));
  // A plan for all calls serves this one; else there may be one for calls like it.
  const std::string all = to_hex(sha256("tensors " + model)), one = key_of_call(model, *program.call);
  CompiledModel made;
  std::error_code ec;
  for (const std::string& key : {all, one}) {
    const std::string path = task_of(root, program.model, key);
    if (!std::filesystem::exists(path, ec)) continue;
    INVAR_TRY(made.in_use, open_task(path));
    const TaskFolder& task = *static_cast<const TaskFolder*>(made.in_use.get());
    TaskFolder::Content content = task.read(key);
    if (!content.damage.empty())
      observer.note("damaged", task.path() + ": " + content.damage + "; made again");
    if (!content.plan) continue;
    observer.phase("plan")->done("ready in " + task.path());
    made.folder = task.path(), made.plan = std::move(*content.plan);
    made.cached = true, made.of_call = key == one;
    return made;
  }
  INVAR_TRY(made.in_use, open_task(task_of(root, program.model, one)));
  const std::shared_ptr<const void> first = made.in_use;
  {
    INVAR_TRY(const TemporaryFolder folder, static_cast<const TaskFolder*>(first.get())->make_temporary());
    INVAR_CHECK_OK(compile_onnx_into(folder.path(), program, OperationSet::reproducible,
                                     /*keeps_memory=*/false, observer, made, &graph));
    if (!made.of_call) {
      INVAR_TRY(made.in_use, open_task(task_of(root, program.model, all)));
    }
    const TaskFolder& task = *static_cast<const TaskFolder*>(made.in_use.get());
    made.folder = task.path();
    const std::string& key = made.of_call ? one : all;
    if (const bool another_was_faster = task.read(key).plan.has_value(); !another_was_faster) {
      INVAR_CHECK_OK(task.store(folder, key));
    }
  }
  if (!made.of_call) std::filesystem::remove(task_of(root, program.model, one), ec);  // it is empty
  return made;
}
#else
Result<CompiledModel> prepare_call(const TensorProgram& program, Observer& observer) {
  return compile_onnx(program, OperationSet::reproducible, /*keeps_memory=*/false, observer);
}
#endif

}  // namespace invar::generate
