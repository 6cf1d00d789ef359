// What a kernel can read in another order or repeat by itself needs no copy. Each operation reads the same elements for each element of
// its result as before, and sums them in the same order, which does not depend on where they lie.
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {
namespace {

// matmul.3: transposition is tuning.
struct ReadTurned : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter& rewriter) const override {
    for (unsigned side : {0u, 1u}) {
      auto turn = op->getOperand(side).getDefiningOp<TransposeOp>();
      if (!turn || turn.getPerm().size() < 2) continue;
      // Rows and columns exchanged by the kernel, and what is left to do before it.
      SmallVector<int64_t> left(turn.getPerm());
      std::swap(left[left.size() - 2], left.back());
      Value x = turn.getX();
      const bool nothing_left = keeps_order(x.getType(), left);
      if (nothing_left && !llvm::is_sorted(left)) {
        x = reshaped(rewriter, op.getLoc(), x, moved(shape_of(x.getType()), left));
      } else if (!nothing_left) {
        // A copy that leaves rows whole is better than one that takes them apart.
        if (side == 0 || !turn->hasOneUse() || left.back() != static_cast<int64_t>(left.size()) - 1) continue;
        x = transposed(rewriter, op.getLoc(), x, left);
      }
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(side, x);
        if (side)
          op.setTransB(op.getTransB() ? 0 : 1);
        else if (op.getTransA().value_or(0))
          op.removeTransAAttr();  // absent where it is 0
        else
          op.setTransA(1);
      });
      return success();
    }
    return failure();
  }
  static Shape moved(const Shape& from, llvm::ArrayRef<int64_t> perm) {
    Shape to;
    for (int64_t d : perm) to.push_back(from[static_cast<size_t>(d)]);
    return to;
  }
};

// attention.1: the same heads, behind the positions instead of before them. The result is turned instead of the three operands.
struct HeadsBehind : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter& rewriter) const override {
    if (!op.getHeadsFirst().value_or(0)) return failure();
    SmallVector<Value> operands;
    for (Value v : {op.getQ(), op.getK(), op.getV()}) {
      auto turn = v.getDefiningOp<TransposeOp>();
      if (!turn || turn.getPerm() != llvm::ArrayRef(kTurn)) return failure();
      Shape shape = shape_of(turn.getX().getType());
      const std::optional<Polynomial> width = count_of({shape[2], shape[3]});
      if (!width || !width->constant()) return failure();
      operands.push_back(
          reshaped(rewriter, op.getLoc(), turn.getX(), {shape[0], shape[1], Extent::of(*width)}));
    }
    const Shape y = shape_of(op.getType());
    for (Value v : op.getMore()) operands.push_back(v);
    SmallVector<NamedAttribute> attrs;
    for (NamedAttribute a : op->getAttrs())
      if (a.getName() != "heads_first" && a.getName() != "numerics" && a.getName() != "version")
        attrs.push_back(a);
    const Shape flat = {y[0], y[2], Extent::of(y[1].value * y[3].value)};
    Value out = make_op(rewriter, op.getLoc(), AttentionOp::getOperationName(), operands, attrs,
                        tensor_of(flat, element_of(op.getOut())))
                    ->getResult(0);
    out = reshaped(rewriter, op.getLoc(), out, {y[0], y[2], y[1], y[3]});
    rewriter.replaceOp(op, transposed(rewriter, op.getLoc(), out, kTurn));
    return success();
  }
  static constexpr int64_t kTurn[] = {0, 2, 1, 3};
};

// elementwise.2: kernels repeat what broadcasts. Only where the result stays as large.
struct RepeatInKernel : OpInterfaceRewritePattern<ReproOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ReproOp op, PatternRewriter& rewriter) const override {
    if (!op.pointwise() || op->getNumOperands() < 2) return failure();
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      auto expand = op->getOperand(i).getDefiningOp<ExpandOp>();
      if (!expand) continue;
      std::optional<Shape> rest = shape_of(expand.getX().getType());
      for (unsigned k = 0; rest && k < op->getNumOperands(); ++k)
        if (k != i) rest = broadcast(*rest, shape_of(op->getOperand(k).getType()));
      if (!rest || *rest != shape_of(op->getResult(0).getType())) continue;
      rewriter.modifyOpInPlace(op, [&] { op->setOperand(i, expand.getX()); });
      return success();
    }
    return failure();
  }
};

}  // namespace

void add_operands(RewritePatternSet& set) {
  set.add<ReadTurned, HeadsBehind, RepeatInKernel>(set.getContext());
}

}  // namespace invar::compiler
