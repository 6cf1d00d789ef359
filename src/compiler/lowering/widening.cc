// Element types of a node's operands and results: ONNX's type variables (onnx.10), and the exact
// widening of narrow operands to types that the kernels take (onnx.14).
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {
namespace {

Type widened_type(Type t, Widening how) {
  Builder build(t.getContext());
  if (t.isBF16() || t.isF16()) return build.getF32Type();
  auto integer = dyn_cast<IntegerType>(t);
  if (!integer || how == Widening::floats) return {};
  const unsigned bits = integer.getWidth();
  if (bits == 8 || bits == 16) return how == Widening::exact ? Type(build.getF32Type()) : build.getI32Type();
  if (!integer.isUnsigned() || how == Widening::exact) return {};
  if (bits == 32 || how == Widening::wrapping || how == Widening::ordered) return build.getI64Type();
  return {};
}

}  // namespace

Status NodeView::check_operand_types(llvm::StringRef variables) {
  auto [types, since] = variables.split('@');
  if (int64_t opset = 0; !since.getAsInteger(10, opset) && version() < opset) types = "";
  const auto [operands, results] = types.split('>');
  std::map<char, unsigned> first;  // operand of each letter
  for (unsigned i = 0; i < op_.getInputs().size(); ++i) {
    auto tensor = dyn_cast<RankedTensorType>(in(i).getType());
    if (!tensor) continue;
    const bool is_float = isa<FloatType>(tensor.getElementType());
    const char letter = types.empty() ? (is_float ? 'T' : '*') : i < operands.size() ? operands[i] : '*';
    if (letter == '*') continue;
    const auto [it, is_new] = first.emplace(letter, i);
    const Type other = element_of(in(it->second));
    if (!is_new && tensor.getElementType() != other)
      return bad_input("operands " + std::to_string(it->second) + " and " + std::to_string(i) +
                       " of different element types: " + text_of_type(other) + " and " +
                       text_of_type(tensor.getElementType()) + "; ONNX asks for one");
  }
  for (unsigned i = 0; i < results_.size(); ++i) {
    const char letter = types.empty() ? 'T' : i < results.size() ? results[i] : '*';
    auto it = first.find(letter);
    // Its operand is absent: as the others.
    if (it == first.end() && letter != '*') it = first.find('T');
    types_.push_back(it == first.end() ? Type() : element_of(in(it->second)));
  }
  return {};
}

Value NodeView::cast_element(Value x, Type element) {
  return fold_result(make_op(build_, op_.getLoc(), CastOp::getOperationName(), x, {},
                             tensor_of(shape_of(x.getType()), element)));
}

Value NodeView::flip_top_bit(Value x) {
  Value top = constant(llvm::StringRef("\0\0\0\0\0\0\0\x80", 8), DType::u64);
  return fold_result(
      make_op(build_, op_.getLoc(), BitwiseXorOp::getOperationName(), {x, top}, {}, x.getType()));
}

bool NodeView::widen_operands(Widening how) {
  // The type of the float operands if one of them is narrow, else that of the operands that are
  // widened.
  Type first;
  bool any = false;
  for (Value v : op_->getOperands())
    if (auto t = dyn_cast<RankedTensorType>(v.getType()); t && isa<FloatType>(t.getElementType())) {
      if (!first) first = t.getElementType();
      any |= t.getElementType().isBF16() || t.getElementType().isF16();
    }
  if (!any) first = {};
  for (OpOperand& operand : op_->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    const Type wide = type ? widened_type(type.getElementType(), any ? Widening::floats : how) : Type();
    if (!wide) continue;
    if (!any && first && first != type.getElementType()) return false;
    if (!any) first = type.getElementType();
  }
  if (!first) return false;
  std::fill(results_.begin(), results_.end(), Replacement{});
  if (any)
    how = Widening::floats;
  else
    narrow_ = first, wide_ = widened_type(first, how);
  flips_ = first.isUnsignedInteger(64) && how == Widening::ordered;
  for (OpOperand& operand : op_->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (Type wide = type ? widened_type(type.getElementType(), how) : Type())
      operand.set(cast_element(flips_ ? flip_top_bit(operand.get()) : operand.get(), wide));
  }
  return true;
}

void NodeView::commit() {
  for (size_t i = 0; i < results_.size(); ++i) {
    auto [value, stays_wide] = results_[i];
    if (!value) continue;
    const Type declared = i < types_.size() ? types_[i] : Type();
    if (declared && !stays_wide && element_of(value).isF32() && (declared.isF16() || declared.isBF16())) {
      value = cast_element(value, declared);
    } else if (narrow_ && !stays_wide && element_of(value) == wide_) {
      value = cast_element(value, narrow_);
      if (flips_) value = flip_top_bit(value);
    }
    out(static_cast<unsigned>(i)).replaceAllUsesWith(value);
  }
}

}  // namespace invar::compiler
