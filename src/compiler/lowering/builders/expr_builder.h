// ExprBuilder: emits an expression of many operations with one error check at the end.
#pragma once
#include "compiler/lowering/op_builder.h"

namespace invar::compiler {

class ExprBuilder {
 public:
  explicit ExprBuilder(NodeView& node) : node_(node) {}
  NodeView& node() { return node_; }
  Status status() const { return error_ ? Status(*error_) : Status(); }
  // The first error is kept; after it every operation returns a null value and emits nothing.
  Value check(Result<Value> v) {
    if (!v && !error_) error_ = v.error();
    return v && !error_ ? *v : Value();
  }
  template <class Op>
  Value make(ValueRange in, llvm::ArrayRef<NamedAttribute> attrs = {}, Type type = {}) {
    return error_ ? Value() : check(node_.make<Op>(in, attrs, type));
  }
  Value f32(float v) { return node_.constant(v); }
  Value add(Value a, Value b) { return make<AddOp>({a, b}); }
  Value sub(Value a, Value b) { return make<SubOp>({a, b}); }
  Value mul(Value a, Value b) { return make<MulOp>({a, b}); }
  Value div(Value a, Value b) { return make<DivOp>({a, b}); }
  Value max(Value a, Value b) { return make<MaxOp>({a, b}); }
  Value min(Value a, Value b) { return make<MinOp>({a, b}); }
  Value less(Value a, Value b) { return make<LessOp>({a, b}); }
  Value logical_and(Value a, Value b) { return make<LogicalAndOp>({a, b}); }
  Value logical_or(Value a, Value b) { return make<LogicalOrOp>({a, b}); }
  Value where(Value c, Value a, Value b) { return make<WhereOp>({c, a, b}); }
  Value floor(Value a) { return make<FloorOp>(a); }
  Value reshape(Value v, const Shape& s) { return error_ ? v : check(compiler::reshape(node_, v, s)); }
  Value expand(Value v, const Shape& s) { return error_ ? v : check(compiler::expand(node_, v, s)); }
  Value transpose(Value v, Ints p) { return error_ ? v : check(compiler::transpose(node_, v, p)); }
  Value slice(Value v, size_t axis, int64_t start, int64_t size) {
    return error_ ? v : check(compiler::slice(node_, v, axis, start, size));
  }
  Value concat(ValueRange parts, int64_t axis) {
    return error_ ? Value() : check(compiler::concat(node_, parts, axis));
  }
  Value cast(Value v, Type to) {
    if (error_ || element_of(v) == to) return v;
    return make<CastOp>(v, {}, tensor_of(shape_of(v.getType()), to));
  }
  // To i64 rounds towards zero.
  Value to_i64(Value v) { return cast(v, node_.builder().getI64Type()); }
  Value to_f32(Value v) { return cast(v, node_.builder().getF32Type()); }
  Value f32_tensor(llvm::ArrayRef<float> list, llvm::ArrayRef<int64_t> shape) {
    std::string bytes;
    for (float v : list)
      for (int i = 0; i < 4; ++i) bytes += static_cast<char>(std::bit_cast<uint32_t>(v) >> (8 * i));
    return node_.constant(bytes, DType::f32, shape);
  }

 private:
  NodeView& node_;
  std::optional<Error> error_;
};

// The product of the static dimensions [from, to).
inline Result<int64_t> static_element_count(const Shape& shape, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t d = from; d < to; ++d)
    if (!shape[d].constant() || __builtin_mul_overflow(n, shape[d].value, &n))
      return not_covered("dimension " + text_of(shape[d]) + " of " + text_of(shape) + " is not a constant");
  return n;
}

// The elements of a constant f32 operand.
inline Result<std::vector<float>> constant_floats(const NodeView& node, unsigned operand) {
  const std::optional<std::string> bytes = node.constant_bytes(operand);
  if (!bytes) return node.not_constant(operand);
  if (!element_of(node.in(operand)).isF32())
    return not_covered("operand " + std::to_string(operand) + " is not f32");
  std::vector<float> list;
  for (size_t at = 0; at < bytes->size(); at += 4) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) word |= uint32_t{static_cast<unsigned char>((*bytes)[at + i])} << (8 * i);
    list.push_back(std::bit_cast<float>(word));
  }
  return list;
}

}  // namespace invar::compiler
