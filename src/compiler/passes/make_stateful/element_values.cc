#include "compiler/passes/make_stateful/element_values.h"

#include <cstring>

#include "compiler/passes/constant_evaluator.h"

namespace invar::compiler {
namespace {

using MaybeValue = std::optional<ElementValue>;
using Kind = ElementValue::Kind;
using Coordinates = std::vector<std::optional<DimExpr>>;  // per axis of an operand

// The value at other coordinates. Nothing if it depends on a coordinate that is unknown.
MaybeValue at(const ElementValue& v, const Coordinates& coordinates) {
  bool lost = false;
  const auto moved = [&](const DimExpr& e) {
    const auto made = e.substitute([&](const std::string& symbol) -> std::optional<DimExpr> {
      if (symbol[0] != '#') return {};
      const size_t axis = std::stoul(symbol.substr(1));
      lost |= axis >= coordinates.size() || !coordinates[axis];
      return lost ? std::nullopt : coordinates[axis];
    });
    lost |= !made;
    return made.value_or(0);
  };
  ElementValue out = v;
  out.integer = moved(v.integer);
  for (DimExpr& condition : out.conditions) condition = moved(condition);
  return lost ? std::nullopt : MaybeValue(std::move(out));
}

bool is_constant(const ElementValue& v) {
  return v.kind == Kind::choice && (v.conditions.empty() || v.if_true == v.if_false);
}
bool is_truth(const ElementValue& v) {
  return v.kind == Kind::choice && v.if_true == 1 && v.if_false == 0;
}
bool depends_on_coordinates(const ElementValue& v) {
  const auto fixed = [](const DimExpr& e) {
    return e.all_symbols([](const std::string& symbol) { return symbol[0] != '#'; });
  };
  return !fixed(v.integer) || !llvm::all_of(v.conditions, fixed);
}

// The opposite of a bool, where one condition decides.
MaybeValue negated(const ElementValue& v) {
  if (v.conditions.size() != 1) return {};
  const auto opposite = difference(DimExpr(-1), v.conditions[0]);
  return opposite ? MaybeValue(ElementValue::truth({*opposite})) : MaybeValue();
}

MaybeValue both(const ElementValue& a, const ElementValue& b) {
  ElementValue out = a;
  out.conditions.insert(out.conditions.end(), b.conditions.begin(), b.conditions.end());
  return out;
}

// condition ? a : b, where one of them is a constant.
MaybeValue select(const ElementValue& condition, const ElementValue& a, const ElementValue& b) {
  if (condition.kind != Kind::choice) return {};
  if (is_constant(condition)) return condition.if_true == 1 ? a : b;
  if (!is_truth(condition)) return select(ElementValue::truth(condition.conditions), b, a);
  if (a.kind != Kind::choice || b.kind != Kind::choice) return {};
  if (is_constant(a) && is_constant(b))
    return ElementValue{Kind::choice, {}, condition.conditions, a.if_true, b.if_true};
  if (is_constant(b) && a.if_false == b.if_true) return both(a, condition);
  const MaybeValue opposite = negated(condition);
  return opposite && is_constant(a) && b.if_false == a.if_true ? both(b, *opposite) : MaybeValue();
}

// a <= b, for integers.
MaybeValue less_equal(const ElementValue& a, const ElementValue& b, int64_t by = 0) {
  const auto gap = difference(b.integer, a.integer);
  const auto condition = gap ? sum(*gap, -by) : std::nullopt;
  if (a.kind != Kind::integer || b.kind != Kind::integer || !condition) return {};
  return ElementValue::truth({*condition});
}

MaybeValue integers(const ElementValue& a, const ElementValue& b,
                    std::optional<DimExpr> (*op)(const DimExpr&, const DimExpr&)) {
  if (a.kind != Kind::integer || b.kind != Kind::integer) return {};
  const auto made = op(a.integer, b.integer);
  return made ? MaybeValue(ElementValue::of(*made)) : MaybeValue();
}

// The nearest number of the type, ties to even: what a cast makes of x.
double rounded(double x, FloatType type) {
  llvm::APFloat number(x);
  bool inexact = false;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}
bool is_mask_type(Type type) {
  return type.isF32() || type.isF16() || type.isBF16();
}

// Arithmetic on masks of f32, one of them a constant.
MaybeValue numbers(const ElementValue& a, const ElementValue& b, float (*op)(float, float)) {
  if (a.kind != Kind::choice || b.kind != Kind::choice || (!is_constant(a) && !is_constant(b))) return {};
  const auto otherwise = [](const ElementValue& v) { return is_constant(v) ? v.if_true : v.if_false; };
  ElementValue out = is_constant(a) ? b : a;
  out.if_true = op(static_cast<float>(a.if_true), static_cast<float>(b.if_true));
  out.if_false = op(static_cast<float>(otherwise(a)), static_cast<float>(otherwise(b)));
  return out;
}

template <class T>
std::vector<int64_t> words(const std::string& bytes) {
  std::vector<int64_t> out;
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T x;
    std::memcpy(&x, bytes.data() + i, sizeof x);
    out.push_back(static_cast<int64_t>(x));
  }
  return out;
}

}  // namespace

DimExpr coordinate(size_t axis) {
  return DimExpr::symbol("#" + std::to_string(axis));
}

std::optional<DimExpr> ElementAnalysis::size(Value v, size_t axis) const {
  return size_of_(shape_of(v.getType())[axis]);
}

MaybeValue ElementAnalysis::value_of(Value v) {
  if (const auto it = known_.find(v); it != known_.end()) return it->second;
  Operation* op = v.getDefiningOp();
  MaybeValue found = op ? evaluate(op) : MaybeValue();
  known_[v] = found;
  return found;
}

MaybeValue ElementAnalysis::evaluate(Operation* op) {
  if (isa<ReproWeightOp>(op)) return evaluate_constant(op->getResult(0));
  if (isa<ReshapeOp, ExpandOp, TransposeOp, SliceOp, PadWrapOp, ConcatOp>(op)) return evaluate_move(op);
  if (isa<GatherOp, GatherNdOp, GatherElementsOp>(op)) return evaluate_gather(op);
  if (isa<ReduceSumOp, CumsumOp, IotaOp, TriluOp>(op)) return evaluate_sum(op);
  if (isa<CastOp>(op)) return evaluate_cast(op);
  return evaluate_pointwise(op);
}

// A constant of equal elements, or of equal steps along its only axis.
MaybeValue ElementAnalysis::evaluate_constant(Value v) {
  const std::optional<std::string> bytes = constant_bytes(v);
  if (!bytes || bytes->empty()) return {};
  const Type type = element_of(v);
  if (is_mask_type(type)) {
    const size_t size = type.getIntOrFloatBitWidth() / 8;
    for (size_t i = size; i < bytes->size(); i += size)
      if (bytes->compare(i, size, *bytes, 0, size) != 0) return {};
    uint32_t bits = 0;
    std::memcpy(&bits, bytes->data(), size);
    const llvm::APInt pattern(type.getIntOrFloatBitWidth(), bits);
    return ElementValue::constant(
        llvm::APFloat(cast<FloatType>(type).getFloatSemantics(), pattern).convertToDouble());
  }
  std::vector<int64_t> elements;
  if (type.isInteger(64)) elements = words<int64_t>(*bytes);
  if (type.isInteger(32)) elements = words<int32_t>(*bytes);
  if (type.isInteger(1)) elements = words<uint8_t>(*bytes);
  if (elements.empty()) return {};
  const int64_t step = elements.size() > 1 ? elements[1] - elements[0] : 0;
  for (size_t i = 1; i < elements.size(); ++i)
    if (elements[i] - elements[i - 1] != step) return {};
  if (type.isInteger(1))
    return step == 0 ? MaybeValue(ElementValue::constant(elements[0] ? 1 : 0)) : MaybeValue();
  if (step == 0) return ElementValue::of(elements[0]);
  const Shape shape = shape_of(v.getType());
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == Dim::of(static_cast<int64_t>(elements.size())))
      if (const auto moved = product(coordinate(d), step))
        if (const auto made = sum(*moved, elements[0])) return ElementValue::of(*made);
  return {};
}

// Evaluates shapes that differ by dimensions of 1 alone.
MaybeValue ElementAnalysis::evaluate_reshape(Value from, Value to) {
  const MaybeValue x = value_of(from);
  if (!x || !depends_on_coordinates(*x)) return x;
  const size_t rank = shape_of(from.getType()).size(), out_rank = shape_of(to.getType()).size();
  Coordinates coordinates(rank);
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (is_one(from, d)) {
      coordinates[d] = DimExpr(0);
      continue;
    }
    while (next < out_rank && is_one(to, next)) ++next;
    if (next == out_rank || !size(from, d) || size(from, d) != size(to, next)) return {};
    coordinates[d] = coordinate(next++);
  }
  return at(*x, coordinates);
}

MaybeValue ElementAnalysis::evaluate_move(Operation* op) {
  Value out = op->getResult(0), in = op->getOperand(0);
  if (isa<ReshapeOp>(op)) return evaluate_reshape(in, out);
  if (isa<ExpandOp>(op)) return broadcast_value(in, out);
  const MaybeValue x = value_of(in);
  if (!x) return {};
  const size_t rank = shape_of(out.getType()).size();
  Coordinates coordinates(rank);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (size_t d = 0; d < rank; ++d)
      coordinates[static_cast<size_t>(transpose.getPerm()[d])] = coordinate(d);
    return at(*x, coordinates);
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    for (size_t d = 0; d < rank; ++d) {
      const auto stepped = product(coordinate(d), slice.getSteps()[d]);
      coordinates[d] = stepped ? sum(*stepped, slice.getStarts()[d]) : std::nullopt;
    }
    return at(*x, coordinates);
  }
  if (auto repeated = dyn_cast<PadWrapOp>(op)) {
    for (size_t d = 0; d < rank; ++d)
      if (is_one(in, d))
        coordinates[d] = DimExpr(0);
      else if (repeated.getBegins()[d] == 0 && size(in, d) && size(in, d) == size(out, d))
        coordinates[d] = coordinate(d);
    return at(*x, coordinates);
  }
  for (Value part : op->getOperands()) {  // concat of one constant
    const MaybeValue other = value_of(part);
    if (!other || depends_on_coordinates(*other) || other->kind != x->kind || other->integer != x->integer ||
        other->conditions != x->conditions || other->if_true != x->if_true || other->if_false != x->if_false)
      return {};
  }
  return depends_on_coordinates(*x) ? MaybeValue() : x;
}

// A table of equal elements, whatever the indices, or a computed index into a computed table.
MaybeValue ElementAnalysis::evaluate_gather(Operation* op) {
  const MaybeValue table = value_of(op->getOperand(0));
  if (!table || !depends_on_coordinates(*table)) return table;
  auto gather = dyn_cast<GatherOp>(op);
  const MaybeValue index = gather ? value_of(gather.getIndices()) : MaybeValue();
  if (!index || index->kind != Kind::integer || !index->integer.is_nonnegative()) return {};
  const size_t axis = static_cast<size_t>(gather.getAxis().value_or(0)),
               rank = shape_of(gather.getTable().getType()).size(),
               index_rank = shape_of(gather.getIndices().getType()).size();
  Coordinates of_index(index_rank), coordinates(rank);
  for (size_t d = 0; d < index_rank; ++d) of_index[d] = coordinate(axis + d);
  const MaybeValue place = at(*index, of_index);
  if (!place) return {};
  for (size_t d = 0; d < rank; ++d) coordinates[d] = coordinate(d < axis ? d : d + index_rank - 1);
  coordinates[axis] = place->integer;
  return at(*table, coordinates);
}

MaybeValue ElementAnalysis::evaluate_sum(Operation* op) {
  const MaybeValue x = value_of(op->getOperand(0));
  if (!x) return {};
  if (auto count = dyn_cast<IotaOp>(op)) {
    const MaybeValue delta = value_of(count.getDelta());
    const auto step = delta && delta->kind == Kind::integer ? product(coordinate(0), delta->integer)
                                                            : std::optional<DimExpr>();
    return step ? integers(*x, ElementValue::of(*step), sum) : MaybeValue();
  }
  if (auto part = dyn_cast<TriluOp>(op)) {
    const size_t rank = shape_of(part.getType()).size();
    if (!is_constant(*x) || rank < 2) return {};
    const auto ahead = difference(coordinate(rank - 1), coordinate(rank - 2));  // column - row
    const auto from = ahead ? sum(*ahead, -part.getK()) : std::nullopt;
    const auto until = from ? product(*from, -1) : std::nullopt;
    if (!until) return {};
    return ElementValue{Kind::choice, {}, {part.getUpper() ? *from : *until}, x->if_true, 0};
  }
  if (x->kind != Kind::integer || depends_on_coordinates(*x)) return {};
  if (auto running = dyn_cast<CumsumOp>(op)) {
    if (running.getExclusive() || running.getReverse()) return {};
    const auto terms = sum(coordinate(static_cast<size_t>(running.getAxis())), 1);
    return terms ? integers(*x, ElementValue::of(*terms), product) : MaybeValue();
  }
  MaybeValue total = x;
  for (int64_t axis : cast<ReduceSumOp>(op).getAxes()) {
    const auto terms = size(op->getOperand(0), static_cast<size_t>(axis));
    if (!terms || !total) return {};
    total = integers(*total, ElementValue::of(*terms), product);
  }
  return total;
}

MaybeValue ElementAnalysis::broadcast_value(Value operand, Value result) {
  const MaybeValue x = value_of(operand);
  if (!x) return {};
  const size_t rank = shape_of(operand.getType()).size(), missing = shape_of(result.getType()).size() - rank;
  Coordinates coordinates(rank);
  for (size_t d = 0; d < rank; ++d)
    coordinates[d] = is_one(operand, d) ? DimExpr(0) : coordinate(d + missing);
  return at(*x, coordinates);
}

MaybeValue ElementAnalysis::evaluate_cast(Operation* op) {
  const Type to = element_of(op->getResult(0));
  const MaybeValue x = value_of(op->getOperand(0));
  const bool to_integer = to.isInteger(64) || to.isInteger(32), to_bool = to.isInteger(1);
  if (!x || (!to_integer && !to_bool && !is_mask_type(to))) return {};
  if (x->kind == Kind::integer) {
    const auto constant = x->integer.constant();
    if (to_integer) return x;
    if (!constant) return {};
    const auto number = static_cast<double>(*constant);
    return ElementValue::constant(to_bool ? number != 0 : rounded(number, cast<FloatType>(to)));
  }
  if (to_integer) {
    const bool whole = is_constant(*x) && (x->if_true == 0 || x->if_true == 1);
    return whole ? MaybeValue(ElementValue::of(static_cast<int64_t>(x->if_true))) : MaybeValue();
  }
  ElementValue out = *x;
  for (double* number : {&out.if_true, &out.if_false})
    *number = to_bool ? *number != 0 : rounded(*number, cast<FloatType>(to));
  return out;
}

MaybeValue ElementAnalysis::evaluate_pointwise(Operation* op) {
  if (!isa<AddOp, SubOp, MulOp, MaxOp, LessOp, LessEqualOp, GreaterOp, GreaterEqualOp, LogicalAndOp,
           LogicalOrOp, LogicalNotOp, WhereOp>(op))
    return {};
  SmallVector<ElementValue> in;
  bool known = true;
  for (Value operand : op->getOperands()) {
    MaybeValue x = broadcast_value(operand, op->getResult(0));
    // Whatever the other factor is.
    if (x && isa<MulOp>(op) && x->kind == Kind::integer && x->integer == DimExpr(0)) return x;
    if (!x && !isa<MulOp>(op)) return {};
    in.push_back(x ? std::move(*x) : ElementValue{});
    known &= x.has_value();
  }
  if (!known) return {};
  const ElementValue &a = in[0], &b = in.back();
  const bool integer = a.kind == Kind::integer;
  if (!integer && isa<AddOp, SubOp, MulOp>(op) && !element_of(op->getResult(0)).isF32()) return {};
  if (isa<AddOp>(op)) {
    if (!integer && !is_constant(a) && !is_constant(b))  // masks that hide by the same number
      return a.if_true == 0 && b.if_true == 0 && a.if_false == b.if_false ? both(a, b) : MaybeValue();
    return integer ? integers(a, b, sum) : numbers(a, b, [](float x, float y) { return x + y; });
  }
  if (isa<SubOp>(op))
    return integer ? integers(a, b, difference) : numbers(a, b, [](float x, float y) { return x - y; });
  if (isa<MulOp>(op))
    return integer ? integers(a, b, product) : numbers(a, b, [](float x, float y) { return x * y; });
  if (isa<MaxOp>(op)) {
    if (!integer || in.size() != 2) return {};
    const auto more = difference(a.integer, b.integer), less = difference(b.integer, a.integer);
    if (more && more->is_nonnegative()) return a;
    return less && less->is_nonnegative() ? MaybeValue(b) : MaybeValue();
  }
  if (isa<LessOp>(op)) return less_equal(a, b, 1);
  if (isa<LessEqualOp>(op)) return less_equal(a, b);
  if (isa<GreaterOp>(op)) return less_equal(b, a, 1);
  if (isa<GreaterEqualOp>(op)) return less_equal(b, a);
  if (isa<LogicalAndOp>(op)) {
    if (is_constant(a) || is_constant(b)) return select(a, b, ElementValue::constant(0));
    return is_truth(a) && is_truth(b) ? both(a, b) : MaybeValue();
  }
  if (isa<LogicalOrOp>(op)) return select(a, ElementValue::constant(1), b);
  if (isa<LogicalNotOp>(op)) {
    if (is_constant(a)) return ElementValue::constant(a.if_true == 1 ? 0 : 1);
    return is_truth(a) ? ElementValue{Kind::choice, {}, a.conditions, 0, 1} : MaybeValue();
  }
  return select(a, in[1], b);
}

}  // namespace invar::compiler
