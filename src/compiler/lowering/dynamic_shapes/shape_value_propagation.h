// Shape value propagation (ONNX: data propagation): integer tensors that a graph computes from
// input dimensions are known at compile time as dimension expressions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/dialects/dialects.h"
#include "shape/dim_expr.h"

namespace invar::compiler {

// The elements of a `repro.sizes` or of a small integer constant.
std::optional<std::vector<DimExpr>> known_dim_values(mlir::Value);
// An element of an integer tensor, traced through operations that only move elements: known, or
// element `element` of `from`, the result of an operation that computes.
struct TracedElement {
  std::optional<DimExpr> known;
  mlir::Value from{};
  int64_t element = 0;
};
using TracedElements = std::optional<std::vector<TracedElement>>;
// The elements of a small i64 or i32 tensor; nullopt for other tensors.
TracedElements trace_elements(mlir::Value);
// The elements of an operation's result if its operands are known; nullopt if its room registered
// no propagation or an element is no dimension expression.
std::optional<std::vector<DimExpr>> propagate_dims(mlir::Operation*);

}  // namespace invar::compiler
