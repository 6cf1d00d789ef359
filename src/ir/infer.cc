#include "ir/ir.h"
#include "ir/passes.h"
#include "ir/rules.h"

namespace invar::ir {
namespace {

Attribute attribute_of(Builder& build, const Attr& value) {
  if (auto* v = std::get_if<int64_t>(&value)) return build.getI64IntegerAttr(*v);
  if (auto* v = std::get_if<F32Bits>(&value)) return build.getF32FloatAttr(v->value());
  if (auto* v = std::get_if<std::string>(&value)) return build.getStringAttr(*v);
  return build.getDenseI64ArrayAttr(std::get<std::vector<int64_t>>(value));
}

Result<TensorType> type_of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  const std::optional<DType> dtype = tensor ? dtype_of(tensor.getElementType()) : std::nullopt;
  if (!dtype || !tensor.hasStaticShape()) return not_covered("its result's type is not known");
  return TensorType{*dtype, tensor.getShape().vec()};
}

}  // namespace

Result<TensorType> infer(const std::string& op, const Attrs& attrs, const std::vector<TensorType>& operands) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  load_dialects(context);
  const std::string name = ReproDialect::getDialectNamespace().str() + "." + op;
  if (!RegisteredOperationName::lookup(name, &context))
    return not_covered(op + ": there is no operation of this name (spec/opset.toml has all)");
  OpBuilder build(&context);
  Block block;
  build.setInsertionPointToEnd(&block);
  for (const TensorType& t : operands)
    block.addArgument(RankedTensorType::get(t.shape, type_of(&context, t.dtype)), build.getUnknownLoc());
  SmallVector<NamedAttribute> given;
  for (const auto& [key, value] : attrs) given.push_back(build.getNamedAttr(key, attribute_of(build, value)));
  if (operands.empty()) return not_covered("the type of its result does not follow from its operands");
  INVAR_TRY(Operation * made,
            make_checked(build, build.getUnknownLoc(), name, block.getArguments(), given, {}));
  return type_of(made->getResult(0).getType());
}

}  // namespace invar::ir
