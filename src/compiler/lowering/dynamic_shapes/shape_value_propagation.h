// Integers that a graph computes from the dimensions of its inputs, known as polynomials when it is compiled.
#pragma once

#include <optional>
#include <vector>

#include "shape/dim_expr.h"
#include "compiler/dialects/dialects.h"

namespace invar::compiler {

// The elements of an operation `sizes` or of a small integer constant.
std::optional<std::vector<Polynomial>> sizes_of(mlir::Value);
// An element of a list or number that is computed when the program runs: known nevertheless, or element `element` of `from`, which
// some operation made that does more than to carry it.
struct Traced {
  std::optional<Polynomial> known;
  mlir::Value from;
  int64_t element = 0;
};
// The elements of a small tensor of i64 or i32; nothing of others.
std::optional<std::vector<Traced>> trace_sizes(mlir::Value);
// Those of the result of an operation whose operands are such; nothing where its room does not say how, or they are not polynomials.
std::optional<std::vector<Polynomial>> evaluate_sizes(mlir::Operation*);

}  // namespace invar::compiler
