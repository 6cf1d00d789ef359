// invar-opt: reads and writes the text of every stage, and runs the passes one by one (tests/compiler/mlir).
#include <string>
#include <vector>

#include "compiler/dialects/dialects.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char** argv) {
  using namespace invar::compiler;
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, OnnxDialect, ReproDialect, PlanDialect>();
  mlir::registerPass([] { return to_repro(); });
  mlir::registerPass([] { return recover(*choices_of("all")); });
  mlir::registerPass([] { return fold(); });
  mlir::registerPass([] { return simplify(); });
  mlir::registerPass([] { return evaluate_weights(nullptr); });
  mlir::registerPass([] { return turn(); });
  mlir::registerPass([] { return settle(); });
  mlir::registerPass([] { return to_plan(nullptr); });
  // Passes of functions share what they know of the weights, so they run one after the other, as in the compiler.
  std::vector<char*> args(argv, argv + argc);
  std::string alone = "--mlir-disable-threading";
  args.insert(args.begin() + 1, alone.data());
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(static_cast<int>(args.size()), args.data(), "invar-opt\n", registry));
}
