// Rewrites within the reproducible dialect. Each keeps the bits (law 5); the rooms provide them.
#include "ir/passes.h"
#include "ir/rewrites/rewrites.h"
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
  StringRef getArgument() const final { return "repro-fold"; }
  StringRef getDescription() const final { return "Fold weights into operands, fuse"; }
  void runOnOperation() final;
};

// What a plan asks for, at every level: no dead operations (which could fail), no weight that is stored as its transpose, one weight
// of each name.
class Settle : public PassWrapper<Settle, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Settle)
  StringRef getArgument() const final { return "repro-settle"; }
  StringRef getDescription() const final {
    return "Remove dead operations, turn transposed weights, merge equal weights";
  }
  void runOnOperation() final;
};

// Symbols that stand in no shape. False: there are none.
bool remove_bound(Block& block) {
  if (block.getOps<ReproBindOp>().empty()) return false;
  std::set<std::string> used;
  for (Operation& op : block)
    for (Type type : op.getResultTypes()) add_names(type, used);
  bool removed = false;
  for (ReproBindOp bind : llvm::make_early_inc_range(block.getOps<ReproBindOp>()))
    if (!used.contains(bind.getName().str())) bind.erase(), removed = true;
  return removed;
}

void Fold::runOnOperation() {
  RewritePatternSet patterns(&getContext());
  Rooms::all().populate(patterns);
  if (failed(apply_greedily(getOperation(), std::move(patterns)))) {
    getOperation()->emitError("the rewrites do not come to an end");
    return signalPassFailure();
  }
  remove_dead(getOperation().front());
}

void Settle::runOnOperation() {
  Block& block = getOperation().front();
  do remove_dead(block);
  while (remove_bound(block));
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

std::unique_ptr<Pass> fold() {
  return std::make_unique<Fold>();
}
std::unique_ptr<Pass> settle() {
  return std::make_unique<Settle>();
}

}  // namespace invar::ir
