// Broadcasting of dimensions that cannot be shown to broadcast (onnx.24): the result has the
// dimension that they broadcast to if they do, and kernels check it in each call.
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

std::optional<Dim> NodeView::broadcast(const Dim& x, const Dim& y) {
  const Dim one = Dim::of(1);
  if (x == y || y == one) return x;
  if (x == one) return y;
  const std::optional<DimExpr> a = dim_expr_of(x), b = dim_expr_of(y);
  if (!a || !b) return std::nullopt;
  if (a->constant() || b->constant()) return a->constant() ? x : y;
  // A clamped slice counts with its unclamped length.
  const DimExpr dims[] = {*a, *b};
  for (bool second : {false, true})
    for (const UnclampedSlice& mine : state_.clamped_slices[dims[second]]) {
      if (mine.length == dims[!second]) return second ? x : y;
      for (const UnclampedSlice& other : state_.clamped_slices[dims[!second]])
        if (mine.length == other.length) return Dim::of(mine.length);
    }
  if (state_.broadcasts_to[*a].contains(*b)) return x;
  if (state_.broadcasts_to[*b].contains(*a)) return y;
  std::optional<DimExpr> size = compiler::broadcast(*a, *b);
  if (!size) size = maximum(*a, *b);
  // What Expand gives counts with the size that it wants, where that is the larger one.
  const auto wanted = [&](const DimExpr& dim) {
    const std::set<DimExpr>& among = state_.broadcasts_to[dim];
    std::optional<DimExpr> most = among.empty() ? dim : *among.begin();
    for (const DimExpr& each : among)
      if (most) most = maximum(*most, each);
    return most && among.contains(*most) ? *most : dim;
  };
  if (!size) size = maximum(wanted(*a), wanted(*b));
  if (!size) return std::nullopt;
  std::set<DimExpr> all(std::begin(dims), std::end(dims));
  for (const DimExpr& dim : dims)
    all.insert(state_.broadcasts_to[dim].begin(), state_.broadcasts_to[dim].end());
  all.erase(*size);
  state_.broadcasts_to[*size].merge(all);
  return Dim::of(*size);
}

// Expand: `to`, but `from` in calls where `to` is 1.
std::optional<Dim> NodeView::expand_to(const Dim& from, const Dim& to) {
  const Dim one = Dim::of(1);
  if (to == one || from == to) return from;
  if (from == one || to.constant()) return to;
  const std::optional<DimExpr> a = dim_expr_of(from), b = dim_expr_of(to);
  if (!a || !b) return std::nullopt;
  for (const UnclampedSlice& otherwise : state_.clamped_slices[*a])
    if (otherwise.length == *b) return to;
  if (state_.broadcasts_to[*b].contains(*a)) return to;
  // single: 1 in calls where b is 1, else 0. The size is b + single * (a - 1).
  const std::optional<DimExpr> some = minimum(*b, 1), more = minimum(*b, 2), a_minus_1 = difference(*a, 1);
  const std::optional<DimExpr> twice = some ? product(*some, 2) : some;
  const std::optional<DimExpr> single = twice && more ? difference(*twice, *more) : std::nullopt;
  const std::optional<DimExpr> excess = single && a_minus_1 ? product(*single, *a_minus_1) : std::nullopt;
  const std::optional<DimExpr> size = excess ? sum(*b, *excess) : excess;
  if (!size) return std::nullopt;
  for (const DimExpr& either : {*a, *b})
    if (always_equal(*size, either)) return Dim::of(either);
  state_.broadcasts_to[*size].merge(std::set<DimExpr>{*a, *b});
  return Dim::of(*size);
}

Result<SmallVector<Value>> NodeView::expand_operands_dynamic(ValueRange operands) {
  const Dim one = Dim::of(1);
  Shape all;  // innermost dimension first
  bool run_time_checked = false;
  for (Value v : operands) {
    Shape shape = shape_of(v.getType());
    std::reverse(shape.begin(), shape.end());
    all.resize(std::max(all.size(), shape.size()), one);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (all[d] == shape[d] || shape[d] == one) continue;
      if (all[d] != one) {
        if (!may_be_equal(all[d], shape[d]) && !!is_data_dependent(all[d]) && !!is_data_dependent(shape[d]))
          return SmallVector<Value>();
        run_time_checked = true;
      }
      const std::optional<Dim> size = broadcast(all[d], shape[d]);
      if (!size) return SmallVector<Value>();
      all[d] = *size;
    }
  }
  SmallVector<Value> expanded;
  if (!run_time_checked) return expanded;
  for (Value v : operands) {
    Shape shape = shape_of(v.getType());
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != one) shape[d] = all[shape.size() - 1 - d];
    if (shape == shape_of(v.getType())) {
      expanded.push_back(v);
    } else {
      INVAR_TRY(Value wide, make<ExpandOp>(v, {}, tensor_of(shape, element_of(v))));
      expanded.push_back(wide);
    }
  }
  return expanded;
}

}  // namespace invar::compiler
