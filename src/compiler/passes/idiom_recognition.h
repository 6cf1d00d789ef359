// Helpers of the idiom recognizers, which replace decomposed operations by single ones
// (spec/choices.md). Each idiom is a file idiom_recognition/NAME.cc with a function recognize_NAME.
// The function receives an anchor: an operation that every instance of the idiom contains. Its
// numerics choice in spec/opset.toml has the same name.
#pragma once
#include <bit>
#include <cmath>

#include "compiler/lowering/op_builder.h"
#include "compiler/passes/constant_evaluator.h"

namespace invar::compiler {

// State that lives for one pass over a function.
struct DerivedValueCache {
  llvm::DenseMap<Value, Value> derived;  // values that a recognizer derived from others, created once
  SmallVector<Operation*> made;          // the operations that replace() made for the last idiom
};
// A function attribute: for each operation that replaced an idiom of a known ONNX node, the number
// of this node, a space, and the choice with the numbers of the operation (program.13).
inline constexpr char kAppliedChoicesAttr[] = "plan.applied_choices";
// Returns true if it replaced the idiom that contains the anchor.
using Recognizer = bool (*)(Operation*, DerivedValueCache&);

// choices.2: the element of a one-element f32 constant of any rank.
inline std::optional<float> scalar_constant(Value v) {
  auto weight = v ? v.getDefiningOp<ReproWeightOp>() : ReproWeightOp();
  if (!weight || !element_of(v).isF32() || weight.getLength() != 4) return {};
  const std::optional<std::string> bytes = constant_bytes(v);
  if (!bytes || bytes->size() != 4) return {};
  uint32_t bits = 0;
  for (int i = 3; i >= 0; --i) bits = bits << 8 | static_cast<uint8_t>((*bytes)[i]);
  return std::bit_cast<float>(bits);
}
inline bool is_constant_equal_to(Value v, float wanted) {
  const std::optional<float> n = scalar_constant(v);
  return n && std::bit_cast<uint32_t>(*n) == std::bit_cast<uint32_t>(wanted);
}
inline bool same_shape(Value a, Value b) {
  return shape_of(a.getType()) == shape_of(b.getType());
}
// choices.3: the only user of v if it is an Op; else null. An output of the program has its return
// as user.
template <class Op>
Op only_user(Value v) {
  return v.hasOneUse() ? dyn_cast<Op>(*v.user_begin()) : Op();
}
// The other operand of a binary operation.
inline Value other_operand(Operation* op, Value v) {
  return op->getOperand(op->getOperand(0) == v ? 1 : 0);
}
// Matches v = x op c with a scalar c, or also c op x if sides == 2. x has the shape of v.
struct ScalarOp {
  Value x;
  float scalar = 0;
  explicit operator bool() const { return static_cast<bool>(x); }
};
template <class Op>
ScalarOp match_scalar_op(Value v, int sides = 2) {
  auto op = v.getDefiningOp<Op>();
  for (int side = 1; op && side >= 2 - sides; --side)
    if (const std::optional<float> n = scalar_constant(op->getOperand(side)))
      if (Value x = op->getOperand(1 - side); same_shape(x, v)) return {x, *n};
  return {};
}
// If v: [B, h * g, N, D] repeats each head of a value [B, h, N, D] g times, that value; else v.
// This is grouped query attention.
Value strip_head_repeat(Value v);
// Appends the factors of a product in any order and association. x itself counts as one factor and
// x^3 as three. Stops to expand products after kMaxFactors factors.
inline void factors_of(Value v, Value x, SmallVectorImpl<Value>& out) {
  constexpr size_t kMaxFactors = 8;
  auto product = v.getDefiningOp<MulOp>();
  const ScalarOp power = match_scalar_op<PowOp>(v, 1);
  if (power && power.x == x && power.scalar == 3.0f)
    out.append(3, x);
  else if (!product || v == x || out.size() > kMaxFactors)
    out.push_back(v);
  else
    factors_of(product.getA(), x, out), factors_of(product.getB(), x, out);
}

// Replaces `old` by a new operation. False, without a change, if the operands do not verify or the
// result type differs.
template <class Op>
bool replace(DerivedValueCache& context, Value old, ValueRange operands,
             llvm::ArrayRef<NamedAttribute> attrs = {}) {
  Operation* root = old.getDefiningOp();
  OpBuilder build(root);
  Result<Operation*> made = make_checked(build, root->getLoc(), Op::getOperationName(), operands, attrs, {});
  if (!made) return false;
  if ((*made)->getResult(0).getType() != old.getType()) return (*made)->erase(), false;
  old.replaceAllUsesWith((*made)->getResult(0));
  context.made.push_back(*made);
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
