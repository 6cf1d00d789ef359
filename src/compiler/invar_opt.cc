// invar-opt: parses and prints the MLIR text of every stage and runs single passes
// (tests/compiler/mlir).
#include <string>
#include <vector>

#include "compiler/dialects/torch/dialect.h"
#include "compiler/emit/torch/torch_module.h"
#include "compiler/passes/choose_exact16.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace invar::compiler {
namespace {

// Prints the plan of a module, whose own text `-o` may send elsewhere.
class PrintPlan : public mlir::PassWrapper<PrintPlan, mlir::OperationPass<mlir::ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintPlan)
  llvm::StringRef getArgument() const final { return "print-plan"; }
  llvm::StringRef getDescription() const final { return "Print the plan of a module with stored weights"; }
  void runOnOperation() final {
    const Result<plan::Plan> made = translate_to_plan(getOperation());
    if (!made) {
      getOperation().emitError(made.error().message);
      return signalPassFailure();
    }
    llvm::outs() << plan::print(*made);
  }
};

}  // namespace
}  // namespace invar::compiler

int main(int argc, char** argv) {
  using namespace invar::compiler;
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, OnnxDialect, ReproDialect, TorchDialect>();
  mlir::registerPass([] { return lower_onnx_pass(); });
  mlir::registerPass([] { return recognize_idioms_pass(*choices_of("all")); });
  mlir::registerPass([] { return choose_exact16_pass(nullptr); });
  mlir::registerPass([] { return fuse_operations_pass(); });
  mlir::registerPass([] { return canonicalize_pass(); });
  mlir::registerPass([] { return evaluate_weights_pass(nullptr); });
  mlir::registerPass([] { return sink_transposes_pass(); });
  mlir::registerPass([] { return prepare_plan_pass(); });
  mlir::registerPass([] { return store_weights_pass(nullptr); });
  mlir::registerPass([] { return std::make_unique<PrintPlan>(); });
  mlir::registerPass([] { return lower_to_torch_pass(); });
  for (const auto& [earlier, present] : earlier_pass_names())
    mlir::PassPipelineRegistration<>(earlier, present, [name = present](mlir::OpPassManager& passes) {
      if (failed(mlir::parsePassPipeline(name, passes))) llvm::report_fatal_error(name);
    });
  // Function passes share the state of the weights, so they must not run in parallel.
  std::vector<char*> args(argv, argv + argc);
  std::string no_threads = "--mlir-disable-threading";
  args.insert(args.begin() + 1, no_threads.data());
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(static_cast<int>(args.size()), args.data(), "invar-opt\n", registry));
}
