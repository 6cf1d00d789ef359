// Lowering of Cast and CastLike, and the rewrite that leaves the widening of weights to the kernel
// that reads them.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Status convert_to(NodeView& node, Type element) {
  if (getElementTypeOrSelf(node.in(0).getType()) == element) return node.replace(node.in(0));
  INVAR_TRY(Value out, node.make<CastOp>(node.in(0), {}, tensor_of(node.shape(0), element)));
  return node.replace(out);
}

// The names of TensorProto.DataType in the order of their numbers, which Cast has from opset 6 on.
constexpr llvm::StringLiteral kTypeNames =
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64";

Status convert_type(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"to", "saturate", "round_mode"}));
  INVAR_TRY(int64_t code,
            node.version() < 6 ? enum_attr(node, "to", kTypeNames, "UNDEFINED") : node.int_attr("to", 0));
  Type element = onnx_type(node.context(), static_cast<int32_t>(code));
  if (!element) return bad_input("attribute \"to\" is no element type");
  if (!dtype_of(element))
    return not_covered("element type " + std::to_string(code) + " (TensorProto.DataType)");
  return convert_to(node, element);
}

// CastLike: to the element type of the second operand.
Status convert_like(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"saturate", "round_mode"}));
  Type element = getElementTypeOrSelf(node.in(1).getType());
  if (!dtype_of(element)) return not_covered("the element type of operand 1");
  return convert_to(node, element);
}

// Replaces a weight widened to f32 by the narrow weight if the kernel that reads it widens.
// Widening is exact, so the bits are the same.
struct WidenInKernel : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp cast, PatternRewriter& rewriter) const override {
    auto weight = cast.getX().getDefiningOp<ReproWeightOp>();
    if (!weight || !getElementTypeOrSelf(cast.getType()).isF32()) return failure();
    Type narrow = getElementTypeOrSelf(weight.getType());
    if (!narrow.isBF16() && !narrow.isF16()) return failure();
    bool changed = false;
    rewriter.replaceUsesWithIf(cast.getOut(), weight.getOut(), [&](OpOperand& use) {
      auto reader = dyn_cast<ReproOp>(use.getOwner());
      bool widens = reader && reader.widens(use.getOperandNumber());
      changed |= widens;
      return widens;
    });
    return success(changed);
  }
};

}  // namespace

LogicalResult CastOp::verify() {
  if (shape_of(getX().getType()) == shape_of(getType())) return success();
  return emitOpError("changes the shape");
}

void import_cast(RuleRegistry& registry) {
  registry.add_rule("Cast", 1, convert_type, "T>*");
  registry.add_rule("CastLike", 15, convert_like, "TS>*");
  registry.add_pattern<WidenInKernel>();
}

}  // namespace invar::compiler
