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
  INVAR_CHECK_OK(node.only("allowzero", int64_t{0}));
  INVAR_TRY(std::vector<int64_t> wanted, node.constants(1));
  Shape from = node.shape(0), shape, others;
  std::optional<size_t> open;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < -1) return bad_input("dimension " + std::to_string(wanted[i]));
    if (wanted[i] == 0 && i >= from.size())
      return bad_input("0 stands for a dimension the operand does not have");
    if (wanted[i] == -1 && open) return bad_input("-1 twice");
    if (wanted[i] == -1) open = i;
    shape.push_back(wanted[i] == 0 ? from[i] : Extent::of(wanted[i]));
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

void import_reshape(Rooms& rooms) {
  rooms.on("Reshape", 5, reshape);
  rooms.on("Flatten", 9, flatten);
  rooms.on("Unsqueeze", 13, unsqueeze);
  rooms.on("Squeeze", 13, squeeze);
  rooms.on("Identity", 1, identity);
}

}  // namespace invar::ir
