// Constants that became operands by other rewrites. The reference rows compute what every row computes (compiler/passes/constant_evaluator.h). Of those that are too
// large for that, the elements that a reshape or a slice keeps (formats.8: as they are) are a constant of their own where they lie together.
#include "compiler/passes/constant_evaluator.h"
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {
namespace {

struct Evaluate : OpInterfaceRewritePattern<ReproOp> {
  Evaluate(MLIRContext* context, int64_t* evaluated)
      : OpInterfaceRewritePattern(context), evaluated_(evaluated) {}
  LogicalResult matchAndRewrite(ReproOp op, PatternRewriter& rewriter) const override {
    auto known = [](Value v) {
      auto weight = v.getDefiningOp<ReproWeightOp>();
      return weight && weight.getData();
    };
    if (*evaluated_ >= kMostEvaluated || op->getNumOperands() == 0 || !llvm::all_of(op->getOperands(), known))
      return failure();
    const std::optional<std::string> bytes = evaluate(op);
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

ReproWeightOp large(Value v) {
  auto weight = v.getDefiningOp<ReproWeightOp>();
  return weight && !weight.getData() && !weight.getTransposed() ? weight : ReproWeightOp();
}
// What `op` makes of it lies `at` bytes behind its begin.
void replace_by_part(PatternRewriter& rewriter, Operation* op, ReproWeightOp weight, int64_t at) {
  const auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const auto size = static_cast<int64_t>(size_of(*dtype_of(type.getElementType())));
  std::string name =
      weight.getName().str() + (at ? " from " + std::to_string(at) : "") + " [";  // a plan has one of a name
  for (auto [d, n] : llvm::enumerate(type.getShape())) name += (d ? ", " : "") + std::to_string(n);
  name += "]";
  rewriter.setInsertionPointAfter(weight);
  auto part = cast<ReproWeightOp>(rewriter.clone(*weight));
  part.setName(name), part.setOffset(weight.getOffset() + at), part.setLength(type.getNumElements() * size);
  part.getOut().setType(type);
  rewriter.replaceOp(op, part.getOut());
}

struct ReshapeOfWeight : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter& rewriter) const override {
    auto weight = large(op.getX());
    if (!weight || !op.getType().hasStaticShape() ||
        cast<RankedTensorType>(weight.getType()).getNumElements() != op.getType().getNumElements())
      return failure();
    replace_by_part(rewriter, op, weight, 0);
    return success();
  }
};

struct SliceOfWeight : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter& rewriter) const override {
    auto weight = large(op.getX());
    if (!weight || !op.getType().hasStaticShape() || op.getType().getNumElements() == 0) return failure();
    const llvm::ArrayRef<int64_t> from = cast<RankedTensorType>(weight.getType()).getShape(),
                                  to = op.getType().getShape();
    auto at = static_cast<int64_t>(size_of(*dtype_of(element_of(op.getX()))));
    bool whole = true;  // of the dimensions behind this one
    int64_t begin = 0;
    for (size_t d = from.size(); d-- > 0; at *= from[d]) {
      const int64_t start = op.getStarts()[d] + (op.getStarts()[d] < 0 ? from[d] : 0);
      if (to[d] != 1 && (!whole || op.getSteps()[d] != 1)) return failure();
      if (start < 0 || start + to[d] > from[d]) return failure();
      begin += start * at, whole &= to[d] == from[d];
    }
    replace_by_part(rewriter, op, weight, begin);
    return success();
  }
};

}  // namespace

void add_constants(RewritePatternSet& set, int64_t* evaluated) {
  set.add<Evaluate>(set.getContext(), evaluated);
  set.add<ReshapeOfWeight, SliceOfWeight>(set.getContext());
}

}  // namespace invar::compiler
