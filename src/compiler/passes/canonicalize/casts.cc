// A cast after a lossless cast is one cast. The result of a cast depends on the value of its
// operand alone (cast.2 to cast.6), and a lossless cast keeps the value. The code below lists the
// exceptions.
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {
namespace {

bool is_integer(DType t) {
  return t != DType::f32 && t != DType::bf16 && t != DType::f16 && t != DType::f64 && t != DType::boolean;
}
bool is_signed(DType t) {
  return t == DType::i64 || t == DType::i32 || t == DType::i16 || t == DType::i8;
}
// The precision in bits: all integers of this many bits are exact.
int precision(DType t) {
  switch (t) {
    case DType::bf16: return 8;
    case DType::f16: return 11;
    case DType::f32: return 24;
    case DType::f64: return 53;
    case DType::boolean: return 1;
    default: return static_cast<int>(8 * size_of(t)) - (is_signed(t) ? 1 : 0);
  }
}

// Whether `to` represents every value of `from`, including NaN, infinities and signed zeros.
bool represents(DType to, DType from) {
  if (from == to) return true;
  if (to == DType::boolean) return false;
  if (from == DType::boolean) return true;
  if (is_integer(from))
    return precision(to) >= precision(from) && (!is_integer(to) || !is_signed(from) || is_signed(to));
  return (to == DType::f32 && from != DType::f64) || to == DType::f64;
}

// Whether a value is the result of a cast, possibly moved: its only NaN is the canonical one and,
// in bf16, it has no subnormals (formats.6).
bool is_canonicalized(Value v) {
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
                               via = dtype_of(element_of(op.getX())), to = dtype_of(element_of(op.getOut()));
    if (!from || !via || !to || *from == *via || !represents(*via, *from)) return failure();
    if (*from == *to) {
      // A round trip restores integers. It changes NaN payloads and subnormals of floats, and a
      // bool may be any byte.
      if (!is_integer(*to) && !((*to == DType::f16 || *to == DType::bf16) && is_canonicalized(inner.getX())))
        return failure();
      rewriter.replaceOp(op, inner.getX());
      return success();
    }
    // Integer to integer through a float saturates (formats.9). A direct cast wraps (formats.10).
    if (is_integer(*from) && !is_integer(*via) && is_integer(*to) && !represents(*to, *from))
      return failure();
    // f64 to f32 flushes subnormals (cast.4). bf16 to f32 keeps them (cast.2).
    if (*from == DType::bf16 && *via == DType::f64 && *to == DType::f32) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }
};

}  // namespace

void add_cast_patterns(RewritePatternSet& set) {
  set.add<CastOfCast>(set.getContext());
}

}  // namespace invar::compiler
