// Data movement carries bits unchanged, NaN payloads and subnormals included (formats.8, move.1,
// reshape.1). An identity copy is therefore its operand, and two copies in a row are one.
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {

bool preserves_memory_order(Type from, llvm::ArrayRef<int64_t> perm) {
  const Shape shape = shape_of(from);
  int64_t last = -1;
  for (int64_t d : perm) {
    if (shape[static_cast<size_t>(d)] == Dim::of(1)) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

Value make_transpose(OpBuilder& build, Location loc, Value x, llvm::ArrayRef<int64_t> perm) {
  const Shape from = shape_of(x.getType());
  Shape to;
  for (int64_t d : perm) to.push_back(from[static_cast<size_t>(d)]);
  return make_op(build, loc, TransposeOp::getOperationName(), x,
                 build.getNamedAttr("perm", build.getDenseI64ArrayAttr(perm)), tensor_of(to, element_of(x)))
      ->getResult(0);
}

Value make_reshape(OpBuilder& build, Location loc, Value x, const Shape& shape) {
  return make_op(build, loc, ReshapeOp::getOperationName(), x, {}, tensor_of(shape, element_of(x)))
      ->getResult(0);
}

namespace {

// Equal types with known dimensions. Two unknown dimensions may differ.
bool known_equal_types(Type a, Type b) {
  return a == b && llvm::all_of(shape_of(a), [](const Dim& e) { return e.known(); });
}

struct ReshapeOfReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter& rewriter) const override {
    if (known_equal_types(op.getX().getType(), op.getType())) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto inner = op.getX().getDefiningOp<ReshapeOp>();
    if (!inner) return failure();
    // A reshape also checks that element counts agree. Merging must not drop a check that can fail.
    const auto from = element_count(shape_of(inner.getX().getType())),
               between = element_count(shape_of(inner.getType())), to = element_count(shape_of(op.getType()));
    if (from != between && between != to) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }
};

struct TransposeOfTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter& rewriter) const override {
    const llvm::ArrayRef<int64_t> perm = op.getPerm();
    // Moving dimensions of 1 keeps the order in memory, so a reshape suffices.
    if (preserves_memory_order(op.getX().getType(), perm)) {
      Value x = op.getX();
      if (!known_equal_types(x.getType(), op.getType()))
        x = make_reshape(rewriter, op.getLoc(), x, shape_of(op.getType()));
      rewriter.replaceOp(op, x);
      return success();
    }
    auto inner = op.getX().getDefiningOp<TransposeOp>();
    if (!inner) return failure();
    SmallVector<int64_t> composed;
    for (int64_t d : perm) composed.push_back(inner.getPerm()[static_cast<size_t>(d)]);
    rewriter.replaceOp(op, make_transpose(rewriter, op.getLoc(), inner.getX(), composed));
    return success();
  }
};

// A slice of all of x from its first element. In a dimension of 1, every start and step selects its
// only element.
struct IdentitySlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter& rewriter) const override {
    if (!known_equal_types(op.getX().getType(), op.getType())) return failure();
    for (auto [e, start, step] : llvm::zip(shape_of(op.getType()), op.getStarts(), op.getSteps()))
      if (e != Dim::of(1) && (start != 0 || step != 1)) return failure();
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

struct ExpandOfExpand : OpRewritePattern<ExpandOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpandOp op, PatternRewriter& rewriter) const override {
    if (known_equal_types(op.getX().getType(), op.getType())) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto inner = op.getX().getDefiningOp<ExpandOp>();
    if (!inner || !is_redundant(inner, shape_of(op.getType()))) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }

 private:
  // Whether the remaining expand still checks every size that the inner one checks.
  static bool is_redundant(ExpandOp inner, const Shape& to) {
    const Shape from = shape_of(inner.getX().getType()), between = shape_of(inner.getType());
    for (size_t i = 1; i <= between.size(); ++i) {
      const Dim& e = between[between.size() - i];
      const bool kept = i <= from.size() && e == from[from.size() - i];
      if (!kept && e != to[to.size() - i] && e != Dim::of(1)) return false;
    }
    return true;
  }
};

// Drops operands that are empty along the axis. If all are empty, the first stays.
struct SimplifyConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter& rewriter) const override {
    SmallVector<Value> kept;
    const auto axis = static_cast<size_t>(op.getAxis());
    for (Value v : op.getOperands())
      if (shape_of(v.getType())[axis] != Dim::of(0)) kept.push_back(v);
    if (kept.empty()) kept.push_back(op.getOperands()[0]);
    // If another dimension has a different symbol, the concat checks that they are equal, so it
    // stays.
    for (Value v : op.getOperands()) {
      Shape shape = shape_of(v.getType());
      shape[axis] = shape_of(op.getType())[axis];
      if (shape != shape_of(op.getType())) return failure();
    }
    if (kept.size() == 1 && known_equal_types(kept[0].getType(), op.getType())) {
      rewriter.replaceOp(op, kept[0]);
      return success();
    }
    if (kept.size() == op.getOperands().size()) return failure();
    rewriter.modifyOpInPlace(op, [&] { op->setOperands(kept); });
    return success();
  }
};

template <class Op>
struct IdentityPad : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!known_equal_types(op.getX().getType(), op.getType())) return failure();
    // The sizes are equal, so a pad that begins with 0 elements also ends with 0.
    if (llvm::any_of(op.getBegins(), [](int64_t b) { return b != 0; })) return failure();
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

// reshape.2: bitcasts keep the bits, whatever the type in between.
struct BitcastOfBitcast : OpRewritePattern<BitcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BitcastOp op, PatternRewriter& rewriter) const override {
    if (known_equal_types(op.getX().getType(), op.getType())) {
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

void add_copy_patterns(RewritePatternSet& set) {
  set.add<ReshapeOfReshape, TransposeOfTranspose, IdentitySlice, ExpandOfExpand, SimplifyConcat,
          IdentityPad<PadOp>, IdentityPad<PadEdgeOp>, IdentityPad<PadReflectOp>, IdentityPad<PadWrapOp>,
          BitcastOfBitcast>(set.getContext());
}

}  // namespace invar::compiler
