// Whether operations keep tokens apart: what a program computes for a token depends on that token
// alone, and through attention on those before it.
#pragma once

#include "compiler/passes/make_stateful/element_values.h"

namespace invar::compiler {

class TokenRows {
 public:
  // `tokens`: the size of the axis of tokens.
  TokenRows(ElementAnalysis::SizeOf size_of, DimExpr tokens)
      : size_of_(std::move(size_of)), tokens_(std::move(tokens)) {}
  static constexpr int64_t kNone = -1;  // the same for all tokens
  // The axis of tokens. Nothing if there are several, or if a dimension is neither constant nor
  // the number of tokens.
  std::optional<int64_t> axis(Value) const;
  // The axis of tokens, of which each has `each` adjacent elements, such as one for each head.
  struct Rows {
    int64_t axis, each;
    bool operator==(const Rows&) const = default;
  };
  std::optional<Rows> rows(Value) const;
  // Whether element i of the result along its axis of tokens depends, of each operand with such an
  // axis, on element i alone. An operation that the compiler does not know mixes tokens.
  bool keeps_apart(Operation*) const;

 private:
  struct Axes {
    SmallVector<int64_t> in;
    int64_t out;
  };
  bool pointwise(Operation*, const Axes&) const;
  bool reshape(Operation*, const Axes&) const;
  bool move(Operation*, const Axes&) const;
  bool index(Operation*, const Axes&) const;
  bool product(Operation*, const Axes&) const;
  bool along_axes(Operation*, const Axes&) const;
  std::optional<DimExpr> elements_before(Value, int64_t axis) const;

  ElementAnalysis::SizeOf size_of_;
  DimExpr tokens_;
};

}  // namespace invar::compiler
