// Shared by the rules for ai.onnx.ml: attributes as lists, rows of operands, link functions,
// labels.
#pragma once
#include "compiler/lowering/builders/expr_builder.h"

namespace invar::compiler {

// Attributes that are lists; empty if absent.
Result<std::vector<float>> floats_attr(const NodeView&, llvm::StringRef name);
Result<std::vector<std::string>> strings_attr(const NodeView&, llvm::StringRef name);
// A string attribute.
Result<std::string> string_attr(const NodeView&, llvm::StringRef name, llvm::StringRef absent);
// Numbers of a list attribute, or of the attribute with the suffix _as_tensor, which may be f64.
Result<std::vector<double>> numbers_attr(const NodeView&, const std::string& name);
// Numbers of a tensor attribute; nothing if absent. Integers are exact up to 2^53.
Result<std::optional<std::vector<double>>> tensor_numbers_attr(const NodeView&, llvm::StringRef name);

// A constant list, rounded to f32 unless `element` is f64.
Value float_list(NodeView&, const std::vector<double>& list, Type element,
                 llvm::ArrayRef<int64_t> shape = {});
Value int32_list(NodeView&, const std::vector<int32_t>& list, llvm::ArrayRef<int64_t> shape = {});

// Operand 0 as rows [N, F]: one row if its rank is 1; f64 stays, other numbers become f32.
Result<Value> feature_rows(NodeView&);

// What becomes of scores [N, C] (onnx.51).
enum class Link : uint8_t { none, logistic, exponential, exponential_zero, probit };
Result<Link> link_attr(const NodeView&);
Result<Value> linked(NodeView&, Value scores, Link);

// The labels of a classifier: an integer attribute. Strings are numbered before (onnx.53).
Result<std::vector<int64_t>> class_labels(const NodeView&, llvm::StringRef ints);
// Labels [N] of the class numbers [N].
Result<Value> labels_at(NodeView&, Value classes, const std::vector<int64_t>& labels);
// The class with the largest of the scores [N, C], of equals the first: [N].
Result<Value> best_class(NodeView&, Value scores);
// 1 where values [N, 1] are above the limit, else 0: [N].
Result<Value> class_above(NodeView&, Value values, float limit);

}  // namespace invar::compiler
