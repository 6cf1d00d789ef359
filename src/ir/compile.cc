#include "ir/ir.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "ir/dialects.h"
#include "ir/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "num/env.h"

namespace invar::ir {
namespace {
using namespace mlir;

// Names come from the model; a line break in one must not forge a line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

// One line per refusal below a first line; the worst code leads: what is wrong before what is not covered.
Error joined(const std::string& graph, const std::vector<Error>& list) {
  Code code = Code::not_covered;
  for (const Error& e : list) {
    if (e.code == Code::bad_input && code == Code::not_covered) code = e.code;
    if (e.code == Code::internal) code = e.code;
  }
  if (list.size() == 1) return {code, graph + ": " + one_line(list[0].message)};
  std::string text =
      graph + ": " + std::to_string(list.size()) +
      (code == Code::not_covered ? " nodes are outside the guarantee:" : " nodes cannot be compiled:");
  for (const Error& e : list) text += "\n  " + one_line(e.message);
  return {code, text};
}

class Compiler {
 public:
  Compiler(const onnx::Graph& graph, const Options& options)
      : context_(MLIRContext::Threading::DISABLED),
        name_(graph.name.empty() ? "model" : one_line(graph.name)) {
    storage_.folder = options.folder;
    storage_.constants_file = options.constants_file;
    storage_.threads = options.threads;
    load_dialects(context_);
    module_ = import_graph(context_, graph, storage_.inlined);
  }
  Status run(Emit until);
  ModuleOp module() { return *module_; }
  std::string& constants() { return storage_.constants; }

 private:
  MLIRContext context_;
  std::string name_;
  Storage storage_;
  OwningOpRef<ModuleOp> module_;
};

Status Compiler::run(Emit until) {
  std::string said;
  ScopedDiagnosticHandler listen(&context_, [&](Diagnostic& d) {
    if (d.getSeverity() == DiagnosticSeverity::Error && said.empty()) said = d.str();
  });
  Refusals refused;
  PassManager passes(&context_);
  if (until != Emit::onnx) {
    passes.addNestedPass<func::FuncOp>(to_repro(&refused));
    passes.addNestedPass<func::FuncOp>(fold(&refused));
  }
  if (until == Emit::plan) passes.addNestedPass<func::FuncOp>(to_plan(&storage_));
  if (succeeded(passes.run(*module_)) && succeeded(verify(*module_))) return {};
  refused.list.insert(refused.list.end(), storage_.errors.begin(), storage_.errors.end());
  if (!refused.list.empty()) return joined(name_, refused.list);
  return Error{Code::internal, name_ + ": the compiler contradicts itself: " + said};
}

}  // namespace

void load_dialects(MLIRContext& context) {
  context.loadDialect<func::FuncDialect, OnnxDialect, ReproDialect, PlanDialect>();
}

Result<Program> compile(const onnx::Graph& graph, const Options& options) {
  const num::ArithmeticEnv env;
  Compiler compiler(graph, options);
  INVAR_CHECK_OK(compiler.run(Emit::plan));
  INVAR_TRY(plan::Plan plan, plan_from(compiler.module()));
  plan.operation_set = options.operation_set;
  // The reader's own checks are the last word on what a plan may be.
  if (auto read = plan::parse(plan::print(plan), graph.name); !read)
    return not_covered("the program does not fit into a plan: " + read.error().message);
  return Program{std::move(plan), std::move(compiler.constants())};
}

Result<plan::Plan> compile_to(const onnx::Graph& graph, const std::string& model_folder,
                              const std::string& path, OperationSet set) {
  const std::filesystem::path p(path);
  Options options{model_folder};
  options.constants_file = p.filename().string() + ".constants";
  options.operation_set = set;
  INVAR_TRY(Program program, compile(graph, options));
  // Constants first: a plan that can be read is complete.
  const auto& weights = program.plan.weights;
  if (std::any_of(weights.begin(), weights.end(),
                  [&](const plan::Weight& w) { return w.file == options.constants_file; })) {
    INVAR_CHECK_OK(write_file((p.parent_path() / options.constants_file).string(), program.constants));
  }
  INVAR_CHECK_OK(write_file(path, plan::print(program.plan)));
  return std::move(program.plan);
}

Result<std::string> emit(const onnx::Graph& graph, const Options& options, Emit stage) {
  const num::ArithmeticEnv env;
  Compiler compiler(graph, options);
  INVAR_CHECK_OK(compiler.run(stage));
  std::string text;
  llvm::raw_string_ostream out(text);
  compiler.module().print(out);
  return text + "\n";
}

}  // namespace invar::ir
