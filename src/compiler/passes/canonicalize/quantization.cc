// Quantization by one scale looks at one element at a time (quantize.3), so elements may be moved
// before or after it: bytes are moved instead of numbers of 32 bits. Bytes that were dequantized
// come back if the scale and the zero point are the same.
#include <bit>
#include <cmath>

#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {
namespace {

bool has_one_scale(Value scale, int64_t block) {
  const Shape shape = shape_of(scale.getType());
  return block == 0 && (shape.empty() || (shape.size() == 1 && shape[0] == Dim::of(1)));
}

bool is_same(Value a, Value b) {
  if (a == b) return true;
  if (!a || !b || a.getType() != b.getType()) return false;
  const std::optional<std::string> one = constant_bytes(a);
  return one && one == constant_bytes(b);
}

// Whether q * s, rounded, divided by s and rounded is nearest to q for all |q| < 2^9: each rounding
// is at most 2^-24 of a normal number.
bool restores_integers(Value scale) {
  const std::optional<std::string> bytes = constant_bytes(scale);
  if (!bytes || bytes->size() != sizeof(float)) return false;
  uint32_t bits = 0;
  for (size_t b = sizeof(float); b-- > 0;) bits = bits << 8 | static_cast<uint8_t>((*bytes)[b]);
  const float s = std::fabs(std::bit_cast<float>(bits));
  return s > 0x1p-100f && s < 0x1p100f;
}

// Operations that move whole elements of their operands, and at least as many as those have.
bool moves_elements(Operation* op) {
  if (auto resize = dyn_cast<ResizeOp>(op)) {
    const auto from = element_count(shape_of(resize.getX().getType())),
               to = element_count(shape_of(resize.getType()));
    constexpr int64_t kCrops = 5;  // resize.7: some elements are none of the operand's
    return resize.getOrder() == 0 && resize.getCoordinates() != kCrops && from && to && from->constant() &&
           to->constant() && *from->constant() <= *to->constant();
  }
  return isa<ReshapeOp, TransposeOp, ConcatOp>(op);
}

struct QuantizeBeforeMove : OpRewritePattern<QuantizeLinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeLinearOp op, PatternRewriter& rewriter) const override {
    Operation* const move = op.getX().getDefiningOp();
    if (!move || !move->hasOneUse() || !moves_elements(move) || !has_one_scale(op.getScale(), op.getBlock()))
      return failure();
    const Type element = element_of(op.getOut());
    rewriter.setInsertionPoint(op);
    SmallVector<Value> bytes;
    for (Value x : move->getOperands()) {
      Operation* const each = rewriter.clone(*op);
      each->setOperand(0, x);
      each->getResult(0).setType(tensor_of(shape_of(x.getType()), element));
      bytes.push_back(each->getResult(0));
    }
    Operation* const moved = rewriter.clone(*move);
    moved->setOperands(bytes);
    moved->getResult(0).setType(op.getOut().getType());
    rewriter.replaceOp(op, moved->getResults());
    return success();
  }
};

struct QuantizeOfDequantize : OpRewritePattern<QuantizeLinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeLinearOp op, PatternRewriter& rewriter) const override {
    auto inner = op.getX().getDefiningOp<DequantizeLinearOp>();
    if (!inner || inner.getX().getType() != op.getOut().getType() ||
        !has_one_scale(op.getScale(), op.getBlock()) || !has_one_scale(inner.getScale(), inner.getBlock()) ||
        !is_same(op.getScale(), inner.getScale()) || !is_same(op.getZeros(), inner.getZeros()) ||
        !restores_integers(op.getScale()))
      return failure();
    rewriter.replaceOp(op, inner.getX());
    return success();
  }
};

}  // namespace

void add_quantization_patterns(RewritePatternSet& patterns) {
  patterns.add<QuantizeBeforeMove, QuantizeOfDequantize>(patterns.getContext());
}

}  // namespace invar::compiler
