// Rewrites within the reproducible dialect. Each keeps the bits (law 5); the rooms provide them.
#include "ir/passes.h"
#include "ir/rules.h"
#include "llvm/Config/llvm-config.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace invar::ir {
namespace {

LogicalResult apply_greedily(func::FuncOp function, RewritePatternSet&& patterns) {
#if LLVM_VERSION_MAJOR >= 20
  return applyPatternsGreedily(function, std::move(patterns));
#else
  return applyPatternsAndFoldGreedily(function, std::move(patterns));
#endif
}

class Fold : public PassWrapper<Fold, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Fold)
  explicit Fold(Refusals* refused) : refused_(refused) {}
  StringRef getArgument() const final { return "repro-fold"; }
  StringRef getDescription() const final {
    return "Fold weights into operands, fuse, remove dead operations";
  }
  void runOnOperation() final;

 private:
  Refusals* refused_;
};

void Fold::runOnOperation() {
  Block& block = getOperation().front();
  RewritePatternSet patterns(&getContext());
  Rooms::all().populate(patterns);
  if (failed(apply_greedily(getOperation(), std::move(patterns)))) {
    getOperation()->emitError("the rewrites do not come to an end");
    return signalPassFailure();
  }
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op)) op.erase();
  std::map<std::string, ReproWeightOp> first;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    auto weight = dyn_cast<ReproWeightOp>(op);
    if (!weight) continue;
    if (weight.getTransposed()) Rooms::all().turn(weight);
    auto [it, is_new] = first.emplace(weight.getName().str(), weight);
    if (is_new) continue;
    if (!OperationEquivalence::isEquivalentTo(it->second, weight, OperationEquivalence::IgnoreLocations))
      continue;
    weight.replaceAllUsesWith(it->second.getOut());
    weight.erase();
  }
}

}  // namespace

std::unique_ptr<Pass> fold(Refusals* refused) {
  return std::make_unique<Fold>(refused);
}

}  // namespace invar::ir
