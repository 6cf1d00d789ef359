#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"

#include "compiler/dialects/constant_data.h"
#include "compiler/passes/constant_evaluator.h"
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {
namespace {

constexpr int64_t kMost = 64;  // elements: lists of dimensions are short
constexpr int kDeepest = 64;   // operations that carry an element, one after the other, to where it is read

std::optional<int64_t> elements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape()) return std::nullopt;
  int64_t n = 1;
  for (int64_t d : tensor.getShape())
    if (__builtin_mul_overflow(n, d, &n) || n > kMost) return std::nullopt;
  return n;
}

using Elements = std::optional<std::vector<Polynomial>>;

// What only carries elements to other places is computed twice, on numbers that stand for the elements, other ones each time: a
// result that is the number of the same element both times is that element, and one that is equal both times is a constant.
Elements carried(Operation* op, llvm::function_ref<Elements(Value)> elements_of) {
  constexpr int64_t kBase[] = {0x5a17'3b00'0000'0001, 0x3c59'7100'0000'0003},
                    kStep[] = {0x10'0001, 0x30'0007};
  std::vector<Polynomial> known;
  std::vector<int64_t> results[2];
  for (int run : {0, 1}) {
    std::vector<std::string> operands;
    known.clear();
    for (Value v : op->getOperands()) {
      std::optional<std::string> bytes = constant_of(v);
      if (!bytes) {
        const Elements sizes = elements_of(v);
        std::vector<int64_t> stands;
        if (!sizes) return std::nullopt;
        for (const Polynomial& p : *sizes) {
          stands.push_back(kBase[run] + kStep[run] * static_cast<int64_t>(known.size()));
          known.push_back(p);
        }
        bytes = bytes_of(stands, 8);
      }
      operands.push_back(*bytes);
    }
    const std::optional<std::string> bytes = evaluate(op, operands);
    if (!bytes) return std::nullopt;
    results[run] = integers_from_hex(hex_from_bytes(*bytes), 8);
  }
  std::vector<Polynomial> list;
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

// Element by element, operands of one element for each; a single result of a single operand is of all its elements.
std::optional<std::vector<Polynomial>> computed(Operation* op, SizeRule rule) {
  const std::optional<int64_t> n = elements(op->getResult(0).getType());
  if (!n) return std::nullopt;
  std::vector<std::vector<Polynomial>> operands;
  for (Value v : op->getOperands()) {
    std::optional<std::vector<Polynomial>> list = sizes_of(v);
    if (!list) return std::nullopt;
    operands.push_back(*std::move(list));
  }
  std::vector<Polynomial> results;
  for (int64_t i = 0; i < *n; ++i) {
    std::vector<Polynomial> at;
    const bool all = operands.size() == 1 && *n == 1;
    if (all) at = operands[0];
    for (const auto& list : operands) {
      if (all) break;
      if (list.size() != 1 && static_cast<int64_t>(list.size()) != *n) return std::nullopt;
      at.push_back(list[list.size() == 1 ? 0 : static_cast<size_t>(i)]);
    }
    const std::optional<Polynomial> result = rule(at);
    if (!result) return std::nullopt;
    results.push_back(*result);
  }
  return results;
}

}  // namespace

std::optional<std::vector<Polynomial>> sizes_of(Value v) {
  std::vector<Polynomial> list;
  if (auto sizes = v.getDefiningOp<ReproSizesOp>()) {
    for (Attribute text : sizes.getSizes()) {
      const std::optional<Polynomial> p = Polynomial::parse(cast<StringAttr>(text).getValue());
      if (!p) return std::nullopt;
      list.push_back(*p);
    }
    return list;
  }
  Type element = element_of(v);
  const std::optional<std::string> bytes = constant_of(v);
  if (!bytes || !elements(v.getType()) || !(element.isSignlessInteger(64) || element.isSignlessInteger(32)))
    return std::nullopt;
  for (int64_t n : integers_from_hex(hex_from_bytes(*bytes), element.isSignlessInteger(64) ? 8 : 4))
    list.push_back(n);
  return list;
}

std::optional<std::vector<Polynomial>> evaluate_sizes(Operation* op) {
  const bool depends =
      llvm::any_of(op->getOperands(), [](Value v) { return v.getDefiningOp<ReproSizesOp>(); });
  if (!depends) return std::nullopt;
  const Rooms::Sizing* how = Rooms::all().sizing(op->getName().getStringRef());
  if (!how) return std::nullopt;
  if (how->rule) return computed(op, how->rule);
  return element_of(op->getResult(0)).isSignlessInteger(64) ? carried(op, sizes_of) : std::nullopt;
}

std::optional<std::vector<Traced>> trace_sizes(Value value) {
  std::vector<std::pair<Value, int64_t>> leaves;  // for each a name that no plan has: its number
  llvm::DenseMap<Value, Elements> seen;
  int deep = 0;
  std::function<Elements(Value)> elements_of = [&](Value v) -> Elements {
    if (auto it = seen.find(v); it != seen.end()) return it->second;
    Elements list = sizes_of(v);
    Operation* op = v.getDefiningOp();
    const Type type = element_of(v);
    const std::optional<int64_t> n = elements(v.getType());
    if (!list && n && op && type.isSignlessInteger(64) && deep < kDeepest)
      if (const Rooms::Sizing* how = Rooms::all().sizing(op->getName().getStringRef()); how && !how->rule) {
        ++deep;
        list = carried(op, elements_of);
        --deep;
      }
    if (!list && n && (type.isSignlessInteger(64) || type.isSignlessInteger(32))) {
      list.emplace();
      for (int64_t i = 0; i < *n; ++i) {
        list->push_back(Polynomial::of(std::to_string(leaves.size())));
        leaves.push_back({v, i});
      }
    }
    return seen[v] = list;
  };
  const Elements list = elements_of(value);
  if (!list) return std::nullopt;
  std::vector<Traced> traced;
  for (const Polynomial& p : *list) {
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
