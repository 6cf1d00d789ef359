#include "compiler/emit/program_source.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/emit/weight_hashing.h"
#include "compiler/passes/idiom_recognition.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "onnx/recipe.h"
#include "onnx/tensor.h"
#include "plan/keywords.h"
#include "plan/program_text.h"

namespace invar::compiler {
namespace {

constexpr size_t kMaxRank = 8;  // of a tensor in a plan (plan.2)

using ByteRange = std::tuple<std::string, uint64_t, uint64_t>;
using Digests = std::map<ByteRange, Digest>;  // of byte ranges of files

ByteRange range_of(const onnx::TensorRef& t) {
  return {t.file, t.offset, t.length};
}

// Adds the digests of these ranges. Most are weights of the plan, whose digests are known.
Status hash_tensors(const std::vector<const onnx::TensorRef*>& tensors, const Options& options,
                    Digests& known) {
  std::vector<HashRequest> ranges;
  for (const onnx::TensorRef* t : tensors)
    if (!known.contains(range_of(*t))) ranges.push_back({t->file, t->offset, t->length});
  INVAR_CHECK_OK(hash_ranges(options.folder, ranges, options.threads, options.hashed, options.progress));
  for (const HashRequest& r : ranges) known.emplace(ByteRange(r.file, r.offset, r.length), r.sha256);
  return {};
}

Result<std::optional<Program>> program_of_recipe(const onnx::Recipe& recipe, const onnx::Graph& graph,
                                                 const plan::Plan& plan, const Options& options,
                                                 Digests known) {
  std::vector<const onnx::TensorRef*> tensors;
  for (const onnx::TensorRef& t : graph.initializers)
    if (!t.file.empty()) tensors.push_back(&t);  // another one follows from the parameters
  INVAR_CHECK_OK(hash_tensors(tensors, options, known));
  Program program;
  program.text = plan::program_text(recipe.name, plan.numerics, plan::profile_of(plan.choices),
                                    plan.operation_set, recipe.parameters);
  program.source = {recipe.name, sha256(program.text), {}};
  for (const onnx::TensorRef* t : tensors) {
    const auto dtype = onnx::dtype_of(t->data_type);
    if (!dtype) return Error{Code::internal, "tensor " + t->name + " has a type without a name"};
    program.source.tensors.push_back({t->name, *dtype, t->shape, known.at(range_of(*t)), "", 0, 0});
  }
  return std::optional(std::move(program));
}

Result<std::optional<Program>> program_of_graph(const onnx::Graph& graph, const plan::Plan& plan,
                                                const onnx::AppliedChoices& choices, const Options& options,
                                                Digests known) {
  std::vector<const onnx::TensorRef*> in_files;
  const auto first = onnx::normal_form(graph, [&](const onnx::TensorRef& t) {
    if (!t.file.empty()) in_files.push_back(&t);
    return Digest{};
  });
  if (!first) return std::optional<Program>();
  INVAR_CHECK_OK(hash_tensors(in_files, options, known));
  auto form = onnx::normal_form(
      graph,
      [&](const onnx::TensorRef& t) {
        return t.file.empty() ? sha256(t.inline_data) : known.at(range_of(t));
      },
      choices);
  Program program;
  program.text = plan::program_text(plan::kGraphRecipe, plan.numerics, plan::profile_of(plan.choices),
                                    plan.operation_set, {});
  for (const std::string& choice : plan.choices)
    if (choice != kExact16Choice) program.text += "choice " + choice + "\n";
  if (const auto made_by = graph.metadata.find(onnx::kExporter); made_by != graph.metadata.end())
    program.text += "exporter " + plan::quote(made_by->second) + "\n";
  program.text += form->text;
  program.source = {std::string(plan::kGraphRecipe), sha256(program.text), {}};
  for (onnx::NormalForm::Constant& c : form->constants)
    if (const auto dtype = onnx::dtype_of(c.data_type); dtype && c.shape.size() <= kMaxRank)
      program.source.tensors.push_back({c.name, *dtype, std::move(c.shape), c.sha256, "", 0, 0});
  return std::optional(std::move(program));
}

}  // namespace

Result<std::optional<Program>> program_of(const onnx::Graph& graph, const plan::Plan& plan,
                                          const onnx::AppliedChoices& choices, const Options& options) {
  Digests known;
  for (const plan::Weight& w : plan.weights)
    if (w.file != options.constants_file) known.emplace(ByteRange(w.file, w.offset, w.length), w.sha256);
  const onnx::Recipe recipe = onnx::recipe_of(graph.metadata);
  INVAR_TRY(std::optional<Program> program,
            options.trusts_recipe && !recipe.name.empty()
                ? program_of_recipe(recipe, graph, plan, options, std::move(known))
                : program_of_graph(graph, plan, choices, options, std::move(known)));
  if (program)
    std::sort(program->source.tensors.begin(), program->source.tensors.end(),
              [](const plan::Weight& a, const plan::Weight& b) { return a.name < b.name; });
  return program;
}

onnx::AppliedChoices applied_choices(mlir::ModuleOp module) {
  onnx::AppliedChoices all;
  module.walk([&](mlir::func::FuncOp function) {
    if (auto applied = function->getAttrOfType<mlir::ArrayAttr>(kAppliedChoicesAttr))
      for (auto one : applied.getAsRange<mlir::StringAttr>()) {
        const auto [number, choice] = one.getValue().split(' ');
        all[std::stoull(number.str())].insert(choice.str());
      }
  });
  return all;
}

}  // namespace invar::compiler
