// Propagates dimension expressions through integer arithmetic and comparisons (onnx.22).
#include "ops/elementwise/import/rules.h"

namespace invar::compiler {
namespace {

using DimExprs = llvm::ArrayRef<DimExpr>;
// 1 if `shown` is never negative, 0 if `opposite`, which is negative exactly where `shown` is not,
// never is.
std::optional<DimExpr> decide(const std::optional<DimExpr>& known, const std::optional<DimExpr>& opposite) {
  if (known && known->is_nonnegative()) return 1;
  if (opposite && opposite->is_nonnegative()) return 0;
  return std::nullopt;
}
// a - b - by.
std::optional<DimExpr> difference_minus(const DimExpr& a, const DimExpr& b, int64_t by) {
  const std::optional<DimExpr> gap = difference(a, b);
  return gap ? difference(*gap, by) : gap;
}
std::optional<DimExpr> dim_less(DimExprs x) {
  return decide(difference_minus(x[1], x[0], 1), difference_minus(x[0], x[1], 0));
}
std::optional<DimExpr> dim_less_equal(DimExprs x) {
  return decide(difference_minus(x[1], x[0], 0), difference_minus(x[0], x[1], 1));
}
std::optional<DimExpr> dim_equal(DimExprs x) {
  if (x[0] == x[1]) return 1;
  const std::optional<DimExpr> above = difference_minus(x[0], x[1], 1),
                               below = difference_minus(x[1], x[0], 1);
  if ((above && above->is_nonnegative()) || (below && below->is_nonnegative())) return 0;
  return std::nullopt;
}
// Integer division truncates and a DimExpr quotient floors, so the dividend must not be negative.
std::optional<DimExpr> dim_quotient(DimExprs x) {
  if (std::optional<DimExpr> exact = exact_div(x[0], x[1]); exact && x[1].constant()) return exact;
  const int64_t by = x[1].constant().value_or(0);
  return by > 0 && x[0].is_nonnegative() ? floor_div(x[0], by) : std::nullopt;
}
std::optional<DimExpr> dim_remainder(DimExprs x) {
  const int64_t by = x[1].constant().value_or(0);
  const std::optional<DimExpr> quotient = by > 0 ? floor_div(x[0], by) : std::nullopt;
  const std::optional<DimExpr> gone = quotient ? product(*quotient, by) : quotient;
  return gone ? difference(x[0], *gone) : gone;
}

}  // namespace

void import_dim_propagation(RuleRegistry& registry) {
  registry.propagates_dims<AddOp>([](DimExprs x) { return sum(x[0], x[1]); });
  registry.propagates_dims<SubOp>([](DimExprs x) { return difference(x[0], x[1]); });
  registry.propagates_dims<NegOp>([](DimExprs x) { return product(x[0], -1); });
  registry.propagates_dims<AbsOp>(
      [](DimExprs x) { return x[0].is_nonnegative() ? std::optional(x[0]) : std::nullopt; });
  registry.propagates_dims<MulOp>([](DimExprs x) { return product(x[0], x[1]); });
  registry.propagates_dims<DivOp>(dim_quotient);
  registry.propagates_dims<ModOp>(dim_remainder);
  registry.propagates_dims<MaxOp>([](DimExprs x) { return maximum(x[0], x[1]); });
  registry.propagates_dims<MinOp>([](DimExprs x) { return minimum(x[0], x[1]); });
  registry.propagates_dims<EqualOp>(dim_equal);
  registry.propagates_dims<LessOp>(dim_less);
  registry.propagates_dims<LessEqualOp>(dim_less_equal);
  registry.propagates_dims<GreaterOp>([](DimExprs x) { return dim_less({x[1], x[0]}); });
  registry.propagates_dims<GreaterEqualOp>([](DimExprs x) { return dim_less_equal({x[1], x[0]}); });
  registry.moves_elements<WhereOp>(/*selector=*/0);
}

}  // namespace invar::compiler
