#include "ir/rules.h"

namespace invar::ir {
namespace {

Status matmul(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(Value out, node.make<MatmulOp>({node.in(0), node.in(1)}, {node.attr("trans_b", int64_t{0})}));
  return node.replace(out);
}

// A' B' + C with alpha = beta = 1.
Status gemm(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"alpha", "beta", "transA", "transB"}));
  INVAR_CHECK_OK(node.only("alpha", 1.0f));
  INVAR_TRY(int64_t trans_a, node.i("transA", 0));
  INVAR_TRY(int64_t trans_b, node.i("transB", 0));
  SmallVector<NamedAttribute> attrs = {node.attr("trans_b", int64_t{trans_b != 0})};
  if (trans_a) attrs.push_back(node.attr("trans_a", int64_t{1}));  // absent otherwise: plans stay as they are
  INVAR_TRY(Value out, node.make<MatmulOp>({node.in(0), node.in(1)}, attrs));
  if (node.has(2)) {
    INVAR_CHECK_OK(node.only("beta", 1.0f));
    INVAR_TRY(out, node.make<AddOp>({out, node.in(2)}));
  }
  return node.replace(out);
}

// A transposed weight as second factor -> the weight as it is stored.
struct ReadTransposed : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter& rewriter) const override {
    auto weight = op.getB().getDefiningOp<ReproWeightOp>();
    if (!weight || !weight.getTransposed()) return failure();
    rewriter.setInsertionPointAfter(weight);
    auto stored = cast<ReproWeightOp>(rewriter.clone(*weight));
    Shape shape = shape_of(weight.getType());
    std::swap(shape[0], shape[1]);
    stored.getOut().setType(tensor_of(shape, getElementTypeOrSelf(weight.getType())));
    stored.setTransposed(false);
    rewriter.modifyOpInPlace(op, [&] {
      op.getBMutable().assign(stored.getOut());
      op.setTransB(op.getTransB() ? 0 : 1);
    });
    return success();
  }
};

}  // namespace

LogicalResult MatmulOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                         SmallVectorImpl<Type>& out) {
  Shape a = shape_of(op.getA().getType()), b = shape_of(op.getB().getType());
  if (a.size() < 2 || b.size() < 2) return refuse(loc, "covered is [..., M, K] x [..., K, N]");
  const bool trans_a = op.getTransA().value_or(0) != 0, trans_b = op.getTransB() != 0;
  const Extent k = a[a.size() - (trans_a ? 2 : 1)], m = a[a.size() - (trans_a ? 1 : 2)];
  const Extent kb = b[b.size() - (trans_b ? 1 : 2)], n = b[b.size() - (trans_b ? 2 : 1)];
  if (!same(k, kb)) return differ(loc, k, kb, "inner dimensions");
  a.resize(a.size() - 2), b.resize(b.size() - 2);
  std::optional<Shape> out_shape = broadcast(a, b);
  if (!out_shape)
    return refuse(
        loc, "leading dimensions " + text_of(a) + " and " + text_of(b) + " cannot be shown to broadcast");
  out_shape->push_back(m), out_shape->push_back(n);
  out.push_back(tensor_of(*out_shape, Float32Type::get(context)));
  return success();
}

void import_matmul(Rooms& rooms) {
  rooms.on("MatMul", 1, matmul);
  rooms.on("Gemm", 11, gemm);
  rooms.fold<ReadTransposed>();
}

}  // namespace invar::ir
