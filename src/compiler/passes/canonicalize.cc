// The passes of rewrites that keep the bits (src/compiler/passes/canonicalize).
#include "compiler/passes/passes.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "llvm/Config/llvm-config.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace invar::compiler {
namespace {

struct Equal : llvm::DenseMapInfo<Operation*> {
  static unsigned getHashValue(const Operation* op) {
    return static_cast<unsigned>(OperationEquivalence::computeHash(
        const_cast<Operation*>(op), OperationEquivalence::directHashValue,
        OperationEquivalence::ignoreHashValue, OperationEquivalence::IgnoreLocations));
  }
  static bool isEqual(const Operation* a, const Operation* b) {
    if (a == b) return true;
    if (a == getTombstoneKey() || a == getEmptyKey() || b == getTombstoneKey() || b == getEmptyKey())
      return false;
    return OperationEquivalence::isEquivalentTo(const_cast<Operation*>(a), const_cast<Operation*>(b),
                                                OperationEquivalence::IgnoreLocations);
  }
};

int transposes(Block& block) {
  return static_cast<int>(llvm::range_size(block.getOps<TransposeOp>()));
}

class Simplify : public PassWrapper<Simplify, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Simplify)
  Simplify() = default;
  Simplify(const Simplify& other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "repro-simplify"; }
  StringRef getDescription() const final {
    return "Copies of nothing, casts of casts, operands that kernels read as they are, equal operations";
  }
  void runOnOperation() final {
    simplify(getOperation());
    sink_constants(getOperation());
  }

 private:
  // What a body of control flow is given and is a constant is its own: kernels pack it, and nobody copies it.
  void sink_constants(func::FuncOp function) {
    for (auto flow : function.front().getOps<ReproFlowOp>()) {
      const std::vector<func::FuncOp> bodies = bodies_of(flow, functions_);
      bool sunk = false;
      const auto fixed = flow.getOp() == "loop" ? 2 + static_cast<unsigned>(flow.getCarried()) : 1u;
      for (unsigned i = flow->getNumOperands(); i-- > fixed;) {
        auto weight = flow->getOperand(i).getDefiningOp<ReproWeightOp>();
        if (!weight) continue;
        for (func::FuncOp body : bodies) {
          OpBuilder build = OpBuilder::atBlockBegin(&body.front());
          BlockArgument given = body.getArgument(i - 1);
          given.replaceAllUsesWith(build.clone(*weight)->getResult(0));
          (void)body.eraseArgument(i - 1);
        }
        flow->eraseOperand(i), sunk = true;
      }
      if (!sunk) continue;
      for (func::FuncOp body : bodies) simplify(body), sink_constants(body);
    }
    remove_dead(function.front());
  }

  SymbolTableCollection functions_;  // of the module
};

// Kept where there are fewer transposes than before; elsewhere they stay where the model has them.
class Turn : public PassWrapper<Turn, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Turn)
  StringRef getArgument() const final { return "repro-turn"; }
  StringRef getDescription() const final { return "Transposes moved to where they cancel"; }
  void runOnOperation() final {
    func::FuncOp function = getOperation();
    const int before = transposes(function.front());
    if (before == 0) return;
    func::FuncOp tried = function.clone();
    sink_transposes(tried.front());
    remove_dead(tried.front());
    simplify(tried);
    if (transposes(tried.front()) < before) function.getBody().takeBody(tried.getBody());
    tried.erase();
  }
};

}  // namespace

void merge_equal(Block& block) {
  llvm::DenseSet<Operation*, Equal> known;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    if (!isa<ReproOp, ReproWeightOp>(op) || op.hasAttr("state")) continue;
    const auto [first, is_new] = known.insert(&op);
    if (is_new) continue;
    op.replaceAllUsesWith(*first);
    op.erase();
  }
}

void remove_dead(Block& block) {
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op)) op.erase();
}

std::vector<func::FuncOp> bodies_of(ReproFlowOp flow, SymbolTableCollection& functions) {
  std::vector<func::FuncOp> bodies;
  for (Attribute body : flow.getBodies())
    if (auto function = functions.lookupNearestSymbolFrom<func::FuncOp>(flow, cast<FlatSymbolRefAttr>(body)))
      bodies.push_back(function);
  return bodies;
}

void simplify(func::FuncOp function) {
  merge_equal(function.front());
  RewritePatternSet patterns(function.getContext());
  int64_t evaluated = 0;
  add_copies(patterns);
  add_conversions(patterns);
  add_operands(patterns);
  add_constants(patterns, &evaluated);
  // What is left when the driver gives up is as right as what is left when it ends.
#if LLVM_VERSION_MAJOR >= 20
  (void)applyPatternsGreedily(function, std::move(patterns));
#else
  (void)applyPatternsAndFoldGreedily(function, std::move(patterns));
#endif
  merge_equal(function.front());
  remove_dead(function.front());
}

std::unique_ptr<Pass> simplify() {
  return std::make_unique<Simplify>();
}
std::unique_ptr<Pass> turn() {
  return std::make_unique<Turn>();
}

}  // namespace invar::compiler
