// What the recognisers of decomposed operations share (spec/choices.md). Each pattern is a file recover/NAME.cc with a recover_NAME,
// which looks at one operation that every instance of the pattern has; its choice is that of spec/opset.toml with this name.
#pragma once
#include <bit>
#include <cmath>

#include "compiler/lowering/op_builder.h"
#include "compiler/passes/constant_evaluator.h"

namespace invar::compiler {

// What lives as long as one pass over a program.
struct IdiomContext {
  llvm::DenseMap<Value, Value> parts;  // of a value, what a pattern needs of it, made once
};
// True: what the pattern's last operation made is now made by one operation.
using Recognizer = bool (*)(Operation*, IdiomContext&);

// choices.2: the only element of a constant of f32 in the model file, whatever its rank.
inline std::optional<float> number(Value v) {
  auto weight = v ? v.getDefiningOp<ReproWeightOp>() : ReproWeightOp();
  if (!weight || !element_of(v).isF32() || weight.getLength() != 4) return {};
  const std::optional<std::string> bytes = constant_of(v);
  if (!bytes || bytes->size() != 4) return {};
  uint32_t bits = 0;
  for (int i = 3; i >= 0; --i) bits = bits << 8 | static_cast<uint8_t>((*bytes)[i]);
  return std::bit_cast<float>(bits);
}
inline bool is_number(Value v, float wanted) {
  const std::optional<float> n = number(v);
  return n && std::bit_cast<uint32_t>(*n) == std::bit_cast<uint32_t>(wanted);
}
inline bool same_shape(Value a, Value b) {
  return shape_of(a.getType()) == shape_of(b.getType());
}
// choices.3: the only operation that reads v, which is not an output of the program.
template <class Op>
Op only_user(Value v) {
  return v.hasOneUse() ? dyn_cast<Op>(*v.user_begin()) : Op();
}
// The other operand of an operation of two.
inline Value other(Operation* op, Value v) {
  return op->getOperand(op->getOperand(0) == v ? 1 : 0);
}
// v = x op c with a number c, in the order given or (sides = 2) in either; x has the shape of v.
struct WithNumber {
  Value x;
  float by = 0;
  explicit operator bool() const { return static_cast<bool>(x); }
};
template <class Op>
WithNumber with_number(Value v, int sides = 2) {
  auto op = v.getDefiningOp<Op>();
  for (int side = 1; op && side >= 2 - sides; --side)
    if (const std::optional<float> n = number(op->getOperand(side)))
      if (Value x = op->getOperand(1 - side); same_shape(x, v)) return {x, *n};
  return {};
}
// The factors of a product, whatever its order and parentheses; x is one, and its third power is three. Too many are none.
inline void factors_of(Value v, Value x, SmallVectorImpl<Value>& out) {
  constexpr size_t kMost = 8;
  auto product = v.getDefiningOp<MulOp>();
  const WithNumber power = with_number<PowOp>(v, 1);
  if (power && power.x == x && power.by == 3.0f)
    out.append(3, x);
  else if (!product || v == x || out.size() > kMost)
    out.push_back(v);
  else
    factors_of(product.getA(), x, out), factors_of(product.getB(), x, out);
}

// `old` is made by a new operation where that takes these operands and makes the same type.
template <class Op>
bool replace(Value old, ValueRange operands, llvm::ArrayRef<NamedAttribute> attrs = {}) {
  Operation* root = old.getDefiningOp();
  OpBuilder build(root);
  Result<Operation*> made = make_checked(build, root->getLoc(), Op::getOperationName(), operands, attrs, {});
  if (!made) return false;
  if ((*made)->getResult(0).getType() != old.getType()) return (*made)->erase(), false;
  old.replaceAllUsesWith((*made)->getResult(0));
  return true;
}
inline NamedAttribute attribute(MLIRContext* context, llvm::StringRef name, int64_t v) {
  Builder build(context);
  return build.getNamedAttr(name, build.getI64IntegerAttr(v));
}
inline NamedAttribute attribute(MLIRContext* context, llvm::StringRef name, float v) {
  Builder build(context);
  return build.getNamedAttr(name, build.getF32FloatAttr(v));
}

}  // namespace invar::compiler
