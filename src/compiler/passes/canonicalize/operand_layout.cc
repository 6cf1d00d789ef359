// Kernels can read transposed or broadcast operands without a copy. Each result element still reads
// the same elements and sums them in the same order, which does not depend on their layout, so bits
// stay.
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {
namespace {

// matmul_exact16.3: a second operand is stored in either way.
struct FoldTransposeIntoExact16 : OpRewritePattern<MatmulExact16Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulExact16Op op, PatternRewriter& rewriter) const override {
    auto transpose = op.getB().getDefiningOp<TransposeOp>();
    if (!transpose || transpose.getPerm().size() < 2) return failure();
    SmallVector<int64_t> rest(transpose.getPerm());
    std::swap(rest[rest.size() - 2], rest.back());
    if (!llvm::is_sorted(rest)) return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op->setOperand(1, transpose.getX());
      op.setTransB(op.getTransB() ? 0 : 1);
    });
    return success();
  }
};

// matmul.3: transposition is tuning.
struct FoldTransposeIntoMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter& rewriter) const override {
    for (unsigned side : {0u, 1u}) {
      auto transpose = op->getOperand(side).getDefiningOp<TransposeOp>();
      if (!transpose || transpose.getPerm().size() < 2) continue;
      // The kernel swaps rows and columns. `rest` is the permutation that remains before it.
      SmallVector<int64_t> rest(transpose.getPerm());
      std::swap(rest[rest.size() - 2], rest.back());
      Value x = transpose.getX();
      const bool no_copy = preserves_memory_order(x.getType(), rest);
      if (no_copy && !llvm::is_sorted(rest)) {
        x = make_reshape(rewriter, op.getLoc(), x, permuted(shape_of(x.getType()), rest));
      } else if (!no_copy) {
        // A transpose that keeps rows contiguous is cheaper than one that splits them.
        if (side == 0 || !transpose->hasOneUse() || rest.back() != static_cast<int64_t>(rest.size()) - 1)
          continue;
        x = make_transpose(rewriter, op.getLoc(), x, rest);
      }
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(side, x);
        if (side)
          op.setTransB(op.getTransB() ? 0 : 1);
        else if (op.getTransA().value_or(0))
          op.removeTransAAttr();  // 0 is encoded as absent
        else
          op.setTransA(1);
      });
      return success();
    }
    return failure();
  }
  static Shape permuted(const Shape& from, llvm::ArrayRef<int64_t> perm) {
    Shape to;
    for (int64_t d : perm) to.push_back(from[static_cast<size_t>(d)]);
    return to;
  }
};

// attention.1: replaces [batch, heads, positions, width] operands that are transposes by their
// sources, with heads behind positions. One transpose of the result replaces three of operands.
template <class Op>
struct FoldTransposesIntoAttention : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!op.getHeadsFirst().value_or(0)) return failure();
    SmallVector<Value> operands;
    for (Value v : {op.getQ(), op.getK(), op.getV()}) {
      auto transpose = v.template getDefiningOp<TransposeOp>();
      if (!transpose || transpose.getPerm() != llvm::ArrayRef(kSwapHeads)) return failure();
      Shape shape = shape_of(transpose.getX().getType());
      const std::optional<DimExpr> width = element_count({shape[2], shape[3]});
      if (!width || !width->constant()) return failure();
      operands.push_back(
          make_reshape(rewriter, op.getLoc(), transpose.getX(), {shape[0], shape[1], Dim::of(*width)}));
    }
    const Shape y = shape_of(op.getType());
    for (Value v : op.getMore()) operands.push_back(v);
    SmallVector<NamedAttribute> attrs;
    for (NamedAttribute a : op->getAttrs())
      if (a.getName() != "heads_first" && a.getName() != "numerics" && a.getName() != "version")
        attrs.push_back(a);
    const Shape flat = {y[0], y[2], Dim::of(y[1].value * y[3].value)};
    Value out = make_op(rewriter, op.getLoc(), Op::getOperationName(), operands, attrs,
                        tensor_of(flat, element_of(op.getOut())))
                    ->getResult(0);
    out = make_reshape(rewriter, op.getLoc(), out, {y[0], y[2], y[1], y[3]});
    rewriter.replaceOp(op, make_transpose(rewriter, op.getLoc(), out, kSwapHeads));
    return success();
  }
  static constexpr int64_t kSwapHeads[] = {0, 2, 1, 3};
};

// elementwise.2: kernels broadcast operands, so an expand is unnecessary if the other operands
// already give the result its shape.
struct FoldExpandIntoPointwise : OpInterfaceRewritePattern<ReproOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ReproOp op, PatternRewriter& rewriter) const override {
    if (!op.pointwise() || op->getNumOperands() < 2) return failure();
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      auto expand = op->getOperand(i).getDefiningOp<ExpandOp>();
      if (!expand) continue;
      std::optional<Shape> result = shape_of(expand.getX().getType());
      for (unsigned k = 0; result && k < op->getNumOperands(); ++k)
        if (k != i) result = broadcast(*result, shape_of(op->getOperand(k).getType()));
      if (!result || *result != shape_of(op->getResult(0).getType())) continue;
      rewriter.modifyOpInPlace(op, [&] { op->setOperand(i, expand.getX()); });
      return success();
    }
    return failure();
  }
};

}  // namespace

void add_operand_patterns(RewritePatternSet& set) {
  set.add<FoldTransposeIntoMatmul, FoldTransposeIntoExact16, FoldTransposesIntoAttention<AttentionOp>,
          FoldTransposesIntoAttention<AttentionExact16Op>, FoldExpandIntoPointwise>(set.getContext());
}

}  // namespace invar::compiler
