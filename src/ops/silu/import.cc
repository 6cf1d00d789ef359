#include "ir/rules.h"

namespace invar::ir {
namespace {

Status swish(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"alpha"}));
  INVAR_CHECK_OK(node.only("alpha", 1.0f));
  INVAR_TRY(Value out, node.make<SiluOp>(node.in(0)));
  return node.replace(out);
}

// x * sigmoid(x), in either order: the product commutes.
struct FuseGate : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp product, PatternRewriter& rewriter) const override {
    for (int side : {0, 1}) {
      auto gate = product->getOperand(side).getDefiningOp<SigmoidOp>();
      if (!gate || !gate->hasOneUse() || gate.getX() != product->getOperand(1 - side)) continue;
      Operation* fused =
          make_op(rewriter, product.getLoc(), SiluOp::getOperationName(), gate.getX(), {}, product.getType());
      rewriter.replaceOp(product, fused);
      return success();
    }
    return failure();
  }
};

}  // namespace

LogicalResult SiluOp::inferReturnTypes(MLIRContext*, std::optional<Location>, Adaptor op,
                                       SmallVectorImpl<Type>& out) {
  out.push_back(op.getX().getType());
  return success();
}

void import_silu(Rooms& rooms) {
  rooms.on("Swish", 24, swish);
  rooms.fold<FuseGate>();
}

}  // namespace invar::ir
