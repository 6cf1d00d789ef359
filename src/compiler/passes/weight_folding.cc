// repro-fold: the rewrites of the rooms within the repro dialect, such as folding a weight's cast
// or transpose into the operation that reads it. Every rewrite keeps the bits (law 5).
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/passes.h"

namespace invar::compiler {
namespace {

class FoldWeights : public PassWrapper<FoldWeights, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldWeights)
  StringRef getArgument() const final { return "repro-fold"; }
  StringRef getDescription() const final { return "Fold weights into operands, fuse"; }
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

std::unique_ptr<Pass> fold_weights_pass() {
  return std::make_unique<FoldWeights>();
}

}  // namespace invar::compiler
