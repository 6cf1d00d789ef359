// Operations that only move elements carry bits unchanged (formats.8, move.1, reshape.1: NaN payloads and subnormals too), so one
// whose every element arrives where it was is its operand, and two in a row are one.
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {

SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> perm) {
  SmallVector<int64_t> back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  return back;
}

bool keeps_order(Type from, llvm::ArrayRef<int64_t> perm) {
  const Shape shape = shape_of(from);
  int64_t last = -1;
  for (int64_t d : perm) {
    if (shape[static_cast<size_t>(d)] == Extent::of(1)) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

Value transposed(OpBuilder& build, Location loc, Value x, llvm::ArrayRef<int64_t> perm) {
  const Shape from = shape_of(x.getType());
  Shape to;
  for (int64_t d : perm) to.push_back(from[static_cast<size_t>(d)]);
  return make_op(build, loc, TransposeOp::getOperationName(), x,
                 build.getNamedAttr("perm", build.getDenseI64ArrayAttr(perm)), tensor_of(to, element_of(x)))
      ->getResult(0);
}

Value reshaped(OpBuilder& build, Location loc, Value x, const Shape& shape) {
  return make_op(build, loc, ReshapeOp::getOperationName(), x, {}, tensor_of(shape, element_of(x)))
      ->getResult(0);
}

namespace {

// Equal types whose dimensions are known: an unknown one may be two different sizes.
bool same_type(Type a, Type b) {
  return a == b && llvm::all_of(shape_of(a), [](const Extent& e) { return e.known(); });
}

struct ReshapeOfReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter& rewriter) const override {
    if (same_type(op.getX().getType(), op.getType())) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto inner = op.getX().getDefiningOp<ReshapeOp>();
    if (!inner) return failure();
    // Of two that ask for as many elements, neither is left out.
    const auto from = count_of(shape_of(inner.getX().getType())),
               between = count_of(shape_of(inner.getType())), to = count_of(shape_of(op.getType()));
    if (from != between && between != to) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }
};

struct TransposeOfTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter& rewriter) const override {
    const llvm::ArrayRef<int64_t> perm = op.getPerm();
    // Dimensions of 1 have one place, wherever they stand: the order in memory is the same.
    if (keeps_order(op.getX().getType(), perm)) {
      Value x = op.getX();
      if (!same_type(x.getType(), op.getType()))
        x = reshaped(rewriter, op.getLoc(), x, shape_of(op.getType()));
      rewriter.replaceOp(op, x);
      return success();
    }
    auto inner = op.getX().getDefiningOp<TransposeOp>();
    if (!inner) return failure();
    SmallVector<int64_t> both;
    for (int64_t d : perm) both.push_back(inner.getPerm()[static_cast<size_t>(d)]);
    rewriter.replaceOp(op, transposed(rewriter, op.getLoc(), inner.getX(), both));
    return success();
  }
};

// All of x, from its first element on. In a dimension of 1 every start and step names its one element.
struct SliceOfAll : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter& rewriter) const override {
    if (!same_type(op.getX().getType(), op.getType())) return failure();
    for (auto [e, start, step] : llvm::zip(shape_of(op.getType()), op.getStarts(), op.getSteps()))
      if (e != Extent::of(1) && (start != 0 || step != 1)) return failure();
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

struct ExpandOfExpand : OpRewritePattern<ExpandOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpandOp op, PatternRewriter& rewriter) const override {
    if (same_type(op.getX().getType(), op.getType())) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto inner = op.getX().getDefiningOp<ExpandOp>();
    if (!inner || !asks_nothing(inner, shape_of(op.getType()))) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }

 private:
  // Whether what the inner one asks of sizes is asked of x and the result, too.
  static bool asks_nothing(ExpandOp inner, const Shape& to) {
    const Shape from = shape_of(inner.getX().getType()), between = shape_of(inner.getType());
    for (size_t i = 1; i <= between.size(); ++i) {
      const Extent& e = between[between.size() - i];
      const bool kept = i <= from.size() && e == from[from.size() - i];
      if (!kept && e != to[to.size() - i] && e != Extent::of(1)) return false;
    }
    return true;
  }
};

// Operands without elements along the axis add nothing. The first stays where all are such.
struct ConcatOfOne : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter& rewriter) const override {
    SmallVector<Value> kept;
    const auto axis = static_cast<size_t>(op.getAxis());
    for (Value v : op.getOperands())
      if (shape_of(v.getType())[axis] != Extent::of(0)) kept.push_back(v);
    if (kept.empty()) kept.push_back(op.getOperands()[0]);
    // Where dimensions beside the axis have other names, each operand is asked.
    for (Value v : op.getOperands()) {
      Shape shape = shape_of(v.getType());
      shape[axis] = shape_of(op.getType())[axis];
      if (shape != shape_of(op.getType())) return failure();
    }
    if (kept.size() == 1 && same_type(kept[0].getType(), op.getType())) {
      rewriter.replaceOp(op, kept[0]);
      return success();
    }
    if (kept.size() == op.getOperands().size()) return failure();
    rewriter.modifyOpInPlace(op, [&] { op->setOperands(kept); });
    return success();
  }
};

template <class Op>
struct PadOfNothing : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!same_type(op.getX().getType(), op.getType())) return failure();
    // Of equal size, what begins at 0 ends where x does.
    if (llvm::any_of(op.getBegins(), [](int64_t b) { return b != 0; })) return failure();
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

// reshape.2: the bits stay, whatever type they have in between.
struct BitcastOfBitcast : OpRewritePattern<BitcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BitcastOp op, PatternRewriter& rewriter) const override {
    if (same_type(op.getX().getType(), op.getType())) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto inner = op.getX().getDefiningOp<BitcastOp>();
    if (!inner) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }
};

}  // namespace

void add_copies(RewritePatternSet& set) {
  set.add<ReshapeOfReshape, TransposeOfTranspose, SliceOfAll, ExpandOfExpand, ConcatOfOne,
          PadOfNothing<PadOp>, PadOfNothing<PadEdgeOp>, PadOfNothing<PadReflectOp>, PadOfNothing<PadWrapOp>,
          BitcastOfBitcast>(set.getContext());
}

}  // namespace invar::compiler
