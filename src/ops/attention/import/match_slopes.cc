#include "ops/attention/import/match_slopes.h"

#include <cmath>
#include <cstring>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Value strip_reshapes(Value v) {
  while (auto reshaped = v.getDefiningOp<ReshapeOp>()) v = reshaped.getX();
  return v;
}

// Tells whether v holds start, start + 1 ... along its axis `axis` from the right, its only one.
bool counts_from(Value v, size_t axis, const DimExpr& start) {
  const Shape shape = shape_of(v.getType());
  for (size_t i = 0; i < shape.size(); ++i)
    if (i + 1 + axis != shape.size() && shape[i] != Dim::of(1)) return false;
  auto iota = strip_reshapes(v).getDefiningOp<IotaOp>();
  if (!iota) return false;
  const auto from = NodeView::known_dim_values(iota.getStart()),
             by = NodeView::known_dim_values(iota.getDelta());
  return from && by && from->size() == 1 && by->size() == 1 && (*from)[0] == start && (*by)[0] == DimExpr(1);
}

// v must be a constant of shape [heads, 1, 1], with or without a leading 1, whose numbers are
// finite: the mask of an infinite one would hide keys.
bool is_per_head(Value v, int64_t heads) {
  const Shape shape = shape_of(v.getType());
  const Dim one = Dim::of(1);
  auto weight = strip_reshapes(v).getDefiningOp<ReproWeightOp>();
  if (!weight || !weight.getData() || !element_of(v).isF32() ||
      (shape != Shape{Dim::of(heads), one, one} && shape != Shape{one, Dim::of(heads), one, one}))
    return false;
  const llvm::StringRef bytes = *weight.getData();
  for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float slope;
    std::memcpy(&slope, bytes.data() + i, sizeof slope);
    if (!std::isfinite(slope)) return false;
  }
  return true;
}

}  // namespace

Value match_slopes(Value mask, Value past, int64_t heads, ArrayRef<NamedAttribute> attrs) {
  const bool causal = llvm::any_of(attrs, [](NamedAttribute a) {
    return a.getName() == "causal" && cast<IntegerAttr>(a.getValue()).getInt() != 0;
  });
  auto product = mask.getDefiningOp<MulOp>();
  if (!causal || !product || product->getNumOperands() != 2) return {};
  for (unsigned side : {0u, 1u}) {
    const Value slopes = product->getOperand(side);
    auto widened = product->getOperand(1 - side).getDefiningOp<CastOp>();
    if (!widened || !is_per_head(slopes, heads) || !element_of(widened.getX()).isInteger(64)) continue;
    auto distance = widened.getX().getDefiningOp<SubOp>();
    if (!distance || distance->getNumOperands() != 2) continue;
    std::optional<DimExpr> before = DimExpr(0);
    if (past) before = dim_expr_of(shape_of(past.getType())[2]);
    if (before && counts_from(distance->getOperand(0), 0, DimExpr(0)) &&
        counts_from(distance->getOperand(1), 1, *before))
      return slopes;
  }
  return {};
}

}  // namespace invar::compiler
