// A cast of a cast whose first step loses nothing is one cast: what cast gives is decided by the value of its operand (cast.2 to cast.6),
// and that is the same before and after the first step, but for the exceptions below.
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {
namespace {

bool is_integer(DType t) {
  return t != DType::f32 && t != DType::bf16 && t != DType::f16 && t != DType::f64 && t != DType::boolean;
}
bool is_signed(DType t) {
  return t == DType::i64 || t == DType::i32 || t == DType::i16 || t == DType::i8;
}
// Binary digits of the magnitudes that a type holds without a gap.
int digits(DType t) {
  switch (t) {
    case DType::bf16: return 8;
    case DType::f16: return 11;
    case DType::f32: return 24;
    case DType::f64: return 53;
    case DType::boolean: return 1;
    default: return static_cast<int>(8 * size_of(t)) - (is_signed(t) ? 1 : 0);
  }
}

// Every value of `from` is one of `to`, NaN, infinities and the signs of zeros with them.
bool holds(DType to, DType from) {
  if (from == to) return true;
  if (to == DType::boolean) return false;
  if (from == DType::boolean) return true;
  if (is_integer(from))
    return digits(to) >= digits(from) && (!is_integer(to) || !is_signed(from) || is_signed(to));
  return (to == DType::f32 && from != DType::f64) || to == DType::f64;
}

// As a cast stores it: no NaN but the canonical one and, of bf16, no subnormal (formats.6). Moves carry it along.
bool stored(Value v) {
  Operation* op = v.getDefiningOp();
  while (auto move = dyn_cast_or_null<ReproOp>(op)) {
    if (!move.copies() || op->getNumOperands() != 1 || isa<BitcastOp>(op)) break;
    op = op->getOperand(0).getDefiningOp();
  }
  auto cast = dyn_cast_or_null<CastOp>(op);
  return cast && element_of(cast.getX()) != element_of(cast.getOut());
}

struct CastOfCast : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter& rewriter) const override {
    auto inner = op.getX().getDefiningOp<CastOp>();
    if (!inner) return failure();
    const std::optional<DType> from = dtype_of(element_of(inner.getX())),
                               by = dtype_of(element_of(op.getX())), to = dtype_of(element_of(op.getOut()));
    if (!from || !by || !to || *from == *by || !holds(*by, *from)) return failure();
    if (*from == *to) {
      // Back again: integers are what they were. A float may be a NaN or a subnormal that casts do not keep, a bool any byte.
      if (!is_integer(*to) && !((*to == DType::f16 || *to == DType::bf16) && stored(inner.getX())))
        return failure();
      rewriter.replaceOp(op, inner.getX());
      return success();
    }
    // Integers by way of floats saturate (formats.9), directly they keep the low bits (formats.10).
    if (is_integer(*from) && !is_integer(*by) && is_integer(*to) && !holds(*to, *from)) return failure();
    // f64 to f32 flushes what is subnormal there (cast.4), bf16 to f32 keeps it (cast.2).
    if (*from == DType::bf16 && *by == DType::f64 && *to == DType::f32) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }
};

}  // namespace

void add_conversions(RewritePatternSet& set) {
  set.add<CastOfCast>(set.getContext());
}

}  // namespace invar::compiler
