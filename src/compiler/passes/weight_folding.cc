// Rewrites within the reproducible dialect. Each keeps the bits (law 5); the rooms provide them.
#include "compiler/passes/passes.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "llvm/Config/llvm-config.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace invar::compiler {
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
  Settle() = default;
  Settle(const Settle& other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "repro-settle"; }
  StringRef getDescription() const final {
    return "Remove dead operations, turn transposed weights, merge equal weights";
  }
  void runOnOperation() final;

 private:
  bool remove_bound();
  SymbolTableCollection functions_;  // of the module
};

// Names in the shapes of a function, and of the bodies that it runs, each with the number of operations that have it.
void count_names(func::FuncOp function, SymbolTableCollection& functions,
                 std::map<std::string, int>& counts) {
  const auto count = [&](TypeRange types) {
    std::set<std::string> names;
    for (Type type : types) add_names(type, names);
    for (const std::string& name : names) ++counts[name];
  };
  count(function.getArgumentTypes());
  for (Operation& op : function.front()) {
    count(op.getResultTypes());
    if (auto flow = dyn_cast<ReproFlowOp>(op))
      for (func::FuncOp body : bodies_of(flow, functions)) count_names(body, functions, counts);
  }
}

// The bodies that nobody else runs, and those within.
void erase_bodies(ReproFlowOp flow, SymbolTableCollection& functions) {
  for (func::FuncOp body : bodies_of(flow, functions)) {
    for (auto inner : body.front().getOps<ReproFlowOp>()) erase_bodies(inner, functions);
    body.erase();
  }
}

// Symbols that stand in no shape, and control flow that gives nothing else that is read. False: there are none.
bool Settle::remove_bound() {
  func::FuncOp function = getOperation();
  Block& block = function.front();
  if (block.getOps<ReproBindOp>().empty() && block.getOps<ReproFlowOp>().empty()) return false;
  std::map<std::string, int> counts;
  count_names(function, functions_, counts);
  bool removed = false;
  std::set<std::string> seen;
  for (Type type : function.getArgumentTypes()) add_names(type, seen);
  for (Operation& op : llvm::make_early_inc_range(block)) {
    std::set<std::string> names;  // new ones
    if (auto bind = dyn_cast<ReproBindOp>(op)) names.insert(bind.getName().str());
    const bool makes = !names.empty() || isa<ReproFlowOp>(op);
    for (Type type : op.getResultTypes()) add_names(type, names);
    std::erase_if(names, [&](const std::string& name) { return seen.contains(name); });
    const int own = isa<ReproFlowOp>(op) ? 1 : 0;
    if (makes && op.use_empty() && !op.hasAttr(kMeasured) &&
        llvm::all_of(names, [&](const std::string& name) { return counts[name] == own; })) {
      if (auto flow = dyn_cast<ReproFlowOp>(op)) erase_bodies(flow, functions_);
      op.erase(), removed = true;
      continue;
    }
    seen.insert(names.begin(), names.end());
  }
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
  while (remove_bound());
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

}  // namespace invar::compiler
