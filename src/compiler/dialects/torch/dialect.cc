// The torch dialect and its verifiers: what an operation of Invar or its spelling in torch computes
// has the operands and the result that the operation of spec/opset.toml has.
#include "compiler/dialects/torch/dialect.h"

#include "base/opset.h"
#include "compiler/dialects/torch/template.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "torch_dialect.cc.inc"

#define GET_OP_CLASSES
#include "torch_ops.cc.inc"

namespace invar::compiler {
using namespace mlir;

void TorchDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "torch_ops.cc.inc"
      >();
}

// The operation of the repro dialect on the same operands, without a place in the module.
static Operation* repro_operation(Operation* op, StringRef name, ValueRange operands, DictionaryAttr params) {
  const OpInfo* info = op_info(std::string_view(name));
  if (!info) return nullptr;
  OpBuilder build(op->getContext());
  OperationState state(op->getLoc(), ReproDialect::getDialectNamespace().str() + "." + name.str());
  state.addOperands(operands);
  state.addAttributes(params.getValue());
  state.addAttribute("numerics", build.getStringAttr(StringRef(info->numerics)));
  state.addAttribute("version", build.getI64IntegerAttr(info->version));
  state.addTypes(op->getResultTypes());
  return build.create(state);
}

// Operand count, element types, shapes and attributes by the verifier and the type inference of the
// operation itself. Its messages come first, because a diagnostic has one place.
static LogicalResult verify_computation(Operation* op, StringRef name, ValueRange operands,
                                        DictionaryAttr params) {
  Operation* made = repro_operation(op, name, operands, params);
  if (!made) return op->emitOpError("\"") << name << "\" is not in spec/opset.toml";
  std::string reason;
  bool fits = true;
  {
    ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic& d) {
      if (reason.empty()) reason = d.str();
    });
    for (const NamedAttribute param : params)
      if (!llvm::is_contained(made->getName().getAttributeNames(), param.getName())) {
        reason = "has no attribute '" + param.getName().str() + "'";
        fits = false;
      }
    const auto registered = made->getName().getRegisteredInfo();
    fits = fits && registered && succeeded(registered->verifyInvariants(made)) &&
           succeeded(registered->verifyRegionInvariants(made));  // compares the inferred type
  }
  made->erase();
  return fits ? success() : op->emitOpError("\"") << name << "\": " << reason;
}

LogicalResult TorchPrimitiveOp::verify() {
  return verify_computation(*this, getOp(), getInputs(), getParams());
}

LogicalResult TorchExpressionOp::verify() {
  const std::optional<TorchTemplate> text = TorchTemplate::parse(getText());
  if (!text) return emitOpError("has a text with a field that is neither {NUMBER} nor {DIMENSION}");
  for (const TorchTemplate::Piece& piece : text->pieces)
    if (piece.operand >= static_cast<int64_t>(getInputs().size()))
      return emitOpError("has operand {")
             << piece.operand << "} in its text, but only " << getInputs().size() << " operands";
  return verify_computation(*this, getOp(), getInputs(), getParams());
}

LogicalResult TorchSizeOp::verify() {
  const auto type = cast<RankedTensorType>(getValue().getType());
  if (!type.getElementType().isSignlessInteger(64)) return emitOpError("needs a value of i64");
  const bool outside = type.hasStaticShape() && static_cast<int64_t>(getElement()) >= type.getNumElements();
  return type.getRank() > 1 || outside ? emitOpError("has no element ") << getElement() : success();
}

// What a body takes: a loop's the step, what is carried and what is fixed; a branch's all but the
// condition. What it gives: a loop's whether it goes on, what is carried and a row of each other
// result.
static LogicalResult verify_body(TorchFlowOp flow, func::FuncOp body) {
  const bool loop = flow.getOp() == "loop";
  const auto inputs = flow.getInputs();
  const size_t before = loop ? 1 : 0, carried = loop ? flow.getCarried() : flow.getNumResults();
  const size_t taken = inputs.size() - (loop ? 2 : 1) + before, given = flow.getNumResults() + before;
  const FunctionType type = body.getFunctionType();
  if (type.getNumInputs() != taken || type.getNumResults() != given)
    return flow.emitOpError("has a body @")
           << body.getName() << " of " << type.getNumInputs() << " inputs and " << type.getNumResults()
           << " results; it needs " << taken << " and " << given;
  const auto element = [](Type t) { return cast<RankedTensorType>(t).getElementType(); };
  const auto rank = [](Type t) { return cast<RankedTensorType>(t).getRank(); };
  for (size_t i = before; i < taken; ++i)
    if (element(type.getInput(i)) != element(inputs[inputs.size() - taken + i].getType()))
      return flow.emitOpError("gives input ") << i << " of @" << body.getName() << " another element type";
  for (size_t i = 0; i < flow.getNumResults(); ++i) {
    const Type result = flow.getResultTypes()[i], of_body = type.getResult(i + before);
    if (element(result) != element(of_body) || rank(result) != rank(of_body) + (i >= carried))
      return flow.emitOpError("has a result ")
             << i << " of another type than @" << body.getName() << " gives";
  }
  return success();
}

LogicalResult TorchFlowOp::verifySymbolUses(SymbolTableCollection& symbols) {
  const bool loop = getOp() == "loop";
  if (!loop && getOp() != "if") return emitOpError("is neither \"loop\" nor \"if\"");
  if (getBodies().size() != (loop ? 1u : 2u))
    return emitOpError("has another number of bodies than ") << getOp();
  if (getInputs().size() < (loop ? 2u : 1u)) return emitOpError("has too few operands");
  if (loop && (getCarried() > getNumResults() || getCarried() + 2 > getInputs().size()))
    return emitOpError("carries more than it has");
  for (const auto name : getBodies().getAsRange<FlatSymbolRefAttr>()) {
    const auto body = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, name);
    if (!body) return emitOpError("has no body ") << name;
    if (failed(verify_body(*this, body))) return failure();
  }
  return success();
}

}  // namespace invar::compiler
