// Slices that ONNX clamps for sizes for which the call fails anyway: what reads them asks for as many elements as they have where nothing
// is clamped. Dimensions say so from then on, and kernels check it (spec/onnx.md onnx.27).
#include "compiler/lowering/lower_onnx.h"
#include "mlir/IR/Verifier.h"

namespace invar::compiler {
namespace {

// What holds in every call that does not fail: `lower` is no more than `upper`.
using Facts = std::vector<Unclamped>;

bool below(const Polynomial& a, const Polynomial& b, const Facts& facts) {
  const std::optional<Polynomial> gap = difference(b, a);
  return gap && llvm::any_of(facts, [&gap](const Unclamped& fact) {
           const std::optional<Polynomial> room = difference(fact.upper, fact.lower);
           const std::optional<Polynomial> rest = room ? difference(*gap, *room) : room;
           return rest && rest->never_negative();
         });
}

// With one of two in the place of the smaller, where it is known which it is.
std::optional<Polynomial> without(const Polynomial& p, const Facts& facts) {
  std::optional<Polynomial> total = Polynomial();
  for (const auto& [monomial, times] : p.terms()) {
    std::optional<Polynomial> all = Polynomial(times);
    for (const std::string& factor : monomial) {
      std::optional<Polynomial> size = Polynomial::of(factor);
      if (const auto parts = Polynomial::parts_of(factor)) {
        const std::optional<Polynomial> a = without(parts->first, facts), b = without(parts->second, facts);
        if (!a || !b) return std::nullopt;
        size = parts->by              ? quotient(*a, parts->by)
               : below(*a, *b, facts) ? a
               : below(*b, *a, facts) ? b
                                      : least(*a, *b);
      }
      all = all && size ? product(*all, *size) : std::nullopt;
    }
    total = total && all ? sum(*total, *all) : std::nullopt;
  }
  return total;
}

Facts facts_of(Block& block, const Ports& ports) {
  Facts facts;
  for (ExpandOp op : block.getOps<ExpandOp>()) {
    const Shape from = shape_of(op.getX().getType()), to = shape_of(op.getType());
    for (size_t i = 1; i <= from.size(); ++i) {
      const Extent &x = from[from.size() - i], &y = to[to.size() - i];
      const auto it = ports.clamped.find(x.name);
      if (x.constant() || it == ports.clamped.end()) continue;
      for (const Unclamped& otherwise : it->second)
        // One that is repeated is there; what has a constant number may have one element instead, which is repeated.
        if (y.constant() ? otherwise.length == 1 && y.value > 1 : polynomial_of(y) == otherwise.length)
          facts.push_back(otherwise);
    }
  }
  return facts;
}

bool retype(Operation& op, const Facts& facts) {
  const auto size = [&facts](const Polynomial& p) { return without(p, facts); };
  for (Value v : op.getResults()) v.setType(replaced(v.getType(), size));
  if (auto sizes = dyn_cast<ReproSizesOp>(op)) replace(sizes, size);
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

void take_unclamped(Block& block, const Ports& ports) {
  const Facts facts = facts_of(block, ports);
  // Bodies have types of their own.
  if (facts.empty() || !block.getOps<ReproFlowOp>().empty()) return;
  std::vector<std::pair<Value, Type>> types;
  std::vector<std::pair<ReproSizesOp, ArrayAttr>> sizes;
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
    for (auto& [op, texts] : sizes) op.setSizesAttr(texts);
    return;
  }
  for (ExpandOp op : llvm::make_early_inc_range(block.getOps<ExpandOp>()))
    if (op.getX().getType() == op.getType()) {
      op.replaceAllUsesWith(op.getX());
      op.erase();
    }
}

}  // namespace invar::compiler
