// Constant folding after other rewrites (constant_evaluator.h). A constant too large to fold stays
// in its file: a reshape, or a slice of contiguous elements, of it becomes a weight with its own
// offset and length. Both carry bits unchanged (formats.8).
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/constant_evaluator.h"

namespace invar::compiler {
namespace {

struct FoldConstant : OpInterfaceRewritePattern<ReproOp> {
  FoldConstant(MLIRContext* context, int64_t* evaluated)
      : OpInterfaceRewritePattern(context), evaluated_(evaluated) {}
  LogicalResult matchAndRewrite(ReproOp op, PatternRewriter& rewriter) const override {
    auto known = [](Value v) {
      auto weight = v.getDefiningOp<ReproWeightOp>();
      return weight && weight.getData();
    };
    if (*evaluated_ >= kMaxFoldedBytes || op->getNumOperands() == 0 ||
        !llvm::all_of(op->getOperands(), known))
      return failure();
    const std::optional<std::string> bytes = fold_constant(op);
    if (!bytes) return failure();
    *evaluated_ += static_cast<int64_t>(bytes->size()) + 64;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    rewriter.replaceOp(
        op, make_constant(rewriter, op.getLoc(), *bytes, *dtype_of(type.getElementType()), type.getShape()));
    return success();
  }

 private:
  int64_t* evaluated_;
};

// The weight that defines v if its bytes are in a file; else null.
ReproWeightOp stored_weight(Value v) {
  auto weight = v.getDefiningOp<ReproWeightOp>();
  return weight && !weight.getData() && !weight.getTransposed() ? weight : ReproWeightOp();
}
// Replaces op by the weight of its result type that begins `offset` bytes behind the begin of
// `weight`.
void replace_by_subrange(PatternRewriter& rewriter, Operation* op, ReproWeightOp weight, int64_t offset) {
  const auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const auto size = static_cast<int64_t>(size_of(*dtype_of(type.getElementType())));
  // Weights of a plan have unique names.
  std::string name = weight.getName().str() + (offset ? " from " + std::to_string(offset) : "") + " [";
  for (auto [d, n] : llvm::enumerate(type.getShape())) name += (d ? ", " : "") + std::to_string(n);
  name += "]";
  rewriter.setInsertionPointAfter(weight);
  auto part = cast<ReproWeightOp>(rewriter.clone(*weight));
  part.setName(name), part.setOffset(weight.getOffset() + offset),
      part.setLength(type.getNumElements() * size);
  part.getOut().setType(type);
  rewriter.replaceOp(op, part.getOut());
}

struct ReshapeOfWeight : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter& rewriter) const override {
    auto weight = stored_weight(op.getX());
    if (!weight || !op.getType().hasStaticShape() ||
        cast<RankedTensorType>(weight.getType()).getNumElements() != op.getType().getNumElements())
      return failure();
    replace_by_subrange(rewriter, op, weight, 0);
    return success();
  }
};

struct SliceOfWeight : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter& rewriter) const override {
    auto weight = stored_weight(op.getX());
    if (!weight || !op.getType().hasStaticShape() || op.getType().getNumElements() == 0) return failure();
    const llvm::ArrayRef<int64_t> from = cast<RankedTensorType>(weight.getType()).getShape(),
                                  to = op.getType().getShape();
    auto stride = static_cast<int64_t>(size_of(*dtype_of(element_of(op.getX()))));
    bool inner_is_whole = true;  // the slice keeps all dimensions inside of the current one
    int64_t begin = 0;
    for (size_t d = from.size(); d-- > 0; stride *= from[d]) {
      const int64_t start = op.getStarts()[d] + (op.getStarts()[d] < 0 ? from[d] : 0);
      if (to[d] != 1 && (!inner_is_whole || op.getSteps()[d] != 1)) return failure();
      if (start < 0 || start + to[d] > from[d]) return failure();
      begin += start * stride, inner_is_whole &= to[d] == from[d];
    }
    replace_by_subrange(rewriter, op, weight, begin);
    return success();
  }
};

}  // namespace

void add_constant_patterns(RewritePatternSet& set, int64_t* evaluated) {
  set.add<FoldConstant>(set.getContext(), evaluated);
  set.add<ReshapeOfWeight, SliceOfWeight>(set.getContext());
}

}  // namespace invar::compiler
