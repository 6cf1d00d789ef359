#include "compiler/passes/make_stateful/token_rows.h"

namespace invar::compiler {
namespace {

int64_t rank_of(Value v) {
  return static_cast<int64_t>(shape_of(v.getType()).size());
}

}  // namespace

std::optional<TokenRows::Rows> TokenRows::rows(Value v) const {
  Rows found{kNone, 1};
  const Shape shape = shape_of(v.getType());
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto size = size_of_(shape[d]);
    if (!size) return {};
    if (size->constant()) continue;
    const auto each = exact_div(*size, tokens_);
    const auto count = each ? each->constant() : std::nullopt;
    if (found.axis != kNone || !count) return {};
    found = {static_cast<int64_t>(d), *count};
  }
  return found;
}

std::optional<int64_t> TokenRows::axis(Value v) const {
  const auto found = rows(v);
  return found && found->each == 1 ? std::optional(found->axis) : std::nullopt;
}

std::optional<DimExpr> TokenRows::elements_before(Value v, int64_t axis) const {
  std::optional<DimExpr> all = DimExpr(1);
  const Shape shape = shape_of(v.getType());
  for (int64_t d = 0; d < axis && all; ++d) {
    const auto size = size_of_(shape[static_cast<size_t>(d)]);
    all = size ? invar::product(*all, *size) : std::nullopt;
  }
  return all;
}

// Operands that broadcast, aligned at the last axis.
bool TokenRows::pointwise(Operation* op, const Axes& axes) const {
  const int64_t rank = rank_of(op->getResult(0));
  for (auto [operand, axis] : llvm::zip(op->getOperands(), axes.in))
    if (axis != kNone && axis + rank - rank_of(operand) != axes.out) return false;
  return true;
}

bool TokenRows::reshape(Operation* op, const Axes& axes) const {
  const auto before = elements_before(op->getOperand(0), axes.in[0]),
             now = elements_before(op->getResult(0), axes.out);
  return before && now && *before == *now;
}

bool TokenRows::move(Operation* op, const Axes& axes) const {
  const auto out = static_cast<size_t>(axes.out);
  if (auto transpose = dyn_cast<TransposeOp>(op)) return transpose.getPerm()[out] == axes.in[0];
  if (auto concat = dyn_cast<ConcatOp>(op))
    return static_cast<int64_t>(concat.getAxis()) != axes.out &&
           llvm::all_of(axes.in, [&](int64_t axis) { return axis == axes.out; });
  if (axes.in[0] != axes.out) return false;
  if (auto slice = dyn_cast<SliceOp>(op)) return slice.getStarts()[out] == 0 && slice.getSteps()[out] == 1;
  const auto begins = op->getAttrOfType<DenseI64ArrayAttr>("begins");
  return begins && begins.asArrayRef()[out] == 0 &&
         llvm::all_of(llvm::drop_begin(axes.in), [](int64_t a) { return a == kNone; });
}

bool TokenRows::index(Operation* op, const Axes& axes) const {
  const int64_t table = axes.in[0], indices = axes.in[1], rank = rank_of(op->getOperand(1));
  if (auto each = dyn_cast<GatherElementsOp>(op))
    return table == axes.out && indices == axes.out && static_cast<int64_t>(each.getAxis()) != axes.out;
  if (auto nd = dyn_cast<GatherNdOp>(op))  // batches are apart
    return nd.getBatchDims() > 0 ? table == 0 && indices == 0 && axes.out == 0
                                 : table == kNone && indices == axes.out && indices < rank - 1;
  const auto axis = static_cast<int64_t>(cast<GatherOp>(op).getAxis().value_or(0));
  if (table == kNone) return axes.out == axis + indices;
  return indices == kNone && table != axis && axes.out == (table < axis ? table : table + rank - 1);
}

// Rows of matrices are apart, and so are matrices of a batch.
bool TokenRows::product(Operation* op, const Axes& axes) const {
  const int64_t a = axes.in[0], b = axes.in[1], rank = rank_of(op->getOperand(0)),
                b_rank = rank_of(op->getOperand(1)), out = rank_of(op->getResult(0));
  for (int64_t other : llvm::drop_begin(axes.in, 2))
    if (other != kNone) return false;
  auto matrices = dyn_cast<MatmulOp>(op);
  if (rank < 2 || b_rank < 2 || (matrices && matrices.getTransA().value_or(0))) return false;
  if (a == kNone || a == rank - 1 || axes.out != a + out - rank) return false;
  if (b == kNone) return true;
  return matrices && a < rank - 2 && b < b_rank - 2 && axes.out == b + out - b_rank;
}

// Operations along axes that attributes name, and those along the last ones.
bool TokenRows::along_axes(Operation* op, const Axes& axes) const {
  const int64_t rank = rank_of(op->getOperand(0)), in = axes.in[0];
  if (in == kNone) return false;
  for (int64_t other : llvm::drop_begin(axes.in))
    if (other != kNone) return false;
  if (isa<RmsnormOp, LayernormOp>(op)) return in == axes.out && in < rank - rank_of(op->getOperand(1));
  if (auto one_hot = dyn_cast<OneHotOp>(op))
    return axes.out == (in < static_cast<int64_t>(one_hot.getAxis()) ? in : in + 1);
  SmallVector<int64_t> along;
  if (auto list = op->getAttrOfType<DenseI64ArrayAttr>("axes"))
    along.append(list.asArrayRef().begin(), list.asArrayRef().end());
  else if (auto one = op->getAttrOfType<IntegerAttr>("axis"))
    along.push_back(one.getInt());
  const auto keeps = op->getAttrOfType<IntegerAttr>("keepdims");
  int64_t out = in;
  for (int64_t& axis : along) {
    if (axis < 0) axis += rank;
    if (axis == in) return false;
    if (keeps && keeps.getInt() == 0 && axis < in) --out;
  }
  return !along.empty() && out == axes.out;
}

bool TokenRows::keeps_apart(Operation* op) const {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0) return false;
  Axes axes{{}, kNone};
  const auto out = rows(op->getResult(0));
  if (!out) return false;
  bool any = false;
  for (Value operand : op->getOperands()) {
    const auto in = rows(operand);
    if (!in || (in->axis != kNone && in->each != out->each && !isa<ReshapeOp>(op))) return false;
    axes.in.push_back(in->axis), any |= in->axis != kNone;
  }
  axes.out = out->axis;
  auto known = dyn_cast<ReproOp>(op);
  if (!known) return false;
  if (isa<ExpandOp>(op)) return pointwise(op, axes);
  if (any != (axes.out != kNone)) return false;
  // Several elements of a token next to an axis of their own are for these.
  if (out->each != 1 && !known.pointwise() && !isa<ReshapeOp, RmsnormOp, LayernormOp>(op)) return false;
  if (!any) return true;
  if (known.pointwise()) return pointwise(op, axes);
  if (isa<ReshapeOp>(op)) return reshape(op, axes);
  if (isa<TransposeOp, SliceOp, ConcatOp, PadOp, PadWrapOp>(op)) return move(op, axes);
  if (isa<GatherOp, GatherElementsOp, GatherNdOp>(op)) return index(op, axes);
  if (isa<MatmulOp, MatmulNbitsOp>(op)) return product(op, axes);
  if (auto rotary = dyn_cast<RopeOp>(op))
    return axes.in[0] == (rotary.getHeadsFirst().value_or(0) ? 2 : 1) && axes.in[0] == axes.out &&
           axes.in[1] == 1 && axes.in[2] == 1;
  if (isa<RmsnormOp, LayernormOp, OneHotOp, SoftmaxOp, LogSoftmaxOp, TopkOp, HardmaxOp, CumsumOp, ReduceSumOp,
          ReduceMeanOp, ReduceProdOp, ReduceMaxOp, ReduceMinOp, ReduceL1Op, ReduceL2Op, ReduceSumSquareOp>(
          op))
    return along_axes(op, axes);
  return false;
}

}  // namespace invar::compiler
