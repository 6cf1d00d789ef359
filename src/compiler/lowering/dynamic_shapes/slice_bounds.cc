// Slice bounds that ONNX clamps only in calls that fail anyway (onnx.27): if a reader requires the
// unclamped length, the slice gets it, and kernels check it.
#include "compiler/lowering/lower_onnx.h"
#include "mlir/IR/Verifier.h"

namespace invar::compiler {
namespace {

// Facts that hold in every call that does not fail: lower <= upper.
using SliceFacts = std::vector<UnclampedSlice>;

bool is_at_most(const DimExpr& a, const DimExpr& b, const SliceFacts& facts) {
  const std::optional<DimExpr> gap = difference(b, a);
  return gap && llvm::any_of(facts, [&gap](const UnclampedSlice& fact) {
           const std::optional<DimExpr> room = difference(fact.upper, fact.lower);
           const std::optional<DimExpr> rest = room ? difference(*gap, *room) : room;
           return rest && rest->is_nonnegative();
         });
}

// Replaces min(a, b) by a or b if the facts decide which is smaller.
std::optional<DimExpr> resolve_minimums(const DimExpr& p, const SliceFacts& facts) {
  std::optional<DimExpr> total = DimExpr();
  for (const auto& [monomial, times] : p.terms()) {
    std::optional<DimExpr> all = DimExpr(times);
    for (const DimExpr::Factor& factor : monomial) {
      std::optional<DimExpr> size = DimExpr(factor);
      if (const auto* parts = factor.composite()) {
        const std::optional<DimExpr> a = resolve_minimums(parts->first, facts),
                                     b = resolve_minimums(parts->second, facts);
        if (!a || !b) return std::nullopt;
        size = parts->divisor              ? floor_div(*a, parts->divisor)
               : is_at_most(*a, *b, facts) ? a
               : is_at_most(*b, *a, facts) ? b
                                           : minimum(*a, *b);
      }
      all = all && size ? product(*all, *size) : std::nullopt;
    }
    total = total && all ? sum(*total, *all) : std::nullopt;
  }
  return total;
}

SliceFacts collect_facts(Block& block, const FunctionLoweringState& state) {
  SliceFacts facts;
  for (ExpandOp op : block.getOps<ExpandOp>()) {
    const Shape from = shape_of(op.getX().getType()), to = shape_of(op.getType());
    for (size_t i = 1; i <= from.size(); ++i) {
      const Dim &x = from[from.size() - i], &y = to[to.size() - i];
      const auto it = state.clamped_slices.find(x.expr);
      if (x.expr.constant() || it == state.clamped_slices.end()) continue;
      for (const UnclampedSlice& otherwise : it->second)
        // A single element that is repeated lies inside. A constant target may come from one
        // repeated element instead.
        if (y.constant() ? otherwise.length == 1 && y.value > 1 : dim_expr_of(y) == otherwise.length)
          facts.push_back(otherwise);
    }
  }
  return facts;
}

bool retype(Operation& op, const SliceFacts& facts) {
  const auto size = [&facts](const DimExpr& p) { return resolve_minimums(p, facts); };
  for (Value v : op.getResults()) v.setType(substitute_dims(v.getType(), size));
  if (auto sizes = dyn_cast<ReproSizesOp>(op)) substitute_dims(sizes, size);
  if (auto infer = dyn_cast<InferTypeOpInterface>(op)) {
    SmallVector<Type> types;
    if (succeeded(infer.inferReturnTypes(op.getContext(), op.getLoc(), op.getOperands(),
                                         op.getAttrDictionary(), op.getPropertiesStorage(), op.getRegions(),
                                         types)))
      for (auto [v, type] : llvm::zip(op.getResults(), types)) v.setType(type);
  }
  return succeeded(verify(&op));
}

}  // namespace

void apply_unclamped_slices(Block& block, const FunctionLoweringState& state) {
  const SliceFacts facts = collect_facts(block, state);
  // The types of control-flow bodies would have to change as well.
  if (facts.empty() || !block.getOps<ReproFlowOp>().empty()) return;
  std::vector<std::pair<Value, Type>> types;
  std::vector<std::pair<ReproSizesOp, DimsAttr>> sizes;
  bool fits = true;
  {
    ScopedDiagnosticHandler quiet(block.getParentOp()->getContext(), [](Diagnostic&) {});
    for (Operation& op : block.without_terminator()) {
      for (Value v : op.getResults()) types.emplace_back(v, v.getType());
      if (auto known = dyn_cast<ReproSizesOp>(op)) sizes.emplace_back(known, known.getSizes());
      if (!(fits = retype(op, facts))) break;
    }
  }
  if (!fits) {
    for (auto& [v, type] : types) v.setType(type);
    for (auto& [op, dims] : sizes) op.setSizesAttr(dims);
    return;
  }
  for (ExpandOp op : llvm::make_early_inc_range(block.getOps<ExpandOp>()))
    if (op.getX().getType() == op.getType()) {
      op.replaceAllUsesWith(op.getX());
      op.erase();
    }
}

}  // namespace invar::compiler
