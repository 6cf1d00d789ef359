// Nodes whose elements follow from their places: Range, OneHot, Trilu.
#pragma once
#include <bit>
#include <cmath>

#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/builders/builder_dsl.h"
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"

namespace invar::compiler {
namespace {

Result<Value> triangle(Node& node, Value x, int64_t upper, int64_t k) {
  return node.make<TriluOp>(x, {node.attr("upper", upper), node.attr("k", k)});
}
// Of a k that is computed: elements chosen by their places.
Status triangle_at_run_time(Node& node, bool upper) {
  const Shape shape = node.shape(0);
  const std::optional<DType> type = dtype_of(element_of(node.in(0)));
  if (shape.size() < 2) return bad_input("the operand has no matrices");
  if (!type || *type == DType::bf16 || *type == DType::f16)
    return not_covered("a k of bf16 or f16 that is computed");
  if (count_of(node.shape(1)) != Polynomial(1)) return bad_input("operand 1 is not one number");
  Formula f(node);
  auto line = [&](const Extent& n) {
    return f.make<IotaOp>({node.constant(Sizes(0)), node.constant(Sizes(1))}, {},
                          tensor_of({n}, node.build().getI64Type()));
  };
  const Extent rows = shape[shape.size() - 2], columns = shape.back(), one = Extent::of(1);
  const Value k = f.whole(f.shape(node.in(1), {one})),
              away = f.sub(line(columns), f.shape(line(rows), {rows, one}));
  const Value stays = upper ? f.make<GreaterEqualOp>({away, k}) : f.make<LessEqualOp>({away, k});
  const Value out = f.where(stays, node.in(0), node.constant(std::string(size_of(*type), '\0'), *type));
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

Status trilu(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 2, {"upper"}));
  INVAR_TRY(int64_t upper, node.i("upper", 1));
  if (node.has(1) && !node.bytes(1)) return triangle_at_run_time(node, upper != 0);
  INVAR_TRY(int64_t k, number_of(node, 1, 0));
  INVAR_TRY(Value out, triangle(node, node.in(0), int64_t{upper != 0}, k));
  return node.replace(out);
}

// The only number of a constant operand.
Result<double> real_of(Node& node, unsigned i) {
  Type element = element_of(node.in(i));
  if (element.isSignlessInteger(64) || element.isSignlessInteger(32)) {
    INVAR_TRY(int64_t v, number_of(node, i, 0));
    return static_cast<double>(v);
  }
  if (!node.bytes(i)) return node.unknown(i);
  INVAR_TRY(Value wide,
            node.make<CastOp>(node.in(i), {}, tensor_of(node.shape(i), node.build().getF64Type())));
  auto known = wide.getDefiningOp<ReproWeightOp>();
  const std::optional<std::string> bytes = known ? bytes_from_hex(*known.getData()) : std::nullopt;
  if (!bytes || bytes->size() != 8) return bad_input("operand " + std::to_string(i) + " is not one number");
  uint64_t bits = 0;
  for (size_t b = 0; b < 8; ++b) bits |= uint64_t{static_cast<uint8_t>((*bytes)[b])} << (8 * b);
  return std::bit_cast<double>(bits);
}

// An operand that is one number and becomes a dimension.
Result<Polynomial> size_of_operand(Node& node, unsigned i) {
  if (count_of(node.shape(i)) != Polynomial(1))
    return bad_input("operand " + std::to_string(i) + " is not one number");
  const Type element = element_of(node.in(i));
  if (!element.isSignlessInteger(64) && !element.isSignlessInteger(32)) {
    INVAR_TRY(const Value one, shaped(node, node.in(i), {Extent::of(1)}));
    return node.bind(one, 0);
  }
  INVAR_TRY(const std::vector<Polynomial> size, node.sizes(i));
  if (size[0].constant().value_or(0) < 0)
    return bad_input("operand " + std::to_string(i) + " is " + size[0].text());
  return size[0];
}

Status one_hot(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"axis"}));
  Extent depth;
  if (node.bytes(1)) {
    INVAR_TRY(const double length, real_of(node, 1));
    if (!(length >= 0)) return bad_input("depth " + std::to_string(length));
    if (length > 0x1p40) return not_covered("a depth above 2^40");
    depth = Extent::of(static_cast<int64_t>(length));
  } else {
    INVAR_TRY(const Polynomial length, size_of_operand(node, 1));
    depth = Extent::of(length);
  }
  INVAR_TRY(int64_t wanted, node.i("axis", -1));
  Shape shape = node.shape(0);
  INVAR_TRY(int64_t axis, Node::axis(wanted, shape.size() + 1));
  if (node.shape(2) != Shape{Extent::of(2)}) return bad_input("operand 2 is not two values");
  shape.insert(shape.begin() + axis, depth);
  Value index = node.in(0);
  Type element = element_of(index);
  if (!element.isSignlessInteger(64) && !element.isSignlessInteger(32)) {
    INVAR_TRY(index, node.make<CastOp>(index, {}, tensor_of(node.shape(0), node.build().getI64Type())));
  }
  INVAR_TRY(Value out, node.make<OneHotOp>({index, node.in(2)}, node.attr("axis", axis),
                                           tensor_of(shape, element_of(node.in(2)))));
  return node.replace(out);
}

// start + i * delta in this shape.
Result<Value> counted_from(Node& node, const Shape& shape) {
  Type element = element_of(node.in(0)), wide = node.build().getI64Type();
  auto counted_as = [&](Type type, Value from, Value step) {
    return node.make<IotaOp>({from, step}, {}, tensor_of(shape, type));
  };
  Value out;
  if (element.isF64()) {
    const int64_t none = 0, one = 1;
    INVAR_TRY(out, counted_as(wide, node.constant(llvm::ArrayRef<int64_t>(none)),
                              node.constant(llvm::ArrayRef<int64_t>(one))));
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

// The same of operands that are computed when the program runs, of integers or in binary64. A range without end is an error then, of
// -1 elements.
Result<Extent> count_at_run_time(Node& node) {
  const Type element = element_of(node.in(0)), whole = node.build().getI64Type(),
             wide_type = node.build().getF64Type();
  if (element.isBF16() || element.isF16()) return not_covered("a range of bf16 or f16 that is computed");
  for (unsigned i = 0; i < 3; ++i)
    if (count_of(node.shape(i)) != Polynomial(1))
      return bad_input("operand " + std::to_string(i) + " is not one number");
  Formula f(node);
  const bool real = element.isF32() || element.isF64();
  auto number = [&](unsigned i) {
    return f.cast(f.shape(node.in(i), {Extent::of(1)}), real ? wide_type : whole);
  };
  const Value start = number(0), limit = number(1), delta = number(2), way = f.sub(limit, start);
  const Value zero = node.constant(Sizes(0)), most = node.constant(Sizes(int64_t{1} << 40));
  Value count, ends;
  if (real) {
    count = f.make<CeilOp>(f.div(way, delta));
    ends = f.both(f.make<LessEqualOp>({count, f.cast(most, wide_type)}),
                  f.make<LogicalNotOp>(f.make<EqualOp>({delta, f.cast(zero, wide_type)})));
    count = f.whole(count);
  } else {
    // Rounded up: one more where something is left. A difference that i64 does not hold has the wrong sign.
    const Value rest = f.mul(f.make<FmodOp>({way, delta}), f.make<SignOp>(delta));
    count = f.add(f.div(way, delta), f.whole(f.less(zero, rest)));
    const Value holds = f.make<EqualOp>({f.less(start, limit), f.less(zero, way)});
    ends = f.both(f.both(f.make<LessEqualOp>({count, most}), holds),
                  f.make<LogicalNotOp>(f.make<EqualOp>({delta, zero})));
  }
  const Value n = f.where(ends, f.max(count, zero), node.constant(Sizes(-1)));
  INVAR_CHECK_OK(f.status());
  return Extent::of(node.bind(n, 0));
}

// What a limit is more than the start that it was added to; nothing where that is not known.
std::optional<Polynomial> known_way(Node& node) {
  auto sum = node.in(1).getDefiningOp<AddOp>();
  if (!sum || sum->getNumOperands() != 2) return std::nullopt;
  for (unsigned i : {0, 1}) {
    if (sum->getOperand(i) != node.in(0)) continue;
    const auto more = compiler::sizes_of(sum->getOperand(1 - i));
    if (more && more->size() == 1) return (*more)[0];
  }
  return std::nullopt;
}

// How many elements where operands are no constants; nothing where they are. A limit alone that is computed is a size itself.
Result<std::optional<Extent>> open_count(Node& node) {
  const Type element = element_of(node.in(0));
  const bool constant = node.bytes(0) && node.bytes(1) && node.bytes(2);
  if (constant) return std::optional<Extent>();
  std::optional<Polynomial> known[3];
  for (unsigned i = 0; i < 3 && (element.isSignlessInteger(64) || element.isSignlessInteger(32)); ++i) {
    INVAR_TRY(const auto list, node.known_sizes(i));
    if (list.size() != 1) return bad_input("an operand is not one number");
    known[i] = list[0];
  }
  const int64_t step = known[2] ? known[2]->constant().value_or(0) : 0;
  std::optional<Polynomial> way;
  if (step > 0 && known[0] && known[1]) {
    const std::optional<Polynomial> before = least(*known[1], *known[0]),
                                    all = difference(*known[1], *known[0]);
    way = before ? difference(*known[1], *before) : before;
    if (way && all) node.is_clamped(*way, {*all, *known[0], *known[1]});
  } else if (step > 0 && known[0] && known[0]->constant().value_or(-1) >= 0) {
    INVAR_TRY(const std::vector<Polynomial> limit, node.sizes(1));
    const std::optional<Polynomial> before = smaller(limit[0], *known[0]);
    way = before ? difference(limit[0], *before) : before;
  } else if (step > 0) {
    way = known_way(node);
  }
  if (!way) {
    INVAR_TRY(const Extent n, count_at_run_time(node));
    return std::optional(n);
  }
  const std::optional<Polynomial> up = sum(*way, step - 1), n = up ? quotient(*up, step) : up;
  if (!n) return not_covered("a range of " + way->text());
  if (n->constant().value_or(0) < 0) return std::optional(Extent::of(0));
  return std::optional(Extent::of(*n));
}

// max(ceil((limit - start) / delta), 0) elements.
Status range(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {}));
  INVAR_TRY(const std::optional<Extent> size, open_count(node));
  if (size) {
    INVAR_TRY(Value out, counted_from(node, {*size}));
    return node.replace(out);
  }
  INVAR_TRY(double start, real_of(node, 0));
  INVAR_TRY(double limit, real_of(node, 1));
  INVAR_TRY(double delta, real_of(node, 2));
  double count = std::ceil((limit - start) / delta);
  if (delta == 0 || std::isnan(count)) return bad_input("a range without end");
  if (count > 0x1p40) return not_covered("a range of more than 2^40 elements");
  INVAR_TRY(Value out, counted_from(node, {Extent::of(count > 0 ? static_cast<int64_t>(count) : 0)}));
  return node.replace(out);
}

}  // namespace
}  // namespace invar::compiler
