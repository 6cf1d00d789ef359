#include <algorithm>

#include "ir/rules.h"

namespace invar::ir {
namespace {

Status to(Node& node, const Shape& shape) {
  if (shape == node.shape(0)) return node.replace(node.in(0));
  Type element = getElementTypeOrSelf(node.in(0).getType());
  INVAR_TRY(Value out, node.make<ReshapeOp>(node.in(0), {}, tensor_of(shape, element)));
  return node.replace(out);
}

// So many elements as one dimension.
std::optional<Extent> one_dimension(const Count& n) {
  if (n.symbols.empty()) return Extent::of(n.factor);
  if (n.factor != 1 || n.symbols.size() != 1) return std::nullopt;
  return Extent{ShapedType::kDynamic, n.symbols[0]};
}

// -1 stands for what is left: the elements of `from` over those of the rest, where that is one dimension.
Result<Extent> rest(const Shape& from, const Shape& others) {
  std::optional<Count> all = count_of(from), part = count_of(others);
  if (!all || !part) return not_covered("a dimension is unknown");
  for (const std::string& symbol : part->symbols) {
    auto at = std::find(all->symbols.begin(), all->symbols.end(), symbol);
    if (at == all->symbols.end()) return not_covered("-1 is not one dimension");
    all->symbols.erase(at);
  }
  if (part->factor == 0 || all->factor % part->factor)
    return bad_input("the sizes of operand and shape do not divide");
  all->factor /= part->factor;
  if (std::optional<Extent> e = one_dimension(*all)) return *e;
  return not_covered("-1 is not one dimension");
}

Status reshape(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"allowzero"}));
  INVAR_TRY(const int64_t zeros, node.i("allowzero", 0));
  INVAR_TRY(std::vector<int64_t> wanted, node.constants(1));
  Shape from = node.shape(0), shape, others;
  std::optional<size_t> open;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < -1) return bad_input("dimension " + std::to_string(wanted[i]));
    const bool kept = wanted[i] == 0 && !zeros;
    if (kept && i >= from.size()) return bad_input("0 stands for a dimension the operand does not have");
    if (wanted[i] == -1 && open) return bad_input("-1 twice");
    if (wanted[i] == -1) open = i;
    shape.push_back(kept ? from[i] : Extent::of(wanted[i]));
    if (wanted[i] != -1) others.push_back(shape.back());
  }
  if (open) {
    INVAR_TRY(shape[*open], rest(from, others));
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
  Shape to_shape;
  for (const Shape& part :
       {Shape(from.begin(), from.begin() + axis), Shape(from.begin() + axis, from.end())}) {
    const std::optional<Count> count = count_of(part);
    const std::optional<Extent> e = count ? one_dimension(*count) : std::nullopt;
    if (!e) return not_covered("dimensions of " + text_of(part) + " do not make one");
    to_shape.push_back(*e);
  }
  return to(node, to_shape);
}

Status unsqueeze(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(std::vector<int64_t> axes, node.constants(1));
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
  INVAR_CHECK_OK(node.expect(1, 2, {}));
  Shape from = node.shape(0);
  std::set<int64_t> at;
  if (node.has(1)) {
    INVAR_TRY(std::vector<int64_t> axes, node.constants(1));
    for (int64_t a : axes) {
      INVAR_TRY(int64_t axis, Node::axis(a, from.size()));
      at.insert(axis);
    }
  }
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    bool one = from[i] == Extent::of(1);
    if (!node.has(1) && !from[i].constant())
      return not_covered("it may or may not drop a symbolic dimension");
    if (at.count(static_cast<int64_t>(i)) && !one)
      return bad_input("axis " + std::to_string(i) + " is not 1");
    if (!(node.has(1) ? at.count(static_cast<int64_t>(i)) > 0 : one)) shape.push_back(from[i]);
  }
  return to(node, shape);
}

// Dimensions that are constants, of [start, end).
Result<std::vector<int64_t>> sizes_of(const Shape& shape, int64_t start, int64_t end) {
  const auto rank = static_cast<int64_t>(shape.size());
  auto place = [&](int64_t at) { return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank); };
  std::vector<int64_t> sizes;
  for (int64_t d = place(start); d < place(end); ++d) {
    if (!shape[static_cast<size_t>(d)].constant())
      return not_covered("dimension " + text_of(shape[static_cast<size_t>(d)]) +
                         " is not known when compiling");
    sizes.push_back(shape[static_cast<size_t>(d)].value);
  }
  return sizes;
}

Status sizes(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"start", "end"}));
  INVAR_TRY(int64_t start, node.i("start", 0));
  INVAR_TRY(int64_t end, node.i("end", INT64_MAX));
  INVAR_TRY(std::vector<int64_t> list, sizes_of(node.shape(0), start, end));
  return node.replace(node.constant(list));
}

Status count(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  INVAR_CHECK_OK(sizes_of(node.shape(0), 0, INT64_MAX));
  const std::optional<Count> n = count_of(node.shape(0));
  if (!n) return bad_input("more elements than can be counted");
  INVAR_TRY(Value out, node.make<ReshapeOp>(node.constant(llvm::ArrayRef<int64_t>(n->factor)), {},
                                            tensor_of({}, node.build().getI64Type())));
  return node.replace(out);
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
  std::optional<Count> from = count_of(shape_of(getX().getType())), to = count_of(shape_of(getType()));
  if (from && from == to) return success();
  return emitOpError("does not keep the number of elements");
}

LogicalResult BitcastOp::verify() {
  if (shape_of(getX().getType()) == shape_of(getType())) return success();
  return emitOpError("changes the shape");
}

void import_reshape(Rooms& rooms) {
  rooms.on("Reshape", 5, reshape);
  rooms.on("Flatten", 9, flatten);
  rooms.on("Unsqueeze", 13, unsqueeze);
  rooms.on("Squeeze", 13, squeeze);
  rooms.on("BitCast", 26, bit_cast);
  rooms.on("Identity", 1, identity);
  rooms.on("Dropout", 7, dropout);
  rooms.on("Shape", 1, sizes);
  rooms.on("Size", 1, count);
  rooms.copy(copied);
}

}  // namespace invar::ir
