// Arithmetic of many steps: the first step that fails is the status of all.
#pragma once
#include "compiler/lowering/op_builder.h"

namespace invar::compiler {

class Formula {
 public:
  explicit Formula(Node& node) : node_(node) {}
  Node& node() { return node_; }
  Status status() const { return error_ ? Status(*error_) : Status(); }
  // After a failure no value is there, and none is made.
  Value of(Result<Value> v) {
    if (!v && !error_) error_ = v.error();
    return v && !error_ ? *v : Value();
  }
  template <class Op>
  Value make(ValueRange in, llvm::ArrayRef<NamedAttribute> attrs = {}, Type type = {}) {
    return error_ ? Value() : of(node_.make<Op>(in, attrs, type));
  }
  Value number(float v) { return node_.constant(v); }
  Value add(Value a, Value b) { return make<AddOp>({a, b}); }
  Value sub(Value a, Value b) { return make<SubOp>({a, b}); }
  Value mul(Value a, Value b) { return make<MulOp>({a, b}); }
  Value div(Value a, Value b) { return make<DivOp>({a, b}); }
  Value max(Value a, Value b) { return make<MaxOp>({a, b}); }
  Value min(Value a, Value b) { return make<MinOp>({a, b}); }
  Value less(Value a, Value b) { return make<LessOp>({a, b}); }
  Value both(Value a, Value b) { return make<LogicalAndOp>({a, b}); }
  Value either(Value a, Value b) { return make<LogicalOrOp>({a, b}); }
  Value where(Value c, Value a, Value b) { return make<WhereOp>({c, a, b}); }
  Value floor(Value a) { return make<FloorOp>(a); }
  Value shape(Value v, const Shape& s) { return error_ ? v : of(shaped(node_, v, s)); }
  Value spread(Value v, const Shape& s) { return error_ ? v : of(compiler::spread(node_, v, s)); }
  Value perm(Value v, Sizes p) { return error_ ? v : of(permuted(node_, v, p)); }
  Value cut(Value v, size_t axis, int64_t start, int64_t size) {
    return error_ ? v : of(part(node_, v, axis, start, size));
  }
  Value join(ValueRange parts, int64_t axis) { return error_ ? Value() : of(joined(node_, parts, axis)); }
  Value cast(Value v, Type to) {
    if (error_ || element_of(v) == to) return v;
    return make<CastOp>(v, {}, tensor_of(shape_of(v.getType()), to));
  }
  // To integers, towards zero; from them.
  Value whole(Value v) { return cast(v, node_.build().getI64Type()); }
  Value real(Value v) { return cast(v, node_.build().getF32Type()); }
  Value reals(llvm::ArrayRef<float> list, llvm::ArrayRef<int64_t> shape) {
    std::string bytes;
    for (float v : list)
      for (int i = 0; i < 4; ++i) bytes += static_cast<char>(std::bit_cast<uint32_t>(v) >> (8 * i));
    return node_.constant(bytes, DType::f32, shape);
  }

 private:
  Node& node_;
  std::optional<Error> error_;
};

// The product of dimensions [from, to) that are constants.
inline Result<int64_t> product_of(const Shape& shape, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t d = from; d < to; ++d)
    if (!shape[d].constant() || __builtin_mul_overflow(n, shape[d].value, &n))
      return not_covered("dimension " + text_of(shape[d]) + " of " + text_of(shape) + " is not a constant");
  return n;
}

// The content of a constant operand of f32.
inline Result<std::vector<float>> reals_of(const Node& node, unsigned operand) {
  const std::optional<std::string> bytes = node.bytes(operand);
  if (!bytes) return node.unknown(operand);
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
