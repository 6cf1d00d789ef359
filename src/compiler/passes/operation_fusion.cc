// repro-fuse: the fusions of the rooms within the repro dialect, such as a weight's cast or
// transpose with the operation that reads it. Every rewrite keeps the bits (law 5).
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/passes.h"

namespace invar::compiler {
namespace {

class FuseOperations : public PassWrapper<FuseOperations, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseOperations)
  StringRef getArgument() const final { return "repro-fuse"; }
  StringRef getDescription() const final { return "Fuse operations that a kernel computes as one"; }
  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    RuleRegistry::all().populate_patterns(patterns);
    if (failed(apply_greedily(getOperation(), std::move(patterns)))) {
      getOperation()->emitError("the rewrites do not come to an end");
      return signalPassFailure();
    }
    erase_dead_ops(getOperation().front());
  }
};

}  // namespace

std::unique_ptr<Pass> fuse_operations_pass() {
  return std::make_unique<FuseOperations>();
}

}  // namespace invar::compiler
