// Propagates the elements of small integer tensors through the operations that the rooms
// registered.
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"

#include <numeric>

#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/constant_evaluator.h"

namespace invar::compiler {
namespace {

constexpr int64_t kMaxElements = 64;  // lists of dimensions are short
constexpr int kMaxDepth = 64;         // moving operations between an element and its reader

std::optional<int64_t> small_element_count(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape()) return std::nullopt;
  int64_t n = 1;
  for (int64_t d : tensor.getShape())
    if (__builtin_mul_overflow(n, d, &n) || n > kMaxElements) return std::nullopt;
  return n;
}

// The elements of the result of an operation that moves elements. Its kernel, applied to the
// positions of the operands' elements, says which element goes where.
TracedElements move_elements(Operation* op, const RuleRegistry::DimPropagation& how,
                             llvm::function_ref<TracedElements(Value)> elements_of) {
  std::vector<TracedElement> elements = {{DimExpr(0)}};  // position 0: what a pad adds
  std::vector<std::string> operands;
  for (OpOperand& operand : op->getOpOperands()) {
    const Value v = operand.get();
    const std::optional<std::string> bytes = constant_bytes(v);
    if (operand.getOperandNumber() == how.selector) {
      if (!bytes) return std::nullopt;
      operands.push_back(*bytes);
      continue;
    }
    if (!element_of(v).isSignlessInteger(64)) return std::nullopt;
    const size_t first = elements.size();
    if (bytes) {
      for (int64_t n : integers_from_bytes(*bytes, 8)) elements.push_back({n});
    } else if (const TracedElements traced = elements_of(v)) {
      elements.insert(elements.end(), traced->begin(), traced->end());
    } else {
      return std::nullopt;
    }
    std::vector<int64_t> positions(elements.size() - first);
    std::iota(positions.begin(), positions.end(), static_cast<int64_t>(first));
    operands.push_back(bytes_of(positions, 8));
  }
  const std::optional<std::string> moved = fold_constant(op, operands);
  if (!moved) return std::nullopt;
  std::vector<TracedElement> result;
  for (int64_t position : integers_from_bytes(*moved, 8))
    result.push_back(elements[static_cast<size_t>(position)]);
  return result;
}

TracedElements known_elements(Value v) {
  const std::optional<std::vector<DimExpr>> known = known_dim_values(v);
  if (!known) return std::nullopt;
  std::vector<TracedElement> elements;
  for (const DimExpr& p : *known) elements.push_back({p});
  return elements;
}

// Applies a rule element by element; operands of one element are broadcast. A reduction to one
// element gets all elements of its only operand.
std::optional<std::vector<DimExpr>> apply_dim_rule(Operation* op, DimRule rule) {
  const std::optional<int64_t> n = small_element_count(op->getResult(0).getType());
  if (!n) return std::nullopt;
  std::vector<std::vector<DimExpr>> operands;
  for (Value v : op->getOperands()) {
    std::optional<std::vector<DimExpr>> list = known_dim_values(v);
    if (!list) return std::nullopt;
    operands.push_back(*std::move(list));
  }
  std::vector<DimExpr> results;
  for (int64_t i = 0; i < *n; ++i) {
    std::vector<DimExpr> at;
    const bool all = operands.size() == 1 && *n == 1;
    if (all) at = operands[0];
    for (const auto& list : operands) {
      if (all) break;
      if (list.size() != 1 && static_cast<int64_t>(list.size()) != *n) return std::nullopt;
      at.push_back(list[list.size() == 1 ? 0 : static_cast<size_t>(i)]);
    }
    const std::optional<DimExpr> result = rule(at);
    if (!result) return std::nullopt;
    results.push_back(*result);
  }
  return results;
}

}  // namespace

std::optional<std::vector<DimExpr>> known_dim_values(Value v) {
  std::vector<DimExpr> list;
  if (auto sizes = v.getDefiningOp<ReproSizesOp>()) {
    for (const std::optional<DimExpr>& dim : sizes.getSizes().getDims()) list.push_back(*dim);
    return list;
  }
  Type element = element_of(v);
  const std::optional<std::string> bytes = constant_bytes(v);
  if (!bytes || !small_element_count(v.getType()) ||
      !(element.isSignlessInteger(64) || element.isSignlessInteger(32)))
    return std::nullopt;
  for (int64_t n : integers_from_bytes(*bytes, element.isSignlessInteger(64) ? 8 : 4)) list.push_back(n);
  return list;
}

std::optional<std::vector<DimExpr>> propagate_dims(Operation* op) {
  const bool depends =
      llvm::any_of(op->getOperands(), [](Value v) { return v.getDefiningOp<ReproSizesOp>(); });
  if (!depends) return std::nullopt;
  const RuleRegistry::DimPropagation* how = RuleRegistry::all().dim_propagation(op->getName().getStringRef());
  if (!how) return std::nullopt;
  if (how->rule) return apply_dim_rule(op, how->rule);
  if (!element_of(op->getResult(0)).isSignlessInteger(64)) return std::nullopt;
  const TracedElements moved = move_elements(op, *how, known_elements);
  if (!moved) return std::nullopt;
  std::vector<DimExpr> list;
  for (const TracedElement& e : *moved) list.push_back(*e.known);
  return list;
}

TracedElements trace_elements(Value value) {
  llvm::DenseMap<Value, TracedElements> seen;
  int depth = 0;
  std::function<TracedElements(Value)> elements_of = [&](Value v) -> TracedElements {
    if (auto it = seen.find(v); it != seen.end()) return it->second;
    TracedElements list = known_elements(v);
    Operation* op = v.getDefiningOp();
    const Type type = element_of(v);
    const std::optional<int64_t> n = small_element_count(v.getType());
    if (!list && n && op && type.isSignlessInteger(64) && depth < kMaxDepth)
      if (const RuleRegistry::DimPropagation* how =
              RuleRegistry::all().dim_propagation(op->getName().getStringRef());
          how && !how->rule) {
        ++depth;
        list = move_elements(op, *how, elements_of);
        --depth;
      }
    if (!list && n && (type.isSignlessInteger(64) || type.isSignlessInteger(32))) {
      list.emplace();
      for (int64_t i = 0; i < *n; ++i) list->push_back({std::nullopt, v, i});
    }
    return seen[v] = list;
  };
  return elements_of(value);
}

}  // namespace invar::compiler
