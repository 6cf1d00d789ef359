// Scaled dot-product attention (choices.10): softmax(q k^T * scale + mask) v, per head.
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {
namespace {

// The operations between the product of queries and keys and the softmax.
struct Scores {
  MatmulOp product;
  double scale = 1;
  float softcap = 0;
  Value mask;
};

// Strips multiplications and divisions by scalars from v and multiplies them into `scale`.
Value strip_scale(Value v, double& scale) {
  SmallVector<double> steps;
  while (v.hasOneUse()) {
    const ScalarOp product = match_scalar_op<MulOp>(v), quotient = match_scalar_op<DivOp>(v, 1);
    if (!product && !quotient) break;
    steps.push_back(product ? product.scalar : 1.0 / quotient.scalar);
    v = product ? product.x : quotient.x;
  }
  for (double by : llvm::reverse(steps)) scale *= by;
  return v;
}

// choices.10: a product, optionally scaled and soft-capped.
bool match_product(Value v, Scores& s) {
  if (const ScalarOp outer = match_scalar_op<MulOp>(v); outer && v.hasOneUse())
    if (auto tanh = outer.x.getDefiningOp<TanhOp>(); tanh && outer.x.hasOneUse())
      if (const ScalarOp inner = match_scalar_op<DivOp>(tanh.getX(), 1);
          inner && inner.scalar == outer.scalar && inner.scalar != 0 && tanh.getX().hasOneUse())
        s.softcap = inner.scalar, v = inner.x;
  v = strip_scale(v, s.scale);
  s.product = v.getDefiningOp<MatmulOp>();
  return s.product && v.hasOneUse() && !s.product.getTransA().value_or(0);
}

// Matches scores with at most one added mask.
std::optional<Scores> match_scores(Value v) {
  SmallVector<std::pair<Value, Value>> open = {{v, Value()}};
  constexpr size_t kMaxCandidates = 8;
  for (size_t i = 0; i < open.size() && i < kMaxCandidates; ++i) {
    auto [at, mask] = open[i];
    Scores s{.product = {}, .mask = mask};
    if (match_product(at, s)) return s;
    auto sum = at.getDefiningOp<AddOp>();
    if (!sum || !at.hasOneUse() || mask) continue;  // one mask
    open.push_back({sum.getA(), sum.getB()}), open.push_back({sum.getB(), sum.getA()});
  }
  return {};
}

// If v: [B, H, K, N] is a transpose of a value [B, H, N, K] in the last two dimensions, that value;
// else null.
Value match_transposed_keys(Value v) {
  const Shape shape = shape_of(v.getType());
  Operation* op = v.getDefiningOp();
  const Shape wanted = {shape[0], shape[1], shape[3], shape[2]};
  if (auto flat = dyn_cast_or_null<ReshapeOp>(op)) {  // as matrices [B * H, N, K]
    auto transpose = flat.getX().getDefiningOp<TransposeOp>();
    auto rows = transpose ? transpose.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
    if (!rows || transpose.getPerm() != llvm::ArrayRef<int64_t>{0, 2, 1}) return {};
    const Shape matrices = shape_of(rows.getType());
    if (matrices[1] != shape[3] || matrices[2] != shape[2]) return {};
    if (shape_of(rows.getX().getType()) == wanted) return rows.getX();
    OpBuilder build(op->getContext());
    build.setInsertionPointAfter(rows);
    return make_op(build, v.getLoc(), ReshapeOp::getOperationName(), rows.getX(), {},
                   tensor_of(wanted, element_of(v)))
        ->getResult(0);
  }
  auto transpose = dyn_cast_or_null<TransposeOp>(op);
  if (!transpose) return {};
  SmallVector<int64_t> perm(transpose.getPerm());
  std::swap(perm[2], perm[3]);
  if (llvm::ArrayRef<int64_t>(perm) == llvm::ArrayRef<int64_t>{0, 1, 2, 3}) return transpose.getX();
  OpBuilder build(op->getContext());
  build.setInsertionPointAfter(op);
  return make_op(build, v.getLoc(), TransposeOp::getOperationName(), transpose.getX(),
                 build.getNamedAttr("perm", build.getDenseI64ArrayAttr(perm)),
                 tensor_of(wanted, element_of(v)))
      ->getResult(0);
}

// The attention weights behind an optional where(isnan(w), 0, w). Null if they have other users.
Value strip_nan_guard(Value weights) {
  if (weights.hasOneUse()) return weights;
  WhereOp guard;
  for (Operation* user : weights.getUsers())
    if (auto where = dyn_cast<WhereOp>(user)) guard = where;
  auto test = guard ? guard.getCondition().getDefiningOp<IsnanOp>() : IsnanOp();
  const bool fits = test && test.getX() == weights && test.getOut().hasOneUse() && guard.getB() == weights &&
                    is_constant_equal_to(guard.getA(), 0) && same_shape(guard.getOut(), weights) &&
                    std::distance(weights.use_begin(), weights.use_end()) == 2;
  return fits ? guard.getOut() : Value();
}

}  // namespace

Value strip_head_repeat(Value v) {
  auto joined = v.getDefiningOp<ReshapeOp>();
  auto repeated = joined ? joined.getX().getDefiningOp<ExpandOp>() : ExpandOp();
  auto split = repeated ? repeated.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split) return v;
  const Shape all = shape_of(v.getType()), wide = shape_of(repeated.getType()),
              grouped = shape_of(split.getX().getType());
  if (grouped.size() != 4 || wide.size() != 5 || !grouped[1].constant() || !wide[2].constant()) return v;
  const Dim one = Dim::of(1), heads = Dim::of(grouped[1].value * wide[2].value);
  const bool fits = shape_of(split.getType()) == Shape{grouped[0], grouped[1], one, grouped[2], grouped[3]} &&
                    wide == Shape{grouped[0], grouped[1], wide[2], grouped[2], grouped[3]} &&
                    all == Shape{grouped[0], heads, grouped[2], grouped[3]};
  return fits ? split.getX() : v;
}

bool recognize_sdpa(Operation* anchor, DerivedValueCache& context) {
  auto normalized = dyn_cast<SoftmaxOp>(anchor);
  if (!normalized || normalized.getAxis() != 3) return false;
  const Shape shape = shape_of(normalized.getType());
  std::optional<Scores> s = shape.size() == 4 ? match_scores(normalized.getX()) : std::nullopt;
  Value weights = strip_nan_guard(normalized.getOut());
  auto out = weights ? only_user<MatmulOp>(weights) : MatmulOp();
  if (!s || shape_of(s->product.getType()) != shape || !out || out.getA() != weights ||
      out.getTransA().value_or(0) || out.getTransB())
    return false;
  Value q = strip_scale(s->product.getA(), s->scale), k = strip_scale(s->product.getB(), s->scale),
        v = out.getB();
  if (shape_of(q.getType()).size() != 4 || shape_of(k.getType()).size() != 4 ||
      shape_of(v.getType()).size() != 4)
    return false;
  if (!s->product.getTransB()) {
    k = match_transposed_keys(k);
    if (!k) return false;
    k = strip_scale(k, s->scale);
  }
  if (Value grouped = strip_head_repeat(k), values = strip_head_repeat(v);
      shape_of(grouped.getType())[1] == shape_of(values.getType())[1])
    k = grouped, v = values;
  const Dim heads = shape_of(q.getType())[1], kv_heads = shape_of(k.getType())[1];
  const auto scale = static_cast<float>(s->scale);
  if (!heads.constant() || !kv_heads.constant() || !std::isfinite(scale) || scale == 0) return false;
  MLIRContext* const mlir_context = anchor->getContext();
  SmallVector<NamedAttribute> attrs = {
      attribute(mlir_context, "q_heads", heads.value), attribute(mlir_context, "kv_heads", kv_heads.value),
      attribute(mlir_context, "scale", scale), attribute(mlir_context, "causal", int64_t{0}),
      attribute(mlir_context, "heads_first", int64_t{1})};
  SmallVector<Value> operands = {q, k, v};
  if (s->mask) {
    const Shape mask = shape_of(s->mask.getType());
    if (mask.empty() || !known_equal(mask.back(), shape[3])) return false;
    operands.push_back(s->mask), attrs.push_back(attribute(mlir_context, "mask", int64_t{1}));
  }
  if (s->softcap != 0) attrs.push_back(attribute(mlir_context, "softcap", s->softcap));
  return replace<AttentionOp>(context, out.getOut(), operands, attrs);
}

}  // namespace invar::compiler
