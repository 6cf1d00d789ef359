#include "compiler/compiler.h"

#include <algorithm>
#include <filesystem>

#include "base/file/file.h"
#include "compiler/dialects/dialects.h"
#include "compiler/passes/passes.h"
#include "compiler/lowering/rule_registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "num/env.h"

namespace invar::compiler {
namespace {
using namespace mlir;

std::string text_of(const Refusal& r) {
  if (r.op.empty()) return r.reason;
  const std::string more = r.nodes == 1 ? "" : " and " + std::to_string(r.nodes - 1) + " more";
  return r.op + ", node \"" + r.node + "\"" + more + "): " + r.reason;
}

// One item per refusal; the worst code leads: what is wrong before what is not covered.
Error joined(const std::string& graph, const std::vector<Refusal>& list) {
  Code code = Code::not_covered;
  int64_t nodes = 0;
  for (const Refusal& r : list) {
    nodes += r.nodes;
    if (r.code == Code::bad_input && code == Code::not_covered) code = r.code;
    if (r.code == Code::internal) code = r.code;
  }
  if (list.size() == 1) return {code, graph + ": " + text_of(list[0])};
  Error all{code, graph + ": " + std::to_string(nodes) +
                      (code == Code::not_covered ? " nodes are outside the guarantee:"
                                                 : " nodes cannot be compiled:")};
  for (const Refusal& r : list) all.items.push_back(text_of(r));
  return all;
}

class Compiler {
 public:
  Compiler(const onnx::Graph& graph, const Options& options, const Settled& settled, bool settles = true)
      : context_(MLIRContext::Threading::DISABLED),
        name_(graph.name.empty() ? "model" : graph.name),
        options_(options),
        refused_{{}, settled, settles} {
    storage_.folder = options.folder;
    storage_.constants_file = options.constants_file;
    storage_.threads = options.threads, storage_.hashed = options.hashed;
    load_dialects(context_);
    module_ = import_graph(context_, graph, storage_.inlined, settled);
  }
  // All stages, or those up to this one.
  Status run(const std::string& until = "plan");
  ModuleOp module() { return *module_; }
  const Settled& settled() const { return refused_.settled; }
  std::string& constants() { return storage_.constants; }
  std::string text() {
    std::string text;
    llvm::raw_string_ostream out(text);
    module_->print(out);
    return text + "\n";
  }

  // The passes in their order, each from a level on, and the dialect that is complete behind it.
  struct Stage {
    const char* name;
    int level;
    std::unique_ptr<Pass> (*pass)(Compiler&);
    const char* completes = "";
  };
  static llvm::ArrayRef<Stage> stages() {
    static const Stage all[] = {
        {"onnx-to-repro", 0, [](Compiler& c) { return to_repro(&c.refused_, c.options_.stateless); }},
        {"repro-recover", 0, [](Compiler& c) { return recover(c.choices_); }},
        {"repro-fold", 1, [](Compiler&) { return fold(); }},
        {"repro-simplify", 2, [](Compiler&) { return simplify(); }},
        {"repro-evaluate", 2, [](Compiler& c) { return evaluate_weights(&c.storage_); }},
        {"repro-turn", 3, [](Compiler&) { return turn(); }},
        {"repro-settle", 0, [](Compiler&) { return settle(); }, kRepro},
        {"repro-to-plan", 0, [](Compiler& c) { return to_plan(&c.storage_); }, kPlan}};
    return all;
  }
  static constexpr char kOnnx[] = "onnx", kRepro[] = "repro", kPlan[] = "plan";

 private:
  Status pass(std::unique_ptr<Pass>);
  // The text after the stage of this number.
  Status keep(int number, const std::string& stage) {
    if (options_.artifacts.empty()) return {};
    return write_file(options_.artifacts + "/" + std::to_string(number) + "-" + stage + ".mlir", text());
  }
  MLIRContext context_;
  std::string name_;
  const Options& options_;
  Storage storage_;
  Refusals refused_;
  std::vector<std::string> choices_;
  OwningOpRef<ModuleOp> module_;
};

Status Compiler::pass(std::unique_ptr<Pass> pass) {
  std::string said;
  ScopedDiagnosticHandler listen(&context_, [&](Diagnostic& d) {
    if (d.getSeverity() == DiagnosticSeverity::Error && said.empty()) said = d.str();
  });
  PassManager passes(&context_);
  passes.enableVerifier(false);  // once is enough: below
  if (pass->getOpName() == ModuleOp::getOperationName())
    passes.addPass(std::move(pass));
  else
    passes.addNestedPass<func::FuncOp>(std::move(pass));
  if (succeeded(passes.run(*module_)) && succeeded(verify(*module_))) return {};
  for (const Error& e : storage_.errors)
    refused_.list.push_back({.code = e.code, .op = "", .reason = e.message});
  if (!refused_.list.empty()) return joined(name_, refused_.list);
  return Error{Code::internal, name_ + ": the compiler contradicts itself: " + said};
}

Status Compiler::run(const std::string& until) {
  INVAR_TRY(choices_, choices_of(options_.choices));
  INVAR_CHECK_OK(keep(0, kOnnx));
  if (until == kOnnx) return {};
  int number = 0;
  for (const Stage& stage : stages()) {
    ++number;
    if (stage.level <= options_.opt) {
      INVAR_CHECK_OK(pass(stage.pass(*this)));
      INVAR_CHECK_OK(keep(number, stage.name));
    } else if (until == stage.name) {
      return bad_input("stage " + until + ": a pass from level " + std::to_string(stage.level) +
                       " on, which level " + std::to_string(options_.opt) + " leaves out");
    }
    if (until == stage.name || until == stage.completes) return {};
  }
  std::string names;
  for (const std::string& name : compiler::stages()) names += (names.empty() ? "" : ", ") + name;
  return bad_input("stage " + until + ": there is none of this name; there are " + names);
}

}  // namespace

void load_dialects(MLIRContext& context) {
  context.loadDialect<func::FuncDialect, OnnxDialect, ReproDialect, PlanDialect>();
}

namespace {

// A compiler that ran. Where a model is refused because dimensions of its inputs must be what the file does not say, it is compiled
// again with these. One that is wrong with them is refused as it is without them.
Result<std::unique_ptr<Compiler>> compiled(const onnx::Graph& graph, const Options& options,
                                           const std::string& until) {
  for (Settled settled;;) {
    auto compiler = std::make_unique<Compiler>(graph, options, settled);
    const Status done = compiler->run(until);
    if (done) return compiler;
    const bool learnt = compiler->settled().size() > settled.size();
    if (!learnt && (settled.empty() || done.error().code == Code::not_covered)) return done.error();
    if (!learnt) return Compiler(graph, options, {}, /*settles=*/false).run(until).error();
    settled = compiler->settled();
  }
}

}  // namespace

Result<Program> compile(const onnx::Graph& graph, const Options& options) {
  const num::ArithmeticEnv env;
  INVAR_TRY(const std::unique_ptr<Compiler> made, compiled(graph, options, Compiler::kPlan));
  Compiler& compiler = *made;
  INVAR_TRY(plan::Plan plan, plan_from(compiler.module()));
  plan.operation_set = options.operation_set;
  // The reader's own checks are the last word on what a plan may be.
  if (auto read = plan::parse(plan::print(plan), graph.name); !read)
    return not_covered("the program does not fit into a plan: " + read.error().message);
  return Program{std::move(plan), std::move(compiler.constants())};
}

Result<plan::Plan> compile_to(const onnx::Graph& graph, Options options, const std::string& path) {
  const std::filesystem::path p(path);
  options.constants_file = p.filename().string() + ".constants";
  INVAR_TRY(Program program, compile(graph, options));
  std::vector<std::filesystem::path> folders = {p.parent_path()};
  if (!options.artifacts.empty()) folders.emplace_back(options.artifacts);
  const auto& weights = program.plan.weights;
  const bool has_constants = std::any_of(weights.begin(), weights.end(), [&](const plan::Weight& w) {
    return w.file == options.constants_file;
  });
  for (const auto& folder : folders) {
    // Constants first: a plan that can be read is complete.
    if (has_constants) {
      INVAR_CHECK_OK(write_file((folder / options.constants_file).string(), program.constants));
    }
    INVAR_CHECK_OK(write_file((folder / p.filename()).string(), plan::print(program.plan)));
  }
  return std::move(program.plan);
}

std::vector<std::string> stages() {
  std::vector<std::string> names = {Compiler::kOnnx, Compiler::kRepro, Compiler::kPlan};
  for (const Compiler::Stage& stage : Compiler::stages()) names.emplace_back(stage.name);
  return names;
}

Result<std::string> emit(const onnx::Graph& graph, const Options& options, const std::string& stage) {
  const num::ArithmeticEnv env;
  INVAR_TRY(const std::unique_ptr<Compiler> compiler, compiled(graph, options, stage));
  return compiler->text();
}

}  // namespace invar::compiler
