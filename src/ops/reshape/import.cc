#include <algorithm>

#include "compiler/lowering/op_builder.h"

namespace invar::compiler {
namespace {

Status to(Node& node, const Shape& shape) {
  if (shape == node.shape(0)) return node.replace(node.in(0));
  Type element = getElementTypeOrSelf(node.in(0).getType());
  INVAR_TRY(Value out, node.make<ReshapeOp>(node.in(0), {}, tensor_of(shape, element)));
  return node.replace(out);
}

// -1 stands for what is left: the elements of `from` over those of the rest.
Result<Extent> rest(Node& node, const Shape& from, const Shape& others) {
  const std::optional<Polynomial> all = count_of(from), part = count_of(others);
  if (!all || !part) return not_covered("a dimension is unknown");
  if (const std::optional<Polynomial> e = exact_quotient(*all, *part)) return Extent::of(*e);
  // By a number and names that all terms have: rounded down, since the elements are counted when the program runs.
  if (part->terms().size() == 1 && !part->constant()) {
    const auto& [names, times] = *part->terms().begin();
    Polynomial named = 1;
    for (const std::string& name : names) named = product(named, Polynomial::of(name)).value_or(0);
    if (const std::optional<Polynomial> kept = exact_quotient(*all, named))
      if (const std::optional<Polynomial> e = quotient(*kept, times)) return Extent::of(*e);
  } else if (part->constant().value_or(0) > 0 && !all->constant()) {
    if (const std::optional<Polynomial> e = quotient(*all, *part->constant())) return Extent::of(*e);
  }
  if (all->constant() && part->constant()) return bad_input("the sizes of operand and shape do not divide");
  // That they divide shows when the program runs.
  INVAR_TRY(Value by, node.make<MaxOp>({node.sizes(*part, int64_t{1}), node.constant(Sizes(1))}));
  INVAR_TRY(Value left, node.make<DivOp>({node.sizes(*all, int64_t{1}), by}));
  return Extent::of(node.bind(left, 0));
}

// A shape that is not known at all: 0 and -1 mean what they do, computed when the program runs.
Status reshape_at_run_time(Node& node, int64_t zeros) {
  const Shape from = node.shape(0), list = node.shape(1);
  const int64_t rank = list.empty() ? 1 : list[0].value;
  INVAR_TRY(Value wanted, shaped(node, node.in(1), {Extent::of(rank)}));
  const Value nothing = node.constant(Sizes(0)), open = node.constant(Sizes(-1));
  std::vector<Polynomial> kept;
  for (size_t d = 0; d < static_cast<size_t>(rank);
       ++d)  // -2: 0 stands for a dimension that the operand does not have
    kept.push_back(d < from.size() ? *polynomial_of(from[d]) : Polynomial(-2));
  if (!zeros) {
    INVAR_TRY(Value zero, node.make<EqualOp>({wanted, nothing}));
    INVAR_TRY(wanted, node.make<WhereOp>({zero, node.sizes(kept, rank), wanted}));
  }
  // What is left for -1: all over the product of the others, of which -1 is the negative.
  const std::optional<Polynomial> all = count_of(from);
  if (!all) return not_covered("a dimension is unknown");
  INVAR_TRY(Value product, node.make<ReduceProdOp>(
                               wanted, {node.attr("axes", Sizes(0)), node.attr("keepdims", int64_t{1})}));
  INVAR_TRY(product, node.make<AbsOp>(product));
  INVAR_TRY(product, node.make<MaxOp>({product, node.constant(Sizes(1))}));
  INVAR_TRY(Value rest, node.make<DivOp>({node.sizes(*all, int64_t{1}), product}));
  INVAR_TRY(Value is_open, node.make<EqualOp>({wanted, open}));
  INVAR_TRY(wanted, node.make<WhereOp>({is_open, rest, wanted}));
  Shape shape;
  for (int64_t d = 0; d < rank; ++d) shape.push_back(Extent::of(node.bind(wanted, d)));
  return to(node, shape);
}

Status reshape(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"allowzero"}));
  INVAR_TRY(const int64_t zeros, node.i("allowzero", 0));
  INVAR_TRY(const auto known, node.known_sizes(1));
  if (element_of(node.in(1)).isSignlessInteger(64) &&
      llvm::none_of(known, [](auto& k) { return k.has_value(); }) && !known.empty())
    return reshape_at_run_time(node, zeros);
  INVAR_TRY(std::vector<Polynomial> wanted, node.sizes(1));
  Shape from = node.shape(0), shape, others;
  std::optional<size_t> open;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].constant().value_or(0) < -1) return bad_input("dimension " + wanted[i].text());
    const bool kept = wanted[i] == 0 && !zeros;
    if (kept && i >= from.size()) return bad_input("0 stands for a dimension the operand does not have");
    if (wanted[i] == -1 && open) return bad_input("-1 twice");
    if (wanted[i] == -1) open = i;
    shape.push_back(kept ? from[i] : Extent::of(wanted[i]));
    if (wanted[i] != -1) others.push_back(shape.back());
  }
  if (open) {
    INVAR_TRY(shape[*open], rest(node, from, others));
  }
  return to(node, shape);
}

Status flatten(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis"}));
  const Shape from = node.shape(0);
  INVAR_TRY(int64_t axis, node.i("axis", 1));
  if (axis != static_cast<int64_t>(from.size())) {
    INVAR_TRY(axis, Node::axis(axis, from.size()));
  }
  INVAR_TRY(const Shape matrix, matrix_of(from, axis));
  return to(node, matrix);
}

// Axes, an operand since opset 13.
Result<std::vector<int64_t>> listed_axes(Node& node, unsigned least) {
  if (node.version() < 13) {
    INVAR_CHECK_OK(node.expect(1, 1, {"axes"}));
    return node.ints("axes");
  }
  INVAR_CHECK_OK(node.expect(least, 2, {}));
  return node.has(1) ? node.constants(1) : std::vector<int64_t>{};
}

Status unsqueeze(Node& node) {
  INVAR_TRY(std::vector<int64_t> axes, listed_axes(node, 2));
  Shape from = node.shape(0);
  std::set<int64_t> at;
  for (int64_t a : axes) {
    INVAR_TRY(int64_t axis, Node::axis(a, from.size() + axes.size()));
    if (!at.insert(axis).second) return bad_input("axis " + std::to_string(a) + " twice");
  }
  for (int64_t axis : at) from.insert(from.begin() + axis, Extent::of(1));
  return to(node, from);
}

Status squeeze(Node& node) {
  INVAR_TRY(const std::vector<int64_t> axes, listed_axes(node, 1));
  const bool named = node.version() < 13 ? node.attribute("axes") != nullptr : node.has(1);
  Shape from = node.shape(0);
  std::set<int64_t> at;
  for (int64_t a : axes) {
    INVAR_TRY(int64_t axis, Node::axis(a, from.size()));
    at.insert(axis);
  }
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    bool one = from[i] == Extent::of(1);
    if (!named && !from[i].constant())
      return not_covered("it may or may not drop a symbolic dimension, " + text_of(from[i]));
    if (at.count(static_cast<int64_t>(i)) && !one && !node.is_bound(from[i])) {
      if (from[i].constant()) return bad_input("axis " + std::to_string(i) + " is not 1");
      const bool asked = !forced_by(from[i], Extent::of(1)) && may_be_equal(from[i], Extent::of(1));
      if (!asked) {
        INVAR_CHECK_OK(node.equal(from[i], Extent::of(1), "axis " + std::to_string(i)));
      }
    }
    if (!(named ? at.count(static_cast<int64_t>(i)) > 0 : one)) shape.push_back(from[i]);
  }
  return to(node, shape);
}

// The dimensions of [start, end).
Status sizes(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"start", "end"}));
  INVAR_TRY(int64_t start, node.i("start", 0));
  INVAR_TRY(int64_t end, node.i("end", INT64_MAX));
  const Shape shape = node.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  auto place = [&](int64_t at) { return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank); };
  std::vector<Polynomial> list;
  for (int64_t d = place(start); d < place(end); ++d) {
    const std::optional<Polynomial> size = polynomial_of(shape[static_cast<size_t>(d)]);
    if (!size) return not_covered("a dimension is unknown");
    list.push_back(*size);
  }
  return node.replace(node.sizes(list, static_cast<int64_t>(list.size())));
}

Status count(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  const std::optional<Polynomial> n = count_of(node.shape(0));
  if (!n) return not_covered("a dimension is unknown, or there are more elements than can be counted");
  return node.replace(node.sizes(*n, {}));
}

// A name is the sum of as many ones; a quotient rounds down, whatever its sign; of two the smaller.
class Measure {
 public:
  Measure(OpBuilder& build, Location loc) : build_(build), loc_(loc) {}
  Value of(const Polynomial& p) {
    Value total;
    for (const auto& [monomial, times] : p.terms()) {
      Value term = times != 1 || monomial.empty() ? number(times) : Value();
      for (const std::string& factor : monomial) {
        const auto parts = Polynomial::parts_of(factor);
        Value next = !parts      ? named(factor)
                     : parts->by ? quotient(of(parts->first), number(parts->by))
                                 : made<MinOp>({of(parts->first), of(parts->second)});
        term = term ? made<MulOp>({term, next}) : next;
      }
      total = total ? made<AddOp>({total, term}) : term;
    }
    return total ? total : number(0);
  }
  template <class Op>
  Value made(ValueRange operands, llvm::ArrayRef<NamedAttribute> attrs = {}, Type type = {}) {
    if (!type) type = operands[0].getType();
    return make_op(build_, loc_, Op::getOperationName(), operands, attrs, type)->getResult(0);
  }

 private:
  Value number(int64_t n) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<uint64_t>(n) >> (8 * i));
    return make_constant(build_, loc_, bytes, DType::i64, 1);
  }
  Value named(const std::string& name) {
    if (ReproBindOp bind = binding_of(build_.getBlock(), name)) {
      bind->setAttr(kMeasured, build_.getUnitAttr());
      const auto one = RankedTensorType::get(1, build_.getI64Type());
      if (cast<RankedTensorType>(bind.getValue().getType()).getRank() == 0)
        return made<ReshapeOp>(bind.getValue(), {}, one);
      const int64_t at = bind.getElement();
      return made<SliceOp>(bind.getValue(),
                           {build_.getNamedAttr("starts", build_.getDenseI64ArrayAttr(at)),
                            build_.getNamedAttr("steps", build_.getDenseI64ArrayAttr(1))},
                           one);
    }
    Value ones =
        made<ExpandOp>(number(1), {}, tensor_of({{ShapedType::kDynamic, name}}, build_.getI64Type()));
    return made<ReduceSumOp>(ones,
                             {build_.getNamedAttr("axes", build_.getDenseI64ArrayAttr({0})),
                              build_.getNamedAttr("keepdims", build_.getI64IntegerAttr(1))},
                             RankedTensorType::get(1, build_.getI64Type()));
  }
  Value quotient(Value a, Value by) { return made<DivOp>({made<SubOp>({a, made<ModOp>({a, by})}), by}); }
  OpBuilder& build_;
  Location loc_;
};

Value measured(OpBuilder& build, ReproSizesOp sizes) {
  Measure measure(build, sizes.getLoc());
  SmallVector<Value> parts;
  for (Attribute text : sizes.getSizes())
    parts.push_back(measure.of(*Polynomial::parse(cast<StringAttr>(text).getValue())));
  Type element = build.getI64Type();
  Value all = parts[0];
  if (parts.size() > 1)
    all = measure.made<ConcatOp>(parts, build.getNamedAttr("axis", build.getI64IntegerAttr(0)),
                                 RankedTensorType::get(static_cast<int64_t>(parts.size()), element));
  if (all.getType() == sizes.getType()) return all;
  return measure.made<ReshapeOp>(all, {}, sizes.getType());
}

// Without training: what comes in, and a mask of ones.
Status dropout(Node& node) {
  if (node.version() < 12) {
    INVAR_CHECK_OK(node.expect(1, 1, {"ratio"}, 2));
  } else {
    INVAR_CHECK_OK(node.expect(1, 3, {"seed"}, 2));
  }
  if (node.has(2)) {
    const std::optional<std::string> training = node.bytes(2);
    if (!training) return node.unknown(2);
    const std::optional<std::string> ratio = node.has(1) ? node.bytes(1) : std::nullopt;
    const bool all = ratio && ratio->find_first_not_of('\0') == ratio->npos;
    if (*training != std::string(1, '\0') && !all) return not_covered("training draws random numbers");
  }
  INVAR_TRY(Value mask, node.make<ExpandOp>(node.constant(llvm::StringRef("\1"), DType::boolean), {},
                                            tensor_of(node.shape(0), node.build().getI1Type())));
  node.replace(1, mask);
  return node.replace(node.in(0));
}

Value copied(OpBuilder& build, Value x) {
  return make_op(build, x.getLoc(), ReshapeOp::getOperationName(), x, {}, x.getType())->getResult(0);
}

Status bit_cast(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"to"}));
  INVAR_TRY(int64_t code, node.i("to", 0));
  Type element = onnx_type(node.context(), static_cast<int32_t>(code));
  if (!element) return bad_input("attribute \"to\" is no element type");
  if (element_of(node.in(0)) == element) return node.replace(node.in(0));
  const std::optional<DType> from = dtype_of(element_of(node.in(0))), to = dtype_of(element);
  if (!from || !to || *to == DType::boolean)
    return not_covered("element type " + std::to_string(code) + " (TensorProto.DataType)");
  if (size_of(*from) != size_of(*to)) return bad_input("elements of different width");
  INVAR_TRY(Value out, node.make<BitcastOp>(node.in(0), {}, tensor_of(node.shape(0), element)));
  return node.replace(out);
}

Status identity(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  return node.replace(node.in(0));
}

}  // namespace

LogicalResult ReshapeOp::verify() {
  if (getElementTypeOrSelf(getX().getType()) != getElementTypeOrSelf(getType()))
    return emitOpError("changes the element type");
  std::optional<Polynomial> from = count_of(shape_of(getX().getType())), to = count_of(shape_of(getType()));
  if (from && from == to) return success();
  // What holds for some sizes shows when the program runs.
  const std::optional<Polynomial> gap = from && to ? difference(*from, *to) : std::nullopt;
  if (gap && may_be_zero(*gap)) return success();
  // One that is computed may be 0 as well.
  Block* block = (*this)->getBlock();
  if (gap && !gap->constant() && (may_be_bound(block, *from) || may_be_bound(block, *to))) return success();
  return emitOpError(gap ? "does not keep the number of elements" : "has more elements than can be counted");
}

LogicalResult BitcastOp::verify() {
  if (shape_of(getX().getType()) == shape_of(getType())) return success();
  return emitOpError("changes the shape");
}

void import_reshape(Rooms& rooms) {
  rooms.on("Reshape", 5, reshape);
  rooms.on("Flatten", 9, flatten);
  rooms.on("Unsqueeze", 1, unsqueeze);
  rooms.on("Squeeze", 1, squeeze);
  rooms.on("BitCast", 26, bit_cast);
  rooms.on("Identity", 1, identity);
  rooms.on("Dropout", 7, dropout, "TR*>T*");
  rooms.on("Shape", 1, sizes);
  rooms.on("Size", 1, count);
  rooms.copy(copied);
  rooms.measure(measured);
  rooms.carries<ReshapeOp>();
}

}  // namespace invar::compiler
