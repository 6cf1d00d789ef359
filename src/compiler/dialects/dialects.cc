// Registration of the dialects, and the verifier and the syntax that all repro operations share.
#include "compiler/dialects/dialects.h"

#include "base/opset.h"
#include "compiler/dialects/torch/dialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"

#include "onnx_dialect.cc.inc"
#include "repro_dialect.cc.inc"
#include "repro_interfaces.cc.inc"

#define GET_TYPEDEF_CLASSES
#include "onnx_types.cc.inc"
#define GET_ATTRDEF_CLASSES
#include "repro_attributes.cc.inc"
#define GET_OP_CLASSES
#include "onnx_ops.cc.inc"

namespace invar::compiler {
using namespace mlir;

void OnnxDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "onnx_types.cc.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "onnx_ops.cc.inc"
      >();
}

void ReproDialect::initialize() {
  addAttributes<DimsAttr>();
  registerReproDialectOperations(this);  // defined in the shards that CMake generates
}

Attribute DimsAttr::parse(AsmParser& parser, Type) {
  DimList dims;
  const auto dim = [&] {
    std::string text;
    const SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseString(&text))) return failure();
    dims.push_back(text.empty() ? std::nullopt : DimExpr::parse_canonical(text));
    if (text.empty() || dims.back()) return success();
    return LogicalResult(parser.emitError(loc, "\"") << text << "\" is no dimension as plan.12 writes it");
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, dim))) return {};
  return get(parser.getContext(), dims);
}

void DimsAttr::print(AsmPrinter& printer) const {
  printer << '<';
  llvm::interleaveComma(getDims(), printer, [&](const std::optional<DimExpr>& dim) {
    printer << '"' << (dim ? dim->text() : "") << '"';
  });
  printer << '>';
}

LogicalResult ReproSizesOp::verify() {
  const DimList& dims = getSizes().getDims();
  const bool one_each = static_cast<int64_t>(dims.size()) == getType().getNumElements();
  return one_each && !llvm::is_contained(dims, std::nullopt)
             ? success()
             : emitOpError("needs one dimension for each element");
}

LogicalResult verify_repro_op(Operation* op) {
  const OpInfo* info = op_info(op->getName().stripDialect());
  if (!info) return op->emitOpError("is not in spec/opset.toml");
  auto numerics = op->getAttrOfType<StringAttr>("numerics");
  auto version = op->getAttrOfType<IntegerAttr>("version");
  if (!numerics) return op->emitOpError("requires attribute 'numerics', a string");
  if (!version || !version.getType().isSignlessInteger(64))
    return op->emitOpError("requires attribute 'version', an i64");
  if (numerics.getValue() != llvm::StringRef(info->numerics) || version.getInt() != info->version)
    return op->emitOpError("has numerics \"")
           << numerics.getValue() << "\" version " << version.getInt() << ", this build has \""
           << llvm::StringRef(info->numerics) << "\" version " << info->version;
  auto repro = cast<ReproOp>(op);
  for (OpOperand& operand : op->getOpOperands()) {
    Type element = getElementTypeOrSelf(operand.get().getType());
    if (!element.isBF16() && !element.isF16()) continue;
    if (repro.elementwise() || repro.copies()) continue;  // these declare their own type constraints
    unsigned i = operand.getOperandNumber();
    if (!repro.widens(i) || !isa_and_nonnull<ReproWeightOp, TorchWeightOp>(operand.get().getDefiningOp()))
      return op->emitOpError("operand #")
             << i << " has element type " << element << ", which only a weight may have here";
  }
  return success();
}

ParseResult parse_repro_op(OpAsmParser& parser, OperationState& result) {
  SmallVector<OpAsmParser::UnresolvedOperand, 4> operands;
  const SMLoc loc = parser.getCurrentLocation();
  FunctionType type;
  if (parser.parseOperandList(operands) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type))
    return failure();
  result.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), loc, result.operands);
}

void print_repro_op(OpAsmPrinter& printer, Operation* op) {
  printer << ' ' << op->getOperands();
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : ";
  printer.printFunctionalType(op->getOperandTypes(), op->getResultTypes());
}

}  // namespace invar::compiler
