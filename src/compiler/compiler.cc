// The compiler driver: runs the passes in order, keeps artifacts, and reports refusals.
#include "compiler/compiler.h"

#include <algorithm>
#include <filesystem>

#include "base/file/file.h"
#include "compiler/dialects/torch/dialect.h"
#include "compiler/emit/program_source.h"
#include "compiler/emit/torch/torch_module.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/choose_exact16.h"
#include "compiler/passes/make_stateful/make_stateful.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "num/env.h"
#include "onnx/rewrites.h"
#include "onnx/strings.h"

namespace invar::compiler {
namespace {
using namespace mlir;

// Names that emit() takes next to the stages.
constexpr char kProgramText[] = "program", kTorchModule[] = "torch-module";
constexpr char kPlanConstants[] = "plan.invar.constants";

std::string text_of(const RefusedNodes& r) {
  if (r.op.empty()) return r.reason;
  const std::string more = r.nodes == 1 ? "" : " and " + std::to_string(r.nodes - 1) + " more";
  return r.op + ", node \"" + r.node + "\"" + more + "): " + r.reason;
}

// One error with an item for each refusal. Its code is the most severe: internal before bad_input
// before not_covered.
Error combined_error(const std::string& graph, const std::vector<RefusedNodes>& refused) {
  Code code = Code::not_covered;
  int64_t nodes = 0;
  for (const RefusedNodes& r : refused) {
    nodes += r.nodes;
    if (r.code == Code::bad_input && code == Code::not_covered) code = r.code;
    if (r.code == Code::internal) code = r.code;
  }
  if (refused.size() == 1) return {code, graph + ": " + text_of(refused[0])};
  Error all{code, graph + ": " + std::to_string(nodes) +
                      (code == Code::not_covered ? " nodes are outside the guarantee:"
                                                 : " nodes cannot be compiled:")};
  for (const RefusedNodes& r : refused) all.items.push_back(text_of(r));
  return all;
}

class Compiler {
 public:
  Compiler(const onnx::Graph& graph, const Options& options, const DimConstraints& constraints,
           DifferingRanks differing_ranks, bool learn_constraints = true)
      : context_(MLIRContext::Threading::DISABLED),
        name_(graph.name.empty() ? "model" : graph.name),
        options_(options),
        report_{{}, constraints, learn_constraints, differing_ranks} {
    weights_.folder = options.folder;
    weights_.constants_file = options.constants_file;
    weights_.threads = options.threads, weights_.hashed = options.hashed;
    weights_.progress = options.progress;
    for (const onnx::TensorRef& t : graph.initializers)
      if (options.presumed && !t.file.empty())
        if (const auto known = options.presumed->find(t.name); known != options.presumed->end())
          weights_.presumed.emplace(std::tuple(t.file, t.offset, t.length), known->second);
    load_dialects(context_);
    module_ = import_graph(context_, graph, weights_.inline_constants, constraints);
  }
  // Runs the stages up to and including `until`.
  Status run(const std::string& until = "plan");
  ModuleOp module() { return *module_; }
  const DimConstraints& constraints() const { return report_.constraints; }
  bool ranks_differ() const { return report_.ranks_differ; }
  std::string& constants() { return weights_.constants; }
  // Code failed: a file whose bytes were computed with, and then hashed, may be another meanwhile.
  Status weights_unchanged() const {
    for (const auto& [name, file] : weights_.read)
      if (file.changed())
        return Error{Code::failed,
                     "weight file " + name + ": it was changed while it was compiled: try again"};
    return {};
  }
  const std::string& why_stateless() const { return why_stateless_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  std::string text() {
    std::string text;
    llvm::raw_string_ostream out(text);
    module_->print(out);
    return text + "\n";
  }

  struct Stage {
    const char* name;
    int level;  // the lowest optimization level that runs the pass
    std::unique_ptr<Pass> (*pass)(Compiler&);
    const char* completes = "";       // the dialect that is complete after the pass
    bool Options::*wanted = nullptr;  // runs where this option asks for it, and has no number
  };
  static llvm::ArrayRef<Stage> stages() {
    static const Stage all[] = {
        {"onnx-to-repro", 0, [](Compiler& c) { return lower_onnx_pass(&c.report_, c.options_.stateless); }},
        {"repro-recognize-idioms", 0, [](Compiler& c) { return recognize_idioms_pass(c.choices_); }},
        {"repro-make-stateful", 0, [](Compiler& c) { return make_stateful_pass(&c.why_stateless_); }, "",
         &Options::make_stateful},
        {"repro-choose-exact16", 0, [](Compiler& c) { return choose_exact16_pass(&c.report_.refused); }, "",
         &Options::exact16},
        {"repro-fuse", 1, [](Compiler&) { return fuse_operations_pass(); }},
        {"repro-canonicalize", 2, [](Compiler&) { return canonicalize_pass(); }},
        {"repro-evaluate", 2, [](Compiler& c) { return evaluate_weights_pass(&c.weights_); }},
        {"repro-sink-transposes", 3, [](Compiler&) { return sink_transposes_pass(); }},
        {"repro-prepare-plan", 0, [](Compiler&) { return prepare_plan_pass(); }, kRepro},
        {"repro-store-weights", 0, [](Compiler& c) { return store_weights_pass(&c.weights_); }, kPlan},
        {"repro-to-torch", 0,
         [](Compiler& c) { return lower_to_torch_pass(&c.weights_.errors, c.is_plain()); }, kTorch}};
    return all;
  }
  static constexpr char kOnnx[] = "onnx", kRepro[] = "repro", kPlan[] = "plan", kTorch[] = "torch";
  // After the stage "plan": the last one.
  Status lower_to_torch() {
    const auto numbered = llvm::count_if(stages(), [](const Stage& s) { return !s.wanted; });
    INVAR_CHECK_OK(run_pass(stages().back().pass(*this)));
    return write_artifact(static_cast<int>(numbered), stages().back().name);
  }

 private:
  bool is_plain() const { return options_.torch_module == TorchModule::plain; }
  Status run_pass(std::unique_ptr<Pass>);
  Status write_artifact(int number, const std::string& stage) {
    if (options_.artifacts.empty()) return {};
    return write_file(options_.artifacts + "/" + std::to_string(number) + "-" + stage + ".mlir", text());
  }
  MLIRContext context_;
  std::string name_;
  const Options& options_;
  WeightStorage weights_;
  ConversionReport report_;
  std::vector<std::string> choices_;
  std::string why_stateless_;
  std::vector<std::string> remarks_;
  OwningOpRef<ModuleOp> module_;
};

Status Compiler::run_pass(std::unique_ptr<Pass> pass) {
  std::string first_error;
  ScopedDiagnosticHandler handler(&context_, [&](Diagnostic& d) {
    if (d.getSeverity() == DiagnosticSeverity::Error && first_error.empty()) first_error = d.str();
    if (d.getSeverity() == DiagnosticSeverity::Remark) remarks_.push_back(d.str());
  });
  PassManager passes(&context_);
  passes.enableVerifier(false);  // verify() below runs once
  if (pass->getOpName() == ModuleOp::getOperationName())
    passes.addPass(std::move(pass));
  else
    passes.addNestedPass<func::FuncOp>(std::move(pass));
  if (succeeded(passes.run(*module_)) && succeeded(verify(*module_))) return {};
  for (const Error& e : weights_.errors)
    report_.refused.push_back({.code = e.code, .op = "", .reason = e.message});
  if (!report_.refused.empty()) return combined_error(name_, report_.refused);
  return Error{Code::internal, name_ + ": the compiler contradicts itself: " + first_error};
}

Status Compiler::run(const std::string& until) {
  INVAR_TRY(choices_, choices_of(options_.choices));
  if (options_.exact16 && options_.operation_set != OperationSet::reproducible)
    return not_covered("the profile exact16 is for the operation set reproducible, not " +
                       std::string(name_of(options_.operation_set)));
  INVAR_CHECK_OK(write_artifact(0, kOnnx));
  if (until == kOnnx) return {};
  int number = 0;
  llvm::StringRef last = until;
  for (const auto& [earlier, present] : earlier_pass_names())
    if (until == earlier) last = present;
  for (const Stage& stage : stages()) {
    if (stage.wanted) {
      if (options_.*stage.wanted) {
        INVAR_CHECK_OK(run_pass(stage.pass(*this)));
      }
      continue;
    }
    ++number;
    const bool is_last = last == stage.name || last == stage.completes;
    if (stage.level <= options_.opt) {
      INVAR_CHECK_OK(run_pass(stage.pass(*this)));
      INVAR_CHECK_OK(write_artifact(number, stage.name));
    } else if (is_last) {
      return bad_input("stage " + until + ": a pass from level " + std::to_string(stage.level) +
                       " on, which level " + std::to_string(options_.opt) + " leaves out");
    }
    if (is_last) return {};
  }
  std::string names;
  for (const std::string& name : compiler::stages()) names += (names.empty() ? "" : ", ") + name;
  return bad_input("stage " + until + ": there is none of this name; there are " + names + ", " +
                   kProgramText + ", " + kTorchModule);
}

}  // namespace

llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> earlier_pass_names() {
  static constexpr std::pair<llvm::StringRef, llvm::StringRef> kNames[] = {
      {"repro-recover", "repro-recognize-idioms"}, {"repro-fold", "repro-fuse"},
      {"repro-simplify", "repro-canonicalize"},    {"repro-turn", "repro-sink-transposes"},
      {"repro-settle", "repro-prepare-plan"},      {"plan-to-torch", "repro-to-torch"}};
  return kNames;
}

void load_dialects(MLIRContext& context) {
  context.loadDialect<func::FuncDialect, OnnxDialect, ReproDialect, TorchDialect>();
}

namespace {

constexpr char kNoProgram[] =
    "it has an attribute of a kind that the text of a program does not have (program.12)";

// Compiles, and compiles again with the constraints on input dimensions that refused nodes imply,
// until no constraint is new (onnx.25). If the constrained program is wrong, the error is that of
// the unconstrained one.
Result<std::unique_ptr<Compiler>> run_compiler(const onnx::Graph& graph, const Options& options,
                                               const std::string& until, DifferingRanks ranks,
                                               bool& ranks_differ) {
  for (DimConstraints constraints;;) {
    auto compiler = std::make_unique<Compiler>(graph, options, constraints, ranks);
    const Status done = compiler->run(until);
    ranks_differ |= compiler->ranks_differ();
    if (done) return compiler;
    const bool learned = compiler->constraints().size() > constraints.size();
    if (!learned && (constraints.empty() || done.error().code == Code::not_covered)) return done.error();
    if (!learned) return Compiler(graph, options, {}, ranks, /*learn_constraints=*/false).run(until).error();
    constraints = compiler->constraints();
  }
}

// The same. Of an `If` whose branches give results of different ranks that one is taken with which
// alone the rest compiles.
Result<std::unique_ptr<Compiler>> run_compiler(const onnx::Graph& graph, const Options& options,
                                               const std::string& until) {
  bool ranks_differ = false;
  auto refused = run_compiler(graph, options, until, DifferingRanks::refused, ranks_differ);
  if (refused || !ranks_differ) return refused;
  auto with_else = run_compiler(graph, options, until, DifferingRanks::take_else, ranks_differ);
  auto with_then = run_compiler(graph, options, until, DifferingRanks::take_then, ranks_differ);
  if (bool(with_else) == bool(with_then)) return refused;
  return with_else ? std::move(with_else) : std::move(with_then);
}

}  // namespace

Result<CompiledProgram> compile(const onnx::Graph& given, const Options& options) {
  const num::ArithmeticEnv env;
  INVAR_CHECK_OK(onnx::check_lists(given));
  INVAR_TRY(const std::optional<onnx::NumberedGraph> numbered, onnx::number_strings(given));
  const onnx::Graph& tensors = numbered ? numbered->graph : given;
  const std::optional<onnx::Graph> rewritten = onnx::without_sequences(tensors);
  const onnx::Graph& graph = rewritten ? *rewritten : tensors;
  INVAR_TRY(const std::unique_ptr<Compiler> made, run_compiler(graph, options, Compiler::kPlan));
  Compiler& compiler = *made;
  for (const std::string& remark : compiler.remarks())
    if (options.remark) options.remark(graph.name + ": " + remark);
  INVAR_TRY(plan::Plan plan, translate_to_plan(compiler.module()));
  plan.operation_set = options.operation_set;
  const onnx::AppliedChoices choices =
      rewritten ? onnx::AppliedChoices{} : applied_choices(compiler.module());
  INVAR_TRY(std::optional<Program> program,
            program_of(options.program_graph ? *options.program_graph : given, plan, choices, options));
  INVAR_CHECK_OK(compiler.weights_unchanged());
  std::string program_text;
  if (program) plan.source = std::move(program->source), program_text = std::move(program->text);
  // The plan parser decides what a valid plan is, so its checks apply to what the compiler writes.
  if (auto read = plan::parse(plan::print(plan), graph.name); !read)
    return not_covered("the program does not fit into a plan: " + read.error().message);
  std::string torch_module;
  if (options.torch_module != TorchModule::none) {
    INVAR_CHECK_OK(compiler.lower_to_torch());
    INVAR_TRY(torch_module, print_torch_module(compiler.module(), to_hex(plan::digest(plan))));
  }
  return CompiledProgram{std::move(plan), std::move(compiler.constants()), std::move(program_text),
                         compiler.why_stateless(), std::move(torch_module)};
}

Result<plan::Plan> compile_to(const onnx::Graph& graph, Options options, const std::string& path) {
  const std::filesystem::path p(path);
  options.constants_file = p.filename().string() + ".constants";
  INVAR_TRY(CompiledProgram program, compile(graph, options));
  std::vector<std::filesystem::path> folders = {p.parent_path()};
  if (!options.artifacts.empty()) folders.emplace_back(options.artifacts);
  const auto& weights = program.plan.weights;
  const bool has_constants = std::any_of(weights.begin(), weights.end(), [&](const plan::Weight& w) {
    return w.file == options.constants_file;
  });
  for (const auto& folder : folders) {
    // Constants are written first, so a plan that exists is complete.
    if (has_constants) {
      INVAR_CHECK_OK(write_file((folder / options.constants_file).string(), program.constants));
    }
    if (!program.torch_module.empty()) {
      INVAR_CHECK_OK(write_file((folder / kTorchModuleFile).string(), program.torch_module));
    }
    INVAR_CHECK_OK(write_file((folder / p.filename()).string(), plan::print(program.plan)));
  }
  return std::move(program.plan);
}

std::vector<std::string> stages() {
  std::vector<std::string> names = {Compiler::kOnnx, Compiler::kRepro, Compiler::kPlan, Compiler::kTorch};
  for (const Compiler::Stage& stage : Compiler::stages())
    if (!stage.wanted) names.emplace_back(stage.name);
  return names;
}

Result<std::string> emit(const onnx::Graph& given, Options options, const std::string& stage) {
  const num::ArithmeticEnv env;
  if (stage == kTorchModule || stage == Compiler::kTorch || stage == "repro-to-torch" ||
      stage == "plan-to-torch") {
    options.stateless = true, options.make_stateful = false;  // a module is a function of tensors
    if (options.torch_module == TorchModule::none)
      options.torch_module =
          options.operation_set == OperationSet::any ? TorchModule::plain : TorchModule::reproducible;
  }
  if (stage == kTorchModule || stage == Compiler::kPlan) {
    options.constants_file = kPlanConstants;  // as compile_to() would write them
    INVAR_TRY(CompiledProgram program, compile(given, options));
    return stage == kTorchModule ? std::move(program.torch_module) : plan::print(program.plan);
  }
  if (stage == kProgramText) {
    INVAR_TRY(CompiledProgram program, compile(given, options));
    if (program.program_text.empty()) return not_covered(given.name + ": " + kNoProgram);
    return std::move(program.program_text);
  }
  INVAR_CHECK_OK(onnx::check_lists(given));
  INVAR_TRY(const std::optional<onnx::NumberedGraph> numbered, onnx::number_strings(given));
  const onnx::Graph& tensors = numbered ? numbered->graph : given;
  const std::optional<onnx::Graph> rewritten = onnx::without_sequences(tensors);
  const onnx::Graph& graph = rewritten ? *rewritten : tensors;
  INVAR_TRY(const std::unique_ptr<Compiler> compiler, run_compiler(graph, options, stage));
  return compiler->text();
}

}  // namespace invar::compiler
