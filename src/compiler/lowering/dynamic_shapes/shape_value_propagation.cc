// Propagates the elements of small integer tensors through the operations that the rooms
// registered.
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"

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

using ElementValues = std::optional<std::vector<DimExpr>>;

// An operation that only moves elements is evaluated twice, on different tags for its operands'
// elements. A result that is the tag of the same element both times is that element; a result that
// is equal both times is a constant.
ElementValues track_moved_elements(Operation* op, llvm::function_ref<ElementValues(Value)> elements_of) {
  constexpr int64_t kBase[] = {0x5a17'3b00'0000'0001, 0x3c59'7100'0000'0003},
                    kStep[] = {0x10'0001, 0x30'0007};
  std::vector<DimExpr> known;
  std::vector<int64_t> results[2];
  for (int run : {0, 1}) {
    std::vector<std::string> operands;
    known.clear();
    for (Value v : op->getOperands()) {
      std::optional<std::string> bytes = constant_bytes(v);
      if (!bytes) {
        const ElementValues sizes = elements_of(v);
        std::vector<int64_t> stands;
        if (!sizes) return std::nullopt;
        for (const DimExpr& p : *sizes) {
          stands.push_back(kBase[run] + kStep[run] * static_cast<int64_t>(known.size()));
          known.push_back(p);
        }
        bytes = bytes_of(stands, 8);
      }
      operands.push_back(*bytes);
    }
    const std::optional<std::string> bytes = fold_constant(op, operands);
    if (!bytes) return std::nullopt;
    results[run] = integers_from_bytes(*bytes, 8);
  }
  std::vector<DimExpr> list;
  for (size_t i = 0; i < results[0].size(); ++i) {
    const int64_t a = results[0][i], b = results[1][i], at = (a - kBase[0]) / kStep[0];
    if (a == b) {
      list.push_back(a);
    } else if (at >= 0 && at < static_cast<int64_t>(known.size()) && a == kBase[0] + at * kStep[0] &&
               b == kBase[1] + at * kStep[1]) {
      list.push_back(known[static_cast<size_t>(at)]);
    } else {
      return std::nullopt;
    }
  }
  return list;
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
    for (Attribute text : sizes.getSizes()) {
      const std::optional<DimExpr> p = DimExpr::parse_canonical(cast<StringAttr>(text).getValue());
      if (!p) return std::nullopt;
      list.push_back(*p);
    }
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
  return element_of(op->getResult(0)).isSignlessInteger(64) ? track_moved_elements(op, known_dim_values)
                                                            : std::nullopt;
}

std::optional<std::vector<TracedElement>> trace_elements(Value value) {
  // Each leaf is a symbol whose name is its number, which no plan's symbol can be.
  std::vector<std::pair<Value, int64_t>> leaves;
  llvm::DenseMap<Value, ElementValues> seen;
  int depth = 0;
  std::function<ElementValues(Value)> elements_of = [&](Value v) -> ElementValues {
    if (auto it = seen.find(v); it != seen.end()) return it->second;
    ElementValues list = known_dim_values(v);
    Operation* op = v.getDefiningOp();
    const Type type = element_of(v);
    const std::optional<int64_t> n = small_element_count(v.getType());
    if (!list && n && op && type.isSignlessInteger(64) && depth < kMaxDepth)
      if (const RuleRegistry::DimPropagation* how =
              RuleRegistry::all().dim_propagation(op->getName().getStringRef());
          how && !how->rule) {
        ++depth;
        list = track_moved_elements(op, elements_of);
        --depth;
      }
    if (!list && n && (type.isSignlessInteger(64) || type.isSignlessInteger(32))) {
      list.emplace();
      for (int64_t i = 0; i < *n; ++i) {
        list->push_back(DimExpr::symbol(std::to_string(leaves.size())));
        leaves.push_back({v, i});
      }
    }
    return seen[v] = list;
  };
  const ElementValues list = elements_of(value);
  if (!list) return std::nullopt;
  std::vector<TracedElement> traced;
  for (const DimExpr& p : *list) {
    if (p.constant() || !isdigit(p.terms().begin()->first[0][0])) {
      traced.push_back({p, {}, 0});
      continue;
    }
    const auto& [from, element] = leaves[std::stoul(p.terms().begin()->first[0])];
    traced.push_back({std::nullopt, from, element});
  }
  return traced;
}

}  // namespace invar::compiler
