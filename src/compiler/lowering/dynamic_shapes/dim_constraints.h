// Constraints on the symbols of input dimensions (onnx.25), and the substitution of dimensions in
// types and `repro.sizes`.
#pragma once

#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/passes.h"

namespace invar::compiler {

// Adds the constraint name = size. False if it is known, contradicts a known one or refers to
// itself.
bool learn_constraint(DimConstraints&, const std::string& name, DimExpr size);
// Replaces dimensions of a type, or the expressions of a `repro.sizes`; nullopt keeps one.
using DimReplacement = llvm::function_ref<std::optional<DimExpr>(const DimExpr&)>;
Type substitute_dims(Type, DimReplacement);
void substitute_dims(ReproSizesOp, DimReplacement);
// Replaces constrained symbols by their values.
class DimSubstitution {
 public:
  explicit DimSubstitution(const DimConstraints& by) : by_(by) {}
  Type of(Type);
  std::optional<DimExpr> of(const DimExpr&) const;
  void operator()(Value v) { v.setType(of(v.getType())); }
  void operator()(ReproSizesOp);

 private:
  const DimConstraints& by_;
  llvm::DenseMap<Type, Type> known_;
};

// slice_bounds.cc: gives clamped slices the length that they have unclamped if every other length
// fails later (onnx.27).
void apply_unclamped_slices(Block&, const FunctionLoweringState&);

}  // namespace invar::compiler
