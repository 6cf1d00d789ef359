// choices.5, choices.6: x / sqrt(mean(x^2) + epsilon) over the last dimensions, and what scales and shifts it.
#pragma once
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {

struct Norm {
  Value x, out;
  float epsilon = 0;
  mutable ReduceMeanOp mean;  // MLIR handles are never const
};

// Equal by what they are made of: exporters write the same difference twice.
inline bool same_value(Value a, Value b) {
  auto x = a.getDefiningOp<SubOp>(), y = b.getDefiningOp<SubOp>();
  return a == b || (x && y && x.getA() == y.getA() && x.getB() == y.getB());
}
// Over the last dimensions, which stay as 1.
inline bool over_last(ReduceMeanOp mean) {
  const llvm::ArrayRef<int64_t> axes = mean.getAxes();
  const auto rank = static_cast<int64_t>(shape_of(mean.getX().getType()).size());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return false;
  return !axes.empty() && mean.getKeepdims() == 1 && element_of(mean.getX()).isF32();
}

// The anchor is a square root, or a power of -1/2.
inline std::optional<Norm> norm_at(Operation* anchor) {
  Value shifted, root = anchor->getResult(0);
  bool inverse = false;
  if (auto op = dyn_cast<SqrtOp>(anchor)) {
    shifted = op.getX();
  } else if (WithNumber power = with_number<PowOp>(root, 1); power && power.by == -0.5f) {
    shifted = power.x, inverse = true;
  } else {
    return {};
  }
  const WithNumber sum = shifted.hasOneUse() ? with_number<AddOp>(shifted) : WithNumber();
  if (!sum || !sum.x.hasOneUse()) return {};
  auto mean = sum.x.getDefiningOp<ReduceMeanOp>();
  if (!mean || !over_last(mean) || !mean.getX().hasOneUse()) return {};
  auto square = mean.getX().getDefiningOp<MulOp>();
  if (!square || !same_value(square.getA(), square.getB())) return {};
  Norm norm{square.getA(), {}, sum.by, mean};
  if (!inverse) {
    if (auto op = only_user<ReciprocalOp>(root)) {
      root = op.getOut(), inverse = true;
    } else if (auto one = only_user<DivOp>(root); one && is_number(one.getA(), 1) && one.getB() == root) {
      root = one.getOut(), inverse = true;
      if (!same_shape(root, shifted)) return {};
    }
  }
  if (auto op = only_user<MulOp>(root); op && inverse && same_value(other(op, root), norm.x))
    norm.out = op.getOut();
  if (auto op = only_user<DivOp>(root); op && !inverse && same_value(op.getA(), norm.x))
    norm.out = op.getOut();
  if (!norm.out || !same_shape(norm.out, norm.x)) return {};
  return norm;
}

// What the only reader of v multiplies it by, or adds to it, where that has the shape of the dimensions that are one row; v is then
// the result.
template <class Op>
Value applied(Value& v, const Norm& norm) {
  auto op = only_user<Op>(v);
  if (!op || op.getA() == op.getB()) return {};
  Value weight = other(op, v);
  const Shape x = shape_of(v.getType()), w = shape_of(weight.getType());
  if (!std::equal(w.begin(), w.end(), x.end() - static_cast<ptrdiff_t>(std::min(w.size(), x.size()))) ||
      w.size() != norm.mean.getAxes().size())
    return {};
  v = op.getOut();
  return weight;
}
// The scale, or ones where there is none; null where it cannot be made.
inline Value scale_of(Value& v, const Norm& norm) {
  if (Value weight = applied<MulOp>(v, norm)) return weight;
  const Shape x = shape_of(v.getType());
  const Shape row(x.end() - static_cast<ptrdiff_t>(norm.mean.getAxes().size()), x.end());
  const std::optional<Polynomial> count = count_of(row);
  if (!count || !count->constant() || *count->constant() < 1 || *count->constant() > kSmallConstant / 4)
    return {};
  std::string ones;
  for (int64_t i = 0; i < *count->constant(); ++i) ones.append("\0\0\x80\x3f", 4);
  OpBuilder build(v.getDefiningOp());
  SmallVector<int64_t> dims;
  for (const Extent& e : row) dims.push_back(e.value);
  return make_constant(build, v.getLoc(), ones, DType::f32, dims);
}

}  // namespace invar::compiler
