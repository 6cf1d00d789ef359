// Rotary embedding (choices.9): x * cos + rotated(x) * sin, where rotated(x) = (-second half, first
// half) of the last dimension.
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {
namespace {

// Whether v is x[..., start : start + half].
bool is_half(Value v, Value x, int64_t start, int64_t half) {
  auto slice = v.getDefiningOp<SliceOp>();
  Shape shape = shape_of(x.getType());
  shape.back() = Dim::of(half);
  if (!slice || slice.getX() != x || shape_of(v.getType()) != shape) return false;
  const llvm::ArrayRef<int64_t> starts = slice.getStarts(), steps = slice.getSteps();
  for (size_t d = 0; d < shape.size(); ++d)
    if (steps[d] != 1 || (starts[d] != (d + 1 == shape.size() ? start : 0))) return false;
  return true;
}

// The first half of a value whose halves are provably equal: a concatenation of a value with
// itself, possibly behind elementwise operations, which are cloned for the half. Null if there is
// no proof.
Value first_half(Value v, DerivedValueCache& context) {
  Value& known = context.derived[v];
  if (known) return known;
  Operation* op = v.getDefiningOp();
  const Shape shape = shape_of(v.getType());
  if (auto both = dyn_cast_or_null<ConcatOp>(op)) {
    const bool twice = both.getOperands().size() == 2 && both.getOperands()[0] == both.getOperands()[1];
    return twice && both.getAxis() + 1 == shape.size() ? both.getOperands()[0] : Value();
  }
  const ScalarOp product = match_scalar_op<MulOp>(v);
  if (!op || (!isa<CosOp, SinOp>(op) && !product)) return {};
  Value from = product ? product.x : op->getOperand(0);
  Value part = first_half(from, context);
  if (!part) return {};
  OpBuilder build(op->getContext());
  build.setInsertionPointAfter(op);
  Operation* made = build.clone(*op);
  made->replaceUsesOfWith(from, part);
  made->getResult(0).setType(part.getType());
  return context.derived[v] = made->getResult(0);
}

// The first half of a constant [B, 1, S, D] with equal halves, as [B, S, D / 2]; else null.
Value first_half(ReproWeightOp table) {
  const llvm::ArrayRef<int64_t> shape = cast<RankedTensorType>(table.getType()).getShape();
  const std::optional<std::string> bytes = constant_bytes(table.getOut());
  if (!bytes || !element_of(table.getOut()).isF32()) return {};
  const size_t half = static_cast<size_t>(shape[3]) * 2;  // bytes
  std::string kept;
  for (size_t at = 0; at < bytes->size(); at += 2 * half) {
    if (bytes->compare(at, half, *bytes, at + half, half) != 0) return {};
    kept.append(*bytes, at, half);
  }
  OpBuilder build(table->getContext());
  build.setInsertionPointAfter(table);
  return make_constant(build, table.getLoc(), kept, DType::f32, {shape[0], shape[2], shape[3] / 2});
}

// The cosines or sines [batch, sequence, D / 2] from v: [batch or 1, 1, sequence, D] for x: [batch,
// heads, sequence, D]. Null if the halves of v are not provably equal.
Value rope_table(Value v, const Shape& x, DerivedValueCache& context) {
  const Shape shape = shape_of(v.getType());
  if (shape.size() != 4 || shape[1] != Dim::of(1) || shape[2] != x[2] || shape[3] != x[3]) return {};
  Value half;
  if (auto table = v.getDefiningOp<ReproWeightOp>())
    half = first_half(table);
  else if (auto shaped = v.getDefiningOp<ReshapeOp>();
           shaped && shape_of(shaped.getX().getType()) == Shape{shape[0], shape[2], shape[3]})
    half = first_half(shaped.getX(), context);
  if (!half || shape[0] == x[0]) return half;
  if (shape[0] != Dim::of(1)) return {};
  Value& wide = context.derived[v];
  if (!wide || shape_of(wide.getType())[0] != x[0]) {
    OpBuilder build(v.getContext());
    build.setInsertionPointAfterValue(v.getDefiningOp<ReproWeightOp>() ? half : v);
    const Type type = tensor_of({x[0], x[2], shape_of(half.getType())[2]}, element_of(v));
    wide = make_op(build, v.getLoc(), ExpandOp::getOperationName(), half, {}, type)->getResult(0);
  }
  return wide;
}

}  // namespace

bool recognize_rope(Operation* anchor, DerivedValueCache& context) {
  auto rotated = dyn_cast<ConcatOp>(anchor);
  if (!rotated || rotated.getOperands().size() != 2 || !element_of(rotated.getOut()).isF32()) return false;
  auto negated = rotated.getOperands()[0].getDefiningOp<NegOp>();
  auto slice = rotated.getOperands()[1].getDefiningOp<SliceOp>();
  if (!negated || !slice || rotated.getAxis() != 3) return false;
  Value x = slice.getX();
  const Shape shape = shape_of(x.getType());
  if (shape.size() != 4 || !shape[1].constant() || !shape[3].constant() || shape[3].value % 2) return false;
  const int64_t half = shape[3].value / 2;
  if (!is_half(slice.getOut(), x, 0, half) || !is_half(negated.getX(), x, half, half)) return false;
  auto by_sine = only_user<MulOp>(rotated.getOut());
  auto sum = by_sine ? only_user<AddOp>(by_sine.getOut()) : AddOp();
  auto by_cosine = sum ? other_operand(sum, by_sine.getOut()).getDefiningOp<MulOp>() : MulOp();
  if (!by_cosine || !by_cosine.getOut().hasOneUse() || (by_cosine.getA() != x && by_cosine.getB() != x))
    return false;
  Value cosine = rope_table(other_operand(by_cosine, x), shape, context);
  Value sine = rope_table(other_operand(by_sine, rotated.getOut()), shape, context);
  if (!cosine || !sine) return false;
  MLIRContext* const mlir_context = anchor->getContext();
  return replace<RopeOp>(
      context, sum.getOut(), {x, cosine, sine},
      {attribute(mlir_context, "num_heads", shape[1].value),
       attribute(mlir_context, "rotary_dim", int64_t{0}), attribute(mlir_context, "interleaved", int64_t{0}),
       attribute(mlir_context, "heads_first", int64_t{1})});
}

}  // namespace invar::compiler
