// repro-prepare-plan: establishes what plans require, at every optimization level. No operation is
// dead, since a dead one could fail at run time. No weight is stored as the transpose of its type.
// Weights of one name are one operation.
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/passes.h"

namespace invar::compiler {
namespace {

class PreparePlan : public PassWrapper<PreparePlan, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PreparePlan)
  PreparePlan() = default;
  PreparePlan(const PreparePlan& other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "repro-prepare-plan"; }
  StringRef getDescription() const final {
    return "Remove dead operations, transpose weights stored transposed, merge equal weights";
  }
  void runOnOperation() final;

 private:
  bool erase_dead_bindings();
  SymbolTableCollection functions_;  // of the module
};

// Counts, for each symbol, the operations of a function and of its control-flow bodies whose types
// contain it.
void count_symbols(func::FuncOp function, SymbolTableCollection& functions,
                   std::map<std::string, int>& counts) {
  const auto count = [&](TypeRange types) {
    std::set<std::string> symbols;
    for (Type type : types) collect_dim_names(type, symbols);
    for (const std::string& symbol : symbols) ++counts[symbol];
  };
  count(function.getArgumentTypes());
  for (Operation& op : function.front()) {
    count(op.getResultTypes());
    if (auto flow = dyn_cast<ReproFlowOp>(op))
      for (func::FuncOp body : bodies_of(flow, functions)) count_symbols(body, functions, counts);
  }
}

// Erases the bodies of a control-flow operation, which belong to it alone, and the bodies inside
// them.
void erase_bodies(ReproFlowOp flow, SymbolTableCollection& functions) {
  for (func::FuncOp body : bodies_of(flow, functions)) {
    for (auto inner : body.front().getOps<ReproFlowOp>()) erase_bodies(inner, functions);
    body.erase();
  }
}

// Erases bindings of symbols that no type contains, and unused control flow that defines only such
// symbols. Generic dead-code elimination keeps both, because they define symbols. Returns whether
// any was erased.
bool PreparePlan::erase_dead_bindings() {
  func::FuncOp function = getOperation();
  Block& block = function.front();
  if (block.getOps<ReproBindOp>().empty() && block.getOps<ReproFlowOp>().empty()) return false;
  std::map<std::string, int> counts;
  count_symbols(function, functions_, counts);
  bool erased = false;
  std::set<std::string> defined;
  for (Type type : function.getArgumentTypes()) collect_dim_names(type, defined);
  for (Operation& op : llvm::make_early_inc_range(block)) {
    std::set<std::string> symbols;  // that this operation defines
    if (auto bind = dyn_cast<ReproBindOp>(op)) symbols.insert(bind.getName().str());
    const bool may_define = !symbols.empty() || isa<ReproFlowOp>(op);
    for (Type type : op.getResultTypes()) collect_dim_names(type, symbols);
    std::erase_if(symbols, [&](const std::string& symbol) { return defined.contains(symbol); });
    const int own_uses = isa<ReproFlowOp>(op) ? 1 : 0;  // its own result types
    if (may_define && op.use_empty() && !op.hasAttr(kMaterialized) &&
        llvm::all_of(symbols, [&](const std::string& symbol) { return counts[symbol] == own_uses; })) {
      if (auto flow = dyn_cast<ReproFlowOp>(op)) erase_bodies(flow, functions_);
      op.erase(), erased = true;
      continue;
    }
    defined.insert(symbols.begin(), symbols.end());
  }
  return erased;
}

void PreparePlan::runOnOperation() {
  Block& block = getOperation().front();
  do erase_dead_ops(block);
  while (erase_dead_bindings());
  std::map<std::string, ReproWeightOp> first;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    auto weight = dyn_cast<ReproWeightOp>(op);
    if (!weight) continue;
    if (weight.getTransposed()) RuleRegistry::all().transpose_weight(weight);
    auto [it, is_new] = first.emplace(weight.getName().str(), weight);
    if (is_new) continue;
    if (!OperationEquivalence::isEquivalentTo(it->second, weight, OperationEquivalence::IgnoreLocations))
      continue;
    weight.replaceAllUsesWith(it->second.getOut());
    weight.erase();
  }
}

}  // namespace

std::unique_ptr<Pass> prepare_plan_pass() {
  return std::make_unique<PreparePlan>();
}

}  // namespace invar::compiler
