// The element of an integer, bool or mask tensor as an expression of its coordinates and of sizes.
// The symbolic evaluation is exact for all sizes; what it does not know it leaves out.
#pragma once

#include <functional>

#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

struct ElementValue {
  enum class Kind {
    integer,  // `integer`
    choice    // `if_true` where all of `conditions` are at least 0, else `if_false`; bool: 1 or 0
  };
  Kind kind = Kind::integer;
  DimExpr integer{};
  std::vector<DimExpr> conditions{};
  double if_true = 0, if_false = 0;

  static ElementValue of(DimExpr integer) { return {Kind::integer, std::move(integer)}; }
  static ElementValue constant(double v) { return {Kind::choice, {}, {}, v, v}; }
  static ElementValue truth(std::vector<DimExpr> conditions) {
    return {Kind::choice, {}, std::move(conditions), 1, 0};
  }
};

// The coordinate along an axis of the tensor itself, as a symbol of DimExpr.
DimExpr coordinate(size_t axis);

class ElementAnalysis {
 public:
  // A dimension of a type -> its size; nothing if it is unknown.
  using SizeOf = std::function<std::optional<DimExpr>(const Dim&)>;
  explicit ElementAnalysis(SizeOf size_of) : size_of_(std::move(size_of)) {}
  void set(Value v, ElementValue known) { known_[v] = std::move(known); }
  std::optional<ElementValue> value_of(Value);

 private:
  using MaybeValue = std::optional<ElementValue>;
  MaybeValue evaluate(Operation*);
  MaybeValue evaluate_constant(Value);
  MaybeValue evaluate_move(Operation*);
  MaybeValue evaluate_reshape(Value from, Value to);
  MaybeValue evaluate_gather(Operation*);
  MaybeValue evaluate_sum(Operation*);
  MaybeValue evaluate_pointwise(Operation*);
  MaybeValue evaluate_cast(Operation*);
  // The operand as the element of a result to which it broadcasts.
  MaybeValue broadcast_value(Value operand, Value result);
  std::optional<DimExpr> size(Value, size_t axis) const;
  bool is_one(Value v, size_t axis) const { return size(v, axis) == DimExpr(1); }

  SizeOf size_of_;
  llvm::DenseMap<Value, MaybeValue> known_;
};

}  // namespace invar::compiler
