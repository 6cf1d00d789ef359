// Result types of single reproducible operations, for callers outside of the compiler
// (invar.primitives).
#include "compiler/passes/type_inference.h"
#include "base/opset.h"
#include "compiler/compiler.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/passes.h"

namespace invar::compiler {
namespace {

Attribute attribute_of(Builder& build, const AttributeValue& value) {
  if (auto* v = std::get_if<int64_t>(&value)) return build.getI64IntegerAttr(*v);
  if (auto* v = std::get_if<F32Bits>(&value)) return build.getF32FloatAttr(v->value());
  if (auto* v = std::get_if<std::string>(&value)) return build.getStringAttr(*v);
  return build.getDenseI64ArrayAttr(std::get<std::vector<int64_t>>(value));
}

// Verifies the number of operands alone: the operation has one trait that says it, or takes any.
template <unsigned... N>
LogicalResult verify_operand_count(Operation* op, std::integer_sequence<unsigned, N...>) {
  if (op->hasTrait<OpTrait::ZeroOperands>()) return OpTrait::impl::verifyZeroOperands(op);
  if (op->hasTrait<OpTrait::OneOperand>()) return OpTrait::impl::verifyOneOperand(op);
  bool fits = true;
  ((fits &= !op->hasTrait<OpTrait::NOperands<N + 2>::template Impl>() ||
            succeeded(OpTrait::impl::verifyNOperands(op, N + 2))),
   ...);
  ((fits &= !op->hasTrait<OpTrait::AtLeastNOperands<N + 1>::template Impl>() ||
            succeeded(OpTrait::impl::verifyAtLeastNOperands(op, N + 1))),
   ...);
  return success(fits);
}

// What is wrong with the number of operands or with an attribute, missing or of a wrong kind; empty
// if these fit. Type inference runs afterwards and relies on them.
std::string call_error(OpBuilder& build, const std::string& name, ValueRange operands,
                       llvm::ArrayRef<NamedAttribute> attrs) {
  constexpr unsigned kMost = 8;  // operands of an operation that takes a fixed number
  std::string error;
  ScopedDiagnosticHandler handler(build.getContext(), [&](Diagnostic& d) {
    error = d.str().substr(("'" + name + "' op ").size());  // which all these verifiers write first
  });
  Operation* made = make_op(build, build.getUnknownLoc(), name, operands, attrs,
                            RankedTensorType::get({}, build.getF32Type()));
  if (succeeded(verify_operand_count(made, std::make_integer_sequence<unsigned, kMost - 1>())))
    (void)cast<ReproOp>(made).verify_attributes();
  made->erase();
  return error;
}

struct DimsType {
  DType dtype;
  Shape shape;
};
DimsType dims_type(const TensorType& type) {
  DimsType made{type.dtype, {}};
  for (const int64_t size : type.shape) made.shape.push_back(Dim::of(size));
  return made;
}
Result<TensorType> static_type(const DimsType& type) {
  TensorType made{type.dtype, {}};
  for (const Dim& size : type.shape) {
    if (!size.constant()) return not_covered("its result's type is not known");
    made.shape.push_back(size.value);
  }
  return made;
}

Result<DimsType> infer_dims(MLIRContext& context, const std::string& op, const Attributes& attrs,
                            const std::vector<DimsType>& operands, const std::optional<DimsType>& wanted) {
  const std::string name = ReproDialect::getDialectNamespace().str() + "." + op;
  const auto registered = RegisteredOperationName::lookup(name, &context);
  if (!registered || !op_info(op))
    return not_covered(op + ": there is no operation of this name (spec/opset.toml has all)");
  OpBuilder build(&context);
  SmallVector<NamedAttribute> given;
  for (const auto& [key, value] : attrs) {
    const auto names = registered->getAttributeNames();
    if (llvm::none_of(names, [&](StringAttr a) { return a.getValue() == key; }))
      return bad_input(op + ": attribute '" + key + "': the operation has none of this name");
    given.push_back(build.getNamedAttr(key, attribute_of(build, value)));
  }
  auto tensor = [&](const DimsType& t) { return tensor_of(t.shape, type_of(&context, t.dtype)); };
  Block block;
  build.setInsertionPointToEnd(&block);
  // A bf16 or f16 operand stands for a weight that the kernel widens; the verifier knows which
  // operands may be one.
  SmallVector<Value> values;
  for (const DimsType& t : operands) {
    if (t.dtype == DType::bf16 || t.dtype == DType::f16)
      values.push_back(build.create<ReproWeightOp>(
          build.getUnknownLoc(), tensor(t), build.getStringAttr("operand"), build.getStringAttr(""),
          build.getI64IntegerAttr(0), build.getI64IntegerAttr(0), StringAttr(), UnitAttr()));
    else
      values.push_back(block.addArgument(tensor(t), build.getUnknownLoc()));
  }
  if (operands.empty() && !wanted)
    return not_covered(op + ": the type of its result does not follow from operands");
  if (const std::string wrong = call_error(build, name, values, given); !wrong.empty())
    return bad_input(op + ": " + wrong);
  const Result<Operation*> made =
      make_checked(build, build.getUnknownLoc(), name, values, given, wanted ? tensor(*wanted) : Type());
  if (!made) return made.error().around(op + ": ");
  const Type type = (*made)->getResult(0).getType();
  const std::optional<DType> dtype = dtype_of(getElementTypeOrSelf(type));
  if (!dtype) return not_covered("its result's type is not known");
  return DimsType{*dtype, shape_of(type)};
}
}  // namespace

Result<TensorType> infer_type(const std::string& op, const Attributes& attrs,
                              const std::vector<TensorType>& operands,
                              const std::optional<TensorType>& wanted) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  load_dialects(context);
  return infer_type(context, op, attrs, operands, wanted);
}

Result<TensorType> infer_type(MLIRContext& context, const std::string& op, const Attributes& attrs,
                              const std::vector<TensorType>& operands,
                              const std::optional<TensorType>& wanted) {
  std::vector<DimsType> types;
  for (const TensorType& t : operands) types.push_back(dims_type(t));
  INVAR_TRY(const DimsType found,
            infer_dims(context, op, attrs, types, wanted ? std::optional(dims_type(*wanted)) : std::nullopt));
  return static_type(found);
}

Result<SymbolicType> infer_type(const std::string& op, const Attributes& attrs,
                                const std::vector<SymbolicType>& operands) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  load_dialects(context);
  std::vector<DimsType> types;
  for (const SymbolicType& t : operands) {
    types.push_back({t.dtype, {}});
    for (const DimExpr& size : t.shape) types.back().shape.push_back(Dim::of(size));
  }
  INVAR_TRY(const DimsType found, infer_dims(context, op, attrs, types, {}));
  SymbolicType made{found.dtype, {}};
  for (const Dim& size : found.shape) {
    const std::optional<DimExpr> known = dim_expr_of(size);
    if (!known) return not_covered(op + ": a size of its result is not known");
    made.shape.push_back(*known);
  }
  return made;
}

}  // namespace invar::compiler
