// The part that RMSNorm and LayerNorm share (choices.5, choices.6): x / sqrt(mean(x^2) + epsilon)
// over the last dimensions, with a scale and a bias.
#pragma once
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {

struct Norm {
  Value x, out;
  float epsilon = 0;
  mutable ReduceMeanOp mean;  // MLIR handles are never const
};

// Equal values, or equal differences: some exporters write x - mean(x) twice.
inline bool equal_values(Value a, Value b) {
  auto x = a.getDefiningOp<SubOp>(), y = b.getDefiningOp<SubOp>();
  return a == b || (x && y && x.getA() == y.getA() && x.getB() == y.getB());
}
// Whether a mean reduces the last dimensions and keeps them as 1.
inline bool reduces_last_dims(ReduceMeanOp mean) {
  const llvm::ArrayRef<int64_t> axes = mean.getAxes();
  const auto rank = static_cast<int64_t>(shape_of(mean.getX().getType()).size());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return false;
  return !axes.empty() && mean.getKeepdims() == 1 && element_of(mean.getX()).isF32();
}

// Matches from the anchor, a square root or a power of -1/2.
inline std::optional<Norm> match_norm(Operation* anchor) {
  Value shifted, root = anchor->getResult(0);
  bool inverse = false;
  if (auto op = dyn_cast<SqrtOp>(anchor)) {
    shifted = op.getX();
  } else if (ScalarOp power = match_scalar_op<PowOp>(root, 1); power && power.scalar == -0.5f) {
    shifted = power.x, inverse = true;
  } else {
    return {};
  }
  const ScalarOp sum = shifted.hasOneUse() ? match_scalar_op<AddOp>(shifted) : ScalarOp();
  if (!sum || !sum.x.hasOneUse()) return {};
  auto mean = sum.x.getDefiningOp<ReduceMeanOp>();
  if (!mean || !reduces_last_dims(mean) || !mean.getX().hasOneUse()) return {};
  auto square = mean.getX().getDefiningOp<MulOp>();
  if (!square || !equal_values(square.getA(), square.getB())) return {};
  Norm norm{square.getA(), {}, sum.scalar, mean};
  if (!inverse) {
    if (auto op = only_user<ReciprocalOp>(root)) {
      root = op.getOut(), inverse = true;
    } else if (auto one = only_user<DivOp>(root);
               one && is_constant_equal_to(one.getA(), 1) && one.getB() == root) {
      root = one.getOut(), inverse = true;
      if (!same_shape(root, shifted)) return {};
    }
  }
  if (auto op = only_user<MulOp>(root); op && inverse && equal_values(other_operand(op, root), norm.x))
    norm.out = op.getOut();
  if (auto op = only_user<DivOp>(root); op && !inverse && equal_values(op.getA(), norm.x))
    norm.out = op.getOut();
  if (!norm.out || !same_shape(norm.out, norm.x)) return {};
  return norm;
}

// If the only user of v is an Op with an operand of the normalized dimensions' shape (a scale or
// bias), returns that operand and advances v to the result; else null.
template <class Op>
Value match_parameter(Value& v, const Norm& norm) {
  auto op = only_user<Op>(v);
  if (!op || op.getA() == op.getB()) return {};
  Value weight = other_operand(op, v);
  const Shape x = shape_of(v.getType()), w = shape_of(weight.getType());
  if (!std::equal(w.begin(), w.end(), x.end() - static_cast<ptrdiff_t>(std::min(w.size(), x.size()))) ||
      w.size() != norm.mean.getAxes().size())
    return {};
  v = op.getOut();
  return weight;
}
// The scale, or a constant of ones if there is none. Null if that constant would be too large.
inline Value match_scale(Value& v, const Norm& norm) {
  if (Value weight = match_parameter<MulOp>(v, norm)) return weight;
  const Shape x = shape_of(v.getType());
  const Shape row(x.end() - static_cast<ptrdiff_t>(norm.mean.getAxes().size()), x.end());
  const std::optional<DimExpr> count = element_count(row);
  if (!count || !count->constant() || *count->constant() < 1 || *count->constant() > kSmallConstant / 4)
    return {};
  std::string ones;
  for (int64_t i = 0; i < *count->constant(); ++i) ones.append("\0\0\x80\x3f", 4);
  OpBuilder build(v.getDefiningOp());
  SmallVector<int64_t> dims;
  for (const Dim& e : row) dims.push_back(e.value);
  return make_constant(build, v.getLoc(), ones, DType::f32, dims);
}

}  // namespace invar::compiler
