// RuleRegistry: which ONNX nodes a room (src/ops/NAME/import.cc) or a decomposition
// (decompositions/NAME.cc) lowers, and the rewrites that it adds. Also how operations of the repro
// dialect are created.
#pragma once

#include "compiler/lowering/node_expansion.h"
#include "compiler/lowering/node_view.h"
#include "llvm/ADT/StringMap.h"

namespace invar::compiler {

using Rule = Status (*)(NodeView&);
// One element of a result as a dimension expression, from the elements of the operands.
using DimRule = std::optional<DimExpr> (*)(llvm::ArrayRef<DimExpr>);

class RuleRegistry {
 public:
  struct Entry {
    int64_t since;
    Rule rule;
    Widening widens;
    llvm::StringRef types;
  };
  // Lowers nodes `op_type` (DOMAIN.TYPE outside the standard domain) from opset `since` on. types:
  // the ONNX type variables, one letter for each operand and, after ">", for each result; the rule
  // itself checks those written "*". "@N" at the end: before opset N, and without `types` always,
  // all float operands have one type.
  void add_rule(llvm::StringRef op_type, int64_t since, Rule rule, Widening widens = Widening::floats,
                llvm::StringLiteral types = "");
  void add_rule(llvm::StringRef op_type, int64_t since, Rule rule, llvm::StringLiteral types) {
    add_rule(op_type, since, rule, Widening::floats, types);
  }
  const Entry* find(llvm::StringRef domain, llvm::StringRef op_type) const;

  // Replaces nodes `op_type` by other nodes, which are lowered in their place.
  void add_expansion(llvm::StringRef op_type, Expansion rule) { expansions_[op_type.str()] = rule; }
  Expansion find_expansion(llvm::StringRef domain, llvm::StringRef op_type) const;

  // A rewrite within the repro dialect that keeps every bit.
  template <class Pattern>
  void add_pattern() {
    patterns_.push_back([](RewritePatternSet& set) { set.add<Pattern>(set.getContext()); });
  }
  void populate_patterns(RewritePatternSet& set) const {
    for (auto add : patterns_) add(set);
  }

  // How a weight with the attribute `transposed` is materialized if one of its readers cannot read
  // it transposed.
  void transpose_weight(void (*rule)(ReproWeightOp)) { transpose_weight_ = rule; }
  void transpose_weight(ReproWeightOp weight) const { transpose_weight_(weight); }
  // How an input or weight is copied: a program returns only computed values.
  void copy_value(Value (*rule)(OpBuilder&, Value)) { copy_value_ = rule; }
  Value copy_value(OpBuilder& build, Value value) const { return copy_value_(build, value); }

  // How the elements of an operation's result follow from those of its operands (ONNX: data
  // propagation). rule == null: the operation only moves elements. The operand `selector`, which
  // must be a constant, selects the elements to move.
  struct DimPropagation {
    DimRule rule;
    std::optional<unsigned> selector{};
  };
  template <class... Op>
  void moves_elements(std::optional<unsigned> selector = {}) {
    (dim_propagation_.insert({Op::getOperationName(), {nullptr, selector}}), ...);
  }
  template <class Op>
  void propagates_dims(DimRule rule) {
    dim_propagation_.insert({Op::getOperationName(), {rule}});
  }
  const DimPropagation* dim_propagation(llvm::StringRef op) const {
    auto it = dim_propagation_.find(op);
    return it == dim_propagation_.end() ? nullptr : &it->second;
  }
  // The operations that compute the dimension expressions of a `repro.sizes`.
  void materialize_dims(Value (*rule)(OpBuilder&, ReproSizesOp)) { materialize_dims_ = rule; }
  Value materialize_dims(OpBuilder& build, ReproSizesOp sizes) const {
    return materialize_dims_(build, sizes);
  }

  // The rules of all rooms and decompositions.
  static const RuleRegistry& all();

 private:
  std::map<std::string, Entry> rules_;
  std::map<std::string, Expansion> expansions_;
  std::vector<void (*)(RewritePatternSet&)> patterns_;
  void (*transpose_weight_)(ReproWeightOp) = nullptr;
  Value (*copy_value_)(OpBuilder&, Value) = nullptr;
  llvm::StringMap<DimPropagation> dim_propagation_;
  Value (*materialize_dims_)(OpBuilder&, ReproSizesOp) = nullptr;
};

// The rule of a node that becomes one operation of the same operands.
template <class Op>
Status lower_to(NodeView& node, unsigned operands) {
  INVAR_CHECK_OK(node.expect(operands, operands, {}));
  SmallVector<Value> in;
  for (unsigned i = 0; i < operands; ++i) in.push_back(node.in(i));
  INVAR_TRY(Value out, node.make<Op>(in));
  return node.replace(out);
}

// A weight whose bytes are in the IR.
Value make_constant(OpBuilder&, Location, llvm::StringRef bytes, DType, llvm::ArrayRef<int64_t> shape);
// Adds an operation of the repro dialect with the numerics and version of spec/opset.toml.
Operation* make_op(OpBuilder&, Location, llvm::StringRef op, ValueRange operands,
                   llvm::ArrayRef<NamedAttribute>, Type result);
// The same, verified; without a type, the operation infers it. A refusal that one constraint on a
// symbol would lift sets `constraint`.
Result<Operation*> make_checked(OpBuilder&, Location, llvm::StringRef op, ValueRange operands,
                                llvm::ArrayRef<NamedAttribute>, Type,
                                std::optional<Constraint>* constraint = nullptr);

}  // namespace invar::compiler
