// Lowering of Reshape, Squeeze, Shape and their like, and the operations that compute dimension
// expressions at run time.
#include <algorithm>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Status reshape_to(NodeView& node, const Shape& shape) {
  if (shape == node.shape(0)) return node.replace(node.in(0));
  INVAR_TRY(Value out, reshape(node, node.in(0), shape));
  return node.replace(out);
}

// The dimension -1: the elements of `from` divided by those of the other dimensions.
Result<Dim> inferred_dim(NodeView& node, const Shape& from, const Shape& others) {
  const std::optional<DimExpr> all = element_count(from), part = element_count(others);
  if (!all || !part) return not_covered("a dimension is unknown");
  if (const std::optional<DimExpr> e = exact_div(*all, *part)) return Dim::of(*e);
  // Divides by a number and by symbols that all terms have. The quotient may round down: the kernel
  // counts the elements.
  if (part->terms().size() == 1 && !part->constant()) {
    const auto& [factors, times] = *part->terms().begin();
    DimExpr named = 1;
    for (const DimExpr::Factor& factor : factors) named = product(named, DimExpr(factor)).value_or(0);
    if (const std::optional<DimExpr> kept = exact_div(*all, named))
      if (const std::optional<DimExpr> e = floor_div(*kept, times)) return Dim::of(*e);
  } else if (part->constant().value_or(0) > 0 && !all->constant()) {
    if (const std::optional<DimExpr> e = floor_div(*all, *part->constant())) return Dim::of(*e);
  }
  if (all->constant() && part->constant()) return bad_input("the sizes of operand and shape do not divide");
  // The run checks whether they divide.
  INVAR_TRY(Value by, node.make<MaxOp>({node.size_tensor(*part, int64_t{1}), node.constant(Ints(1))}));
  INVAR_TRY(Value left, node.make<DivOp>({node.size_tensor(*all, int64_t{1}), by}));
  return Dim::of(node.bind_dim(left, 0));
}

// A shape of which no element is known: 0 and -1 are resolved at run time.
Status reshape_dynamic(NodeView& node, int64_t zeros) {
  const Shape from = node.shape(0), list = node.shape(1);
  const int64_t rank = list.empty() ? 1 : list[0].value;
  INVAR_TRY(Value wanted, reshape(node, node.in(1), {Dim::of(rank)}));
  const Value zero_size = node.constant(Ints(0)), inferred = node.constant(Ints(-1));
  std::vector<DimExpr> kept;
  for (size_t d = 0; d < static_cast<size_t>(rank);
       ++d)  // -2, an error: 0 refers to a dimension that the operand does not have
    kept.push_back(d < from.size() ? *dim_expr_of(from[d]) : DimExpr(-2));
  if (!zeros) {
    INVAR_TRY(Value zero, node.make<EqualOp>({wanted, zero_size}));
    INVAR_TRY(wanted, node.make<WhereOp>({zero, node.size_tensor(kept, rank), wanted}));
  }
  // The size for -1: all elements over the product of the others, which is minus the product of the
  // list.
  const std::optional<DimExpr> all = element_count(from);
  if (!all) return not_covered("a dimension is unknown");
  INVAR_TRY(Value product,
            node.make<ReduceProdOp>(wanted, {node.attr("axes", Ints(0)), node.attr("keepdims", int64_t{1})}));
  INVAR_TRY(product, node.make<AbsOp>(product));
  INVAR_TRY(product, node.make<MaxOp>({product, node.constant(Ints(1))}));
  INVAR_TRY(Value rest, node.make<DivOp>({node.size_tensor(*all, int64_t{1}), product}));
  INVAR_TRY(Value is_open, node.make<EqualOp>({wanted, inferred}));
  INVAR_TRY(wanted, node.make<WhereOp>({is_open, rest, wanted}));
  Shape shape;
  for (int64_t d = 0; d < rank; ++d) shape.push_back(Dim::of(node.bind_dim(wanted, d)));
  return reshape_to(node, shape);
}

// zeros: 0 is a size, not the dimension of the operand.
Status reshape_to_list(NodeView& node, llvm::ArrayRef<DimExpr> wanted, bool zeros) {
  Shape from = node.shape(0), shape, others;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].constant().value_or(0) < -1) return bad_input("dimension " + text_of(wanted[i]));
    const bool kept = wanted[i] == 0 && !zeros;
    if (kept && i >= from.size()) return bad_input("0 stands for a dimension the operand does not have");
    if (wanted[i] == -1 && inferred) return bad_input("-1 twice");
    if (wanted[i] == -1) inferred = i;
    shape.push_back(kept ? from[i] : Dim::of(wanted[i]));
    if (wanted[i] != -1) others.push_back(shape.back());
  }
  if (inferred) {
    INVAR_TRY(shape[*inferred], inferred_dim(node, from, others));
  }
  return reshape_to(node, shape);
}

// The shape is an attribute before opset 5, then an operand.
Status reshape(NodeView& node) {
  if (node.version() < 5) {
    INVAR_CHECK_OK(node.expect(1, 1, {"shape"}));
    INVAR_TRY(const std::vector<int64_t> list, node.ints_attr("shape"));
    return reshape_to_list(node, std::vector<DimExpr>(list.begin(), list.end()), false);
  }
  INVAR_CHECK_OK(node.expect(2, 2, {"allowzero"}));
  INVAR_TRY(const int64_t zeros, node.int_attr("allowzero", 0));
  INVAR_TRY(const auto known, node.known_dim_exprs(1));
  if (element_of(node.in(1)).isSignlessInteger(64) &&
      llvm::none_of(known, [](auto& k) { return k.has_value(); }) && !known.empty())
    return reshape_dynamic(node, zeros);
  INVAR_TRY(const std::vector<DimExpr> wanted, node.dim_exprs(1));
  return reshape_to_list(node, wanted, zeros != 0);
}

Status flatten(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"axis"}));
  const Shape from = node.shape(0);
  INVAR_TRY(int64_t axis, node.int_attr("axis", 1));
  if (axis != static_cast<int64_t>(from.size())) {
    INVAR_TRY(axis, NodeView::normalize_axis(axis, from.size()));
  }
  INVAR_TRY(const Shape matrix, flatten_to_matrix(from, axis));
  return reshape_to(node, matrix);
}

// The axes: an attribute before opset 13, then an operand.
Result<std::vector<int64_t>> axes_operand(NodeView& node, unsigned least) {
  if (node.version() < 13) {
    INVAR_CHECK_OK(node.expect(1, 1, {"axes"}));
    return node.ints_attr("axes");
  }
  INVAR_CHECK_OK(node.expect(least, 2, {}));
  return node.has(1) ? node.constant_ints(1) : std::vector<int64_t>{};
}

Status unsqueeze(NodeView& node) {
  INVAR_TRY(std::vector<int64_t> axes, axes_operand(node, 2));
  Shape from = node.shape(0);
  std::set<int64_t> at;
  for (int64_t a : axes) {
    INVAR_TRY(int64_t axis, NodeView::normalize_axis(a, from.size() + axes.size()));
    if (!at.insert(axis).second) return bad_input("axis " + std::to_string(a) + " twice");
  }
  for (int64_t axis : at) from.insert(from.begin() + axis, Dim::of(1));
  return reshape_to(node, from);
}

Status squeeze(NodeView& node) {
  INVAR_TRY(const std::vector<int64_t> axes, axes_operand(node, 1));
  const bool named = node.version() < 13 ? node.attribute("axes") != nullptr : node.has(1);
  Shape from = node.shape(0);
  std::set<int64_t> at;
  for (int64_t a : axes) {
    INVAR_TRY(int64_t axis, NodeView::normalize_axis(a, from.size()));
    at.insert(axis);
  }
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    bool one = from[i] == Dim::of(1);
    if (!named && !from[i].constant())
      return not_covered("it may or may not drop a symbolic dimension, " + text_of(from[i]));
    if (at.count(static_cast<int64_t>(i)) && !one && !node.is_data_dependent(from[i])) {
      if (from[i].constant()) return bad_input("axis " + std::to_string(i) + " is not 1");
      const bool asked = !equality_constraint(from[i], Dim::of(1)) && may_be_equal(from[i], Dim::of(1));
      if (!asked) {
        INVAR_CHECK_OK(node.require_equal(from[i], Dim::of(1), "axis " + std::to_string(i)));
      }
    }
    if (!(named ? at.count(static_cast<int64_t>(i)) > 0 : one)) shape.push_back(from[i]);
  }
  return reshape_to(node, shape);
}

// Shape: the dimensions of [start, end).
Status shape_op(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"start", "end"}));
  INVAR_TRY(int64_t start, node.int_attr("start", 0));
  INVAR_TRY(int64_t end, node.int_attr("end", INT64_MAX));
  const Shape shape = node.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank); };
  std::vector<DimExpr> list;
  for (int64_t d = clamp(start); d < clamp(end); ++d) {
    const std::optional<DimExpr> size = dim_expr_of(shape[static_cast<size_t>(d)]);
    if (!size) return not_covered("a dimension is unknown");
    list.push_back(*size);
  }
  return node.replace(node.size_tensor(list, static_cast<int64_t>(list.size())));
}

Status size_op(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  const std::optional<DimExpr> n = element_count(node.shape(0));
  if (!n) return not_covered("a dimension is unknown, or there are more elements than can be counted");
  return node.replace(node.size_tensor(*n, {}));
}

// Emits the operations that compute a dimension expression. A symbol of an input is a sum of as
// many ones; a quotient rounds down whatever its sign.
class DimExprEmitter {
 public:
  DimExprEmitter(OpBuilder& build, Location loc) : build_(build), loc_(loc) {}
  Value of(const DimExpr& p) {
    Value total;
    for (const auto& [monomial, times] : p.terms()) {
      Value term = times != 1 || monomial.empty() ? number(times) : Value();
      for (const DimExpr::Factor& factor : monomial) {
        const auto* parts = factor.composite();
        Value next = !parts           ? named(factor.text())
                     : parts->divisor ? quotient(of(parts->first), number(parts->divisor))
                                      : emit<MinOp>({of(parts->first), of(parts->second)});
        term = term ? emit<MulOp>({term, next}) : next;
      }
      total = total ? emit<AddOp>({total, term}) : term;
    }
    return total ? total : number(0);
  }
  template <class Op>
  Value emit(ValueRange operands, llvm::ArrayRef<NamedAttribute> attrs = {}, Type type = {}) {
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
      bind->setAttr(kMaterialized, build_.getUnitAttr());
      const auto one = RankedTensorType::get(1, build_.getI64Type());
      if (cast<RankedTensorType>(bind.getValue().getType()).getRank() == 0)
        return emit<ReshapeOp>(bind.getValue(), {}, one);
      const int64_t at = bind.getElement();
      return emit<SliceOp>(bind.getValue(),
                           {build_.getNamedAttr("starts", build_.getDenseI64ArrayAttr(at)),
                            build_.getNamedAttr("steps", build_.getDenseI64ArrayAttr(1))},
                           one);
    }
    Value ones =
        emit<ExpandOp>(number(1), {}, tensor_of({Dim::of(DimExpr::symbol(name))}, build_.getI64Type()));
    return emit<ReduceSumOp>(ones,
                             {build_.getNamedAttr("axes", build_.getDenseI64ArrayAttr({0})),
                              build_.getNamedAttr("keepdims", build_.getI64IntegerAttr(1))},
                             RankedTensorType::get(1, build_.getI64Type()));
  }
  Value quotient(Value a, Value by) { return emit<DivOp>({emit<SubOp>({a, emit<ModOp>({a, by})}), by}); }
  OpBuilder& build_;
  Location loc_;
};

Value materialize_dims(OpBuilder& build, ReproSizesOp sizes) {
  DimExprEmitter emitter(build, sizes.getLoc());
  SmallVector<Value> parts;
  for (const std::optional<DimExpr>& dim : sizes.getSizes().getDims()) parts.push_back(emitter.of(*dim));
  Type element = build.getI64Type();
  Value all = parts[0];
  if (parts.size() > 1)
    all = emitter.emit<ConcatOp>(parts, build.getNamedAttr("axis", build.getI64IntegerAttr(0)),
                                 RankedTensorType::get(static_cast<int64_t>(parts.size()), element));
  if (all.getType() == sizes.getType()) return all;
  return emitter.emit<ReshapeOp>(all, {}, sizes.getType());
}

// In inference dropout is the identity, and its mask all ones, before opset 10 of the operand's
// type. Before opset 7 a node without is_test trains.
Status dropout(NodeView& node) {
  if (node.version() < 7) {
    INVAR_CHECK_OK(node.expect(1, 1, {"is_test", "ratio"}, 2));
    INVAR_TRY(const int64_t is_test, node.int_attr("is_test", 0));
    INVAR_TRY(const float ratio, node.float_attr("ratio", 0.5f));
    if (!is_test && ratio != 0) return not_covered("training draws random numbers: \"is_test\" is 0");
  } else if (node.version() < 12) {
    INVAR_CHECK_OK(node.expect(1, 1, {"ratio"}, 2));
  } else {
    INVAR_CHECK_OK(node.expect(1, 3, {"seed"}, 2));
  }
  if (node.has(2)) {
    const std::optional<std::string> training = node.constant_bytes(2);
    if (!training) return node.not_constant(2);
    const std::optional<std::string> ratio = node.has(1) ? node.constant_bytes(1) : std::nullopt;
    const bool all = ratio && ratio->find_first_not_of('\0') == ratio->npos;
    if (*training != std::string(1, '\0') && !all) return not_covered("training draws random numbers");
  }
  INVAR_TRY(Value mask, node.make<ExpandOp>(node.constant(llvm::StringRef("\1"), DType::boolean), {},
                                            tensor_of(node.shape(0), node.builder().getI1Type())));
  if (node.version() < 10) {
    INVAR_TRY(mask, cast_to(node, mask, element_of(node.in(0))));
  }
  node.replace(1, mask);
  return node.replace(node.in(0));
}

Value copy_value(OpBuilder& build, Value x) {
  return make_op(build, x.getLoc(), ReshapeOp::getOperationName(), x, {}, x.getType())->getResult(0);
}

Status bit_cast(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"to"}));
  INVAR_TRY(int64_t code, node.int_attr("to", 0));
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

Status identity(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  return node.replace(node.in(0));
}

}  // namespace

LogicalResult ReshapeOp::verify() {
  if (getElementTypeOrSelf(getX().getType()) != getElementTypeOrSelf(getType()))
    return emitOpError("changes the element type");
  std::optional<DimExpr> from = element_count(shape_of(getX().getType())),
                         to = element_count(shape_of(getType()));
  if (from && from == to) return success();
  // Equal for some sizes: checked at run time.
  const std::optional<DimExpr> gap = from && to ? difference(*from, *to) : std::nullopt;
  if (gap && may_be_zero(*gap)) return success();
  // A data-dependent dimension may be 0.
  Block* block = (*this)->getBlock();
  if (gap && !gap->constant() && (may_be_data_dependent(block, *from) || may_be_data_dependent(block, *to)))
    return success();
  return emitOpError(gap ? "does not keep the number of elements" : "has more elements than can be counted");
}

LogicalResult BitcastOp::verify() {
  if (shape_of(getX().getType()) == shape_of(getType())) return success();
  return emitOpError("changes the shape");
}

void import_reshape(RuleRegistry& registry) {
  registry.add_rule("Reshape", 1, reshape);
  registry.add_rule("Flatten", 1, flatten);
  registry.add_rule("Unsqueeze", 1, unsqueeze);
  registry.add_rule("Squeeze", 1, squeeze);
  registry.add_rule("BitCast", 26, bit_cast);
  registry.add_rule("Identity", 1, identity);
  registry.add_rule("Dropout", 1, dropout, "TR*>T*");
  registry.add_rule("Shape", 1, shape_op);
  registry.add_rule("Size", 1, size_op);
  registry.copy_value(copy_value);
  registry.materialize_dims(materialize_dims);
  registry.moves_elements<ReshapeOp>();
}

}  // namespace invar::compiler
