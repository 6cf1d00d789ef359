// repro-canonicalize: the patterns of passes/canonicalize, common subexpression elimination, and
// constants moved into control-flow bodies. Bits stay.
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/passes.h"
#include "llvm/Config/llvm-config.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace invar::compiler {
namespace {

// Hashes and compares operations by everything except their location.
struct EquivalentOps : llvm::DenseMapInfo<Operation*> {
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

class Canonicalize : public PassWrapper<Canonicalize, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Canonicalize)
  Canonicalize() = default;
  Canonicalize(const Canonicalize& other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "repro-canonicalize"; }
  StringRef getDescription() const final {
    return "Remove identity copies, merge casts and equal operations, read operands in place";
  }
  void runOnOperation() final {
    canonicalize(getOperation());
    sink_constants(getOperation());
  }

 private:
  // Clones constants that a control-flow operation passes to its bodies into the bodies. A kernel
  // can then pack them ahead of time, and no iteration copies them.
  void sink_constants(func::FuncOp function) {
    for (auto flow : function.front().getOps<ReproFlowOp>()) {
      const std::vector<func::FuncOp> bodies = bodies_of(flow, functions_);
      bool sunk = false;
      const auto first_captured = flow.getOp() == "loop" ? 2 + static_cast<unsigned>(flow.getCarried()) : 1u;
      for (unsigned i = flow->getNumOperands(); i-- > first_captured;) {
        auto weight = flow->getOperand(i).getDefiningOp<ReproWeightOp>();
        if (!weight) continue;
        for (func::FuncOp body : bodies) {
          OpBuilder build = OpBuilder::atBlockBegin(&body.front());
          BlockArgument argument = body.getArgument(i - 1);
          argument.replaceAllUsesWith(build.clone(*weight)->getResult(0));
          (void)body.eraseArgument(i - 1);
        }
        flow->eraseOperand(i), sunk = true;
      }
      if (!sunk) continue;
      for (func::FuncOp body : bodies) canonicalize(body), sink_constants(body);
    }
    erase_dead_ops(function.front());
  }

  SymbolTableCollection functions_;  // of the module
};

}  // namespace

LogicalResult apply_greedily(func::FuncOp function, RewritePatternSet&& patterns) {
#if LLVM_VERSION_MAJOR >= 20
  return applyPatternsGreedily(function, std::move(patterns));
#else
  return applyPatternsAndFoldGreedily(function, std::move(patterns));
#endif
}

void merge_equal_ops(Block& block) {
  llvm::DenseSet<Operation*, EquivalentOps> known;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    if (!isa<ReproOp, ReproWeightOp>(op) || op.hasAttr("state")) continue;
    const auto [first, is_new] = known.insert(&op);
    if (is_new) continue;
    op.replaceAllUsesWith(*first);
    op.erase();
  }
}

void erase_dead_ops(Block& block) {
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

void canonicalize(func::FuncOp function) {
  merge_equal_ops(function.front());
  RewritePatternSet patterns(function.getContext());
  int64_t evaluated = 0;
  add_copy_patterns(patterns);
  add_cast_patterns(patterns);
  add_operand_patterns(patterns);
  add_quantization_patterns(patterns);
  add_constant_patterns(patterns, &evaluated);
  // Each single rewrite is correct, so the result is valid even if the driver stops at its
  // iteration limit.
  (void)apply_greedily(function, std::move(patterns));
  merge_equal_ops(function.front());
  erase_dead_ops(function.front());
}

std::unique_ptr<Pass> canonicalize_pass() {
  return std::make_unique<Canonicalize>();
}

}  // namespace invar::compiler
