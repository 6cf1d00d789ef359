// Lowering of Range, OneHot and Trilu, whose elements follow from their indices.
#include <bit>
#include <cmath>

#include "compiler/room_api.h"
#include "ops/move/import/rules.h"

namespace invar::compiler {
namespace {

// Trilu with a computed k: selects by comparing row and column indices.
Status trilu_dynamic(NodeView& node, bool upper) {
  const Shape shape = node.shape(0);
  const std::optional<DType> type = dtype_of(element_of(node.in(0)));
  if (shape.size() < 2) return bad_input("the operand has no matrices");
  if (!type || *type == DType::bf16 || *type == DType::f16)
    return not_covered("a k of bf16 or f16 that is computed");
  if (element_count(node.shape(1)) != DimExpr(1)) return bad_input("operand 1 is not one number");
  ExprBuilder f(node);
  auto line = [&](const Dim& n) {
    return f.make<IotaOp>({node.constant(Ints(0)), node.constant(Ints(1))}, {},
                          tensor_of({n}, node.builder().getI64Type()));
  };
  const Dim rows = shape[shape.size() - 2], columns = shape.back(), one = Dim::of(1);
  const Value k = f.to_i64(f.reshape(node.in(1), {one})),
              away = f.sub(line(columns), f.reshape(line(rows), {rows, one}));
  const Value stays = upper ? f.make<GreaterEqualOp>({away, k}) : f.make<LessEqualOp>({away, k});
  const Value out = f.where(stays, node.in(0), node.constant(std::string(size_of(*type), '\0'), *type));
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

Status trilu(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 2, {"upper"}));
  INVAR_TRY(int64_t upper, node.int_attr("upper", 1));
  if (node.has(1) && !node.constant_bytes(1)) return trilu_dynamic(node, upper != 0);
  INVAR_TRY(int64_t k, constant_int(node, 1, 0));
  INVAR_TRY(Value out, make_trilu(node, node.in(0), int64_t{upper != 0}, k));
  return node.replace(out);
}

// The only number of a constant operand.
Result<double> constant_double(NodeView& node, unsigned i) {
  Type element = element_of(node.in(i));
  if (element.isSignlessInteger(64) || element.isSignlessInteger(32)) {
    INVAR_TRY(int64_t v, constant_int(node, i, 0));
    return static_cast<double>(v);
  }
  if (!node.constant_bytes(i)) return node.not_constant(i);
  INVAR_TRY(Value wide,
            node.make<CastOp>(node.in(i), {}, tensor_of(node.shape(i), node.builder().getF64Type())));
  auto known = wide.getDefiningOp<ReproWeightOp>();
  const std::optional<std::string> bytes = known ? std::optional(known.getData()->str()) : std::nullopt;
  if (!bytes || bytes->size() != 8) return bad_input("operand " + std::to_string(i) + " is not one number");
  uint64_t bits = 0;
  for (size_t b = 0; b < 8; ++b) bits |= uint64_t{static_cast<uint8_t>((*bytes)[b])} << (8 * b);
  return std::bit_cast<double>(bits);
}

// An operand of one number as a dimension expression.
Result<DimExpr> scalar_dim_operand(NodeView& node, unsigned i) {
  if (element_count(node.shape(i)) != DimExpr(1))
    return bad_input("operand " + std::to_string(i) + " is not one number");
  const Type element = element_of(node.in(i));
  if (!element.isSignlessInteger(64) && !element.isSignlessInteger(32)) {
    INVAR_TRY(const Value one, reshape(node, node.in(i), {Dim::of(1)}));
    return node.bind_dim(one, 0);
  }
  INVAR_TRY(const std::vector<DimExpr> size, node.dim_exprs(i));
  if (size[0].constant().value_or(0) < 0)
    return bad_input("operand " + std::to_string(i) + " is " + text_of(size[0]));
  return size[0];
}

Status one_hot(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"axis"}));
  Dim depth;
  if (node.constant_bytes(1)) {
    INVAR_TRY(const double length, constant_double(node, 1));
    if (!(length >= 0)) return bad_input("depth " + std::to_string(length));
    if (length > 0x1p40) return not_covered("a depth above 2^40");
    depth = Dim::of(static_cast<int64_t>(length));
  } else {
    INVAR_TRY(const DimExpr length, scalar_dim_operand(node, 1));
    depth = Dim::of(length);
  }
  INVAR_TRY(int64_t wanted, node.int_attr("axis", -1));
  Shape shape = node.shape(0);
  INVAR_TRY(int64_t axis, NodeView::normalize_axis(wanted, shape.size() + 1));
  if (node.shape(2) != Shape{Dim::of(2)}) return bad_input("operand 2 is not two values");
  shape.insert(shape.begin() + axis, depth);
  Value index = node.in(0);
  Type element = element_of(index);
  if (!element.isSignlessInteger(64) && !element.isSignlessInteger(32)) {
    INVAR_TRY(index, node.make<CastOp>(index, {}, tensor_of(node.shape(0), node.builder().getI64Type())));
  }
  INVAR_TRY(Value out, node.make<OneHotOp>({index, node.in(2)}, node.attr("axis", axis),
                                           tensor_of(shape, element_of(node.in(2)))));
  return node.replace(out);
}

// start + i * delta in this shape.
Result<Value> make_range(NodeView& node, const Shape& shape) {
  Type element = element_of(node.in(0)), wide = node.builder().getI64Type();
  auto counted_as = [&](Type type, Value from, Value step) {
    return node.make<IotaOp>({from, step}, {}, tensor_of(shape, type));
  };
  Value out;
  if (element.isF64()) {
    const int64_t none = 0, one = 1;
    INVAR_TRY(out, counted_as(wide, node.constant(Ints(none)), node.constant(Ints(one))));
    INVAR_TRY(out, node.make<CastOp>(out, {}, tensor_of(shape, element)));
    INVAR_TRY(out, node.make<MulOp>({out, node.in(2)}));
    INVAR_TRY(out, node.make<AddOp>({out, node.in(0)}));
  } else if (element.isIntOrIndex() && !element.isSignlessInteger(32) && element != wide) {
    INVAR_TRY(Value from, node.make<CastOp>(node.in(0), {}, tensor_of(node.shape(0), wide)));
    INVAR_TRY(Value step, node.make<CastOp>(node.in(2), {}, tensor_of(node.shape(2), wide)));
    INVAR_TRY(out, counted_as(wide, from, step));
    INVAR_TRY(out, node.make<CastOp>(out, {}, tensor_of(shape, element)));
  } else {
    INVAR_TRY(out, counted_as(element, node.in(0), node.in(2)));
  }
  return out;
}

// The length of a Range whose operands are known at run time only, computed in i64 or f64. An
// infinite range gets the length -1, which is an error.
Result<Dim> range_length_dynamic(NodeView& node) {
  const Type element = element_of(node.in(0)), i64 = node.builder().getI64Type(),
             wide_type = node.builder().getF64Type();
  if (element.isBF16() || element.isF16()) return not_covered("a range of bf16 or f16 that is computed");
  for (unsigned i = 0; i < 3; ++i)
    if (element_count(node.shape(i)) != DimExpr(1))
      return bad_input("operand " + std::to_string(i) + " is not one number");
  ExprBuilder f(node);
  const bool is_float = element.isF32() || element.isF64();
  auto number = [&](unsigned i) {
    return f.cast(f.reshape(node.in(i), {Dim::of(1)}), is_float ? wide_type : i64);
  };
  const Value start = number(0), limit = number(1), delta = number(2), distance = f.sub(limit, start);
  const Value zero = node.constant(Ints(0)), limit_count = node.constant(Ints(int64_t{1} << 40));
  Value count, ends;
  if (is_float) {
    count = f.make<CeilOp>(f.div(distance, delta));
    ends = f.logical_and(f.make<LessEqualOp>({count, f.cast(limit_count, wide_type)}),
                         f.make<LogicalNotOp>(f.make<EqualOp>({delta, f.cast(zero, wide_type)})));
    count = f.to_i64(count);
  } else {
    // A quotient rounded up. If limit - start overflows i64, its sign is wrong.
    const Value rest = f.mul(f.make<FmodOp>({distance, delta}), f.make<SignOp>(delta));
    count = f.add(f.div(distance, delta), f.to_i64(f.less(zero, rest)));
    const Value holds = f.make<EqualOp>({f.less(start, limit), f.less(zero, distance)});
    ends = f.logical_and(f.logical_and(f.make<LessEqualOp>({count, limit_count}), holds),
                         f.make<LogicalNotOp>(f.make<EqualOp>({delta, zero})));
  }
  const Value n = f.where(ends, f.max(count, zero), node.constant(Ints(-1)));
  INVAR_CHECK_OK(f.status());
  return Dim::of(node.bind_dim(n, 0));
}

// limit - start for a limit that is start + something; nullopt if it is not.
std::optional<DimExpr> limit_minus_start(NodeView& node) {
  auto sum = node.in(1).getDefiningOp<AddOp>();
  if (!sum || sum->getNumOperands() != 2) return std::nullopt;
  for (unsigned i : {0, 1}) {
    if (sum->getOperand(i) != node.in(0)) continue;
    const auto more = NodeView::known_dim_values(sum->getOperand(1 - i));
    if (more && more->size() == 1) return (*more)[0];
  }
  return std::nullopt;
}

// The length of a Range whose operands are not all constants; nullopt if they are. If only the
// limit is computed, it becomes a symbol.
Result<std::optional<Dim>> symbolic_range_length(NodeView& node) {
  const Type element = element_of(node.in(0));
  const bool constant = node.constant_bytes(0) && node.constant_bytes(1) && node.constant_bytes(2);
  if (constant) return std::optional<Dim>();
  std::optional<DimExpr> known[3];
  for (unsigned i = 0; i < 3 && (element.isSignlessInteger(64) || element.isSignlessInteger(32)); ++i) {
    INVAR_TRY(const auto list, node.known_dim_exprs(i));
    if (list.size() != 1) return bad_input("an operand is not one number");
    known[i] = list[0];
  }
  const int64_t step = known[2] ? known[2]->constant().value_or(0) : 0;
  std::optional<DimExpr> distance;
  if (step > 0 && known[0] && known[1]) {
    const std::optional<DimExpr> before = minimum(*known[1], *known[0]),
                                 all = difference(*known[1], *known[0]);
    distance = before ? difference(*known[1], *before) : before;
    if (distance && all) node.note_clamped_slice(*distance, {*all, *known[0], *known[1]});
  } else if (step > 0 && known[0] && known[0]->constant().value_or(-1) >= 0) {
    INVAR_TRY(const std::vector<DimExpr> limit, node.dim_exprs(1));
    const std::optional<DimExpr> before = symbolic_min(limit[0], *known[0]);
    distance = before ? difference(limit[0], *before) : before;
  } else if (step > 0) {
    distance = limit_minus_start(node);
  }
  if (!distance) {
    INVAR_TRY(const Dim n, range_length_dynamic(node));
    return std::optional(n);
  }
  const std::optional<DimExpr> up = sum(*distance, step - 1), n = up ? floor_div(*up, step) : up;
  if (!n) return not_covered("a range of " + text_of(*distance));
  if (n->constant().value_or(0) < 0) return std::optional(Dim::of(0));
  return std::optional(Dim::of(*n));
}

// max(ceil((limit - start) / delta), 0) elements.
Status range(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {}));
  INVAR_TRY(const std::optional<Dim> size, symbolic_range_length(node));
  if (size) {
    INVAR_TRY(Value out, make_range(node, {*size}));
    return node.replace(out);
  }
  INVAR_TRY(double start, constant_double(node, 0));
  INVAR_TRY(double limit, constant_double(node, 1));
  INVAR_TRY(double delta, constant_double(node, 2));
  double count = std::ceil((limit - start) / delta);
  if (delta == 0 || std::isnan(count)) return bad_input("a range without end");
  if (count > 0x1p40) return not_covered("a range of more than 2^40 elements");
  INVAR_TRY(Value out, make_range(node, {Dim::of(count > 0 ? static_cast<int64_t>(count) : 0)}));
  return node.replace(out);
}

}  // namespace

Result<Value> make_trilu(NodeView& node, Value x, int64_t upper, int64_t k) {
  return node.make<TriluOp>(x, {node.attr("upper", upper), node.attr("k", k)});
}

void import_move_index_generated(RuleRegistry& registry) {
  registry.add_rule("Trilu", 14, trilu);
  registry.add_rule("OneHot", 9, one_hot, "IDV>V");
  registry.add_rule("Range", 11, range);
}

}  // namespace invar::compiler
