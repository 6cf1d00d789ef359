#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/builders/compact.h"

namespace invar::compiler {
namespace {

// Operand 1, widened where it is not i64. What is known of it must name places in a dimension of `n`.
Result<Value> indices(Node& node, const Extent& n) {
  Value index = node.in(1);
  if (std::optional<std::string> bytes = node.bytes(1); bytes && n.constant()) {
    const int size = element_of(index).isSignlessInteger(64) ? 8 : 4;
    for (int64_t i : integers_from_hex(hex_from_bytes(*bytes), size))
      if (i < -n.value || i >= n.value)
        return bad_input("index " + std::to_string(i) + " is outside a dimension of " +
                         std::to_string(n.value));
  }
  if (!element_of(index).isSignlessInteger(32)) return index;
  return node.make<CastOp>(index, {}, tensor_of(node.shape(1), node.build().getI64Type()));
}
Result<int64_t> axis_of(Node& node) {
  INVAR_TRY(int64_t wanted, node.i("axis", 0));
  return Node::axis(wanted, node.shape(0).size());
}

Status gather(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis"}));
  INVAR_TRY(int64_t axis, axis_of(node));
  INVAR_TRY(Value index, indices(node, node.shape(0)[axis]));
  SmallVector<NamedAttribute> attrs;
  if (axis != 0) attrs.push_back(node.attr("axis", axis));
  INVAR_TRY(Value out, node.make<GatherOp>({node.in(0), index}, attrs));
  return node.replace(out);
}

Status gather_elements(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis"}));
  INVAR_TRY(int64_t axis, axis_of(node));
  INVAR_TRY(Value index, indices(node, node.shape(0)[axis]));
  INVAR_TRY(Value out, node.make<GatherElementsOp>({node.in(0), index}, node.attr("axis", axis)));
  return node.replace(out);
}

Status gather_nd(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"batch_dims"}));
  INVAR_TRY(int64_t batch_dims, node.i("batch_dims", 0));
  INVAR_TRY(Value out, node.make<GatherNdOp>({node.in(0), node.in(1)}, node.attr("batch_dims", batch_dims)));
  return node.replace(out);
}

Result<int64_t> reduction_of(Node& node) {
  Attribute given = node.attribute("reduction");
  if (!given) return int64_t{0};
  auto text = dyn_cast<StringAttr>(given);
  SmallVector<llvm::StringRef> names;
  llvm::StringRef("none add mul min max").split(names, ' ');
  for (size_t i = 0; text && i < names.size(); ++i)
    if (text.getValue() == names[i]) return static_cast<int64_t>(i);
  return bad_input("attribute \"reduction\" is none of none, add, mul, min and max");
}

Status scatter_elements(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"axis", "reduction"}));
  INVAR_TRY(int64_t axis, axis_of(node));
  INVAR_TRY(int64_t reduction, reduction_of(node));
  INVAR_TRY(Value index, indices(node, node.shape(0)[axis]));
  INVAR_TRY(Value out,
            node.make<ScatterElementsOp>({node.in(0), index, node.in(2)},
                                         {node.attr("axis", axis), node.attr("reduction", reduction)}));
  return node.replace(out);
}

Status scatter_nd(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"reduction"}));
  INVAR_TRY(int64_t reduction, reduction_of(node));
  INVAR_TRY(Value out,
            node.make<ScatterNdOp>({node.in(0), node.in(1), node.in(2)}, node.attr("reduction", reduction)));
  return node.replace(out);
}

// The elements along an axis, or of all in one row, that a condition names.
Status compress(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis"}));
  const std::optional<std::string> condition = node.bytes(1);
  Value x = node.in(0);
  int64_t axis = 0;
  if (node.attribute("axis")) {
    INVAR_TRY(axis, axis_of(node));
  } else {
    INVAR_TRY(x, flattened(node, x));
  }
  SmallVector<NamedAttribute> attrs;
  if (axis != 0) attrs.push_back(node.attr("axis", axis));
  if (!condition) {
    if (node.shape(1).size() != 1 || !element_of(node.in(1)).isSignlessInteger(1))
      return bad_input("operand 1 is not a list of booleans");
    INVAR_TRY(const Places places, places_of(node, node.in(1)));
    INVAR_TRY(Value out, node.make<GatherOp>({x, places.index}, attrs));
    return node.replace(out);
  }
  const Extent length = shape_of(x.getType())[static_cast<size_t>(axis)];
  if (!length.constant()) return not_covered("dimension " + text_of(length) + " compressed");
  std::vector<int64_t> places;
  for (size_t i = 0; i < condition->size(); ++i)
    if ((*condition)[i]) places.push_back(static_cast<int64_t>(i));
  if (!places.empty() && places.back() >= length.value) return bad_input("a condition longer than the axis");
  INVAR_TRY(Value out, node.make<GatherOp>({x, node.constant(places)}, attrs));
  return node.replace(out);
}

// An update of some positions of a cache, for each element of the leading axis from its own position on.
Status tensor_scatter(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "mode"}));
  INVAR_TRY(const int64_t wanted, node.i("axis", -2));
  const Shape cache = node.shape(0), update = node.shape(1);
  INVAR_TRY(const int64_t axis, Node::axis(wanted, cache.size()));
  auto mode = dyn_cast_or_null<StringAttr>(node.attribute("mode"));
  if (mode && mode.getValue() != "linear" && mode.getValue() != "circular")
    return bad_input("attribute \"mode\" is neither linear nor circular");
  const auto at = static_cast<size_t>(axis);
  if (axis == 0 || update.size() != cache.size()) return bad_input("axis 0, or an update of another rank");
  if (!cache[at].constant() || !update[at].constant()) return not_covered("positions of an unknown number");
  if (update[at].value > cache[at].value) return bad_input("an update longer than the cache");
  for (size_t d = 0; d < cache.size(); ++d)
    if (d != at && !same(cache[d], update[d]))
      return unequal({cache[d]}, {update[d]}, "cache and update differ beside the axis");
  Shape line(cache.size(), Extent::of(1)), start = line;
  line[at] = update[at], start[0] = cache[0];
  INVAR_TRY(Value place, counted(node, update[at].value, line));
  if (node.has(2)) {
    if (node.shape(2) != Shape{cache[0]})
      return unequal(node.shape(2), {cache[0]}, "operand 2 is not one index for each element");
    INVAR_TRY(Value first, shaped(node, node.in(2), start));
    INVAR_TRY(place, node.make<AddOp>({first, place}));
  }
  if (mode && mode.getValue() == "circular") {
    INVAR_TRY(place, node.make<ModOp>({place, node.constant(Sizes(cache[at].value))}));
  }
  INVAR_TRY(place, spread(node, place, update));
  INVAR_TRY(Value out,
            node.make<ScatterElementsOp>({node.in(0), place, node.in(1)},
                                         {node.attr("axis", axis), node.attr("reduction", int64_t{0})}));
  return node.replace(out);
}

// ---- shapes

// Indices of x's rank that fit beside the axis. Of open dimensions kernels check it.
LogicalResult fits_beside(std::optional<Location> loc, Value operand, Value indices, int64_t axis) {
  const Shape x = shape_of(operand.getType()), index = shape_of(indices.getType());
  if (x.size() != index.size()) return mismatch(loc, "operand and indices differ in rank");
  if (axis < 0 || axis >= static_cast<int64_t>(x.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(x.size()));
  for (size_t d = 0; d < x.size(); ++d) {
    if (static_cast<int64_t>(d) == axis || same(x[d], index[d])) continue;
    if (!x[d].known() || !index[d].known()) return refuse(loc, "indices that cannot be shown to fit");
    if (x[d].constant() && index[d].constant() && index[d].value > x[d].value)
      return mismatch(loc, "indices are longer than the operand");
  }
  return success();
}

// The shape of the slices that tuples of indices name.
std::optional<Shape> slices(std::optional<Location> loc, const Shape& x, const Shape& index,
                            int64_t batch_dims) {
  const int64_t rank = static_cast<int64_t>(x.size()), tuples = static_cast<int64_t>(index.size()) - 1;
  if (tuples < 0 || batch_dims < 0 || batch_dims > tuples || batch_dims > rank) {
    (void)mismatch(loc, "batch_dims " + std::to_string(batch_dims) + " of operand and indices");
    return std::nullopt;
  }
  if (!index.back().constant()) {
    (void)refuse(loc, "covered are tuples of constant length");
    return std::nullopt;
  }
  const int64_t width = index.back().value;
  if (width < 1 || width > rank - batch_dims) {
    (void)mismatch(loc, "tuples of " + std::to_string(width) + " indices for rank " + std::to_string(rank));
    return std::nullopt;
  }
  for (int64_t d = 0; d < batch_dims; ++d)
    if (!may_be_equal(x[d], index[d])) {
      (void)differ(loc, x[d], index[d], "batches of operand and indices");
      return std::nullopt;
    }
  Shape shape(index.begin(), index.end() - 1);
  shape.insert(shape.end(), x.begin() + batch_dims + width, x.end());
  return shape;
}

LogicalResult same_type(std::optional<Location> loc, Value x, Value updates) {
  if (element_of(x) == element_of(updates)) return success();
  return mismatch(loc, "operand and updates of different element types");
}
LogicalResult joins(std::optional<Location> loc, Value x, int64_t reduction) {
  Type t = element_of(x);
  if (reduction == 0 || t.isF32() || t.isSignlessInteger(64) || t.isSignlessInteger(32)) return success();
  return refuse(loc, "covered are updates that join in f32, i64 and i32");
}

}  // namespace

LogicalResult GatherOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                         SmallVectorImpl<Type>& out) {
  Shape table = shape_of(op.getTable().getType()), index = shape_of(op.getIndices().getType());
  const int64_t axis = op.getAxis().value_or(0);
  if (axis < 0 || axis >= static_cast<int64_t>(table.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(table.size()));
  Shape shape(table.begin(), table.begin() + axis);
  shape.insert(shape.end(), index.begin(), index.end());
  shape.insert(shape.end(), table.begin() + axis + 1, table.end());
  Type t = element_of(op.getTable());
  out.push_back(tensor_of(shape, t.isBF16() || t.isF16() ? Float32Type::get(context) : t));
  return success();
}

LogicalResult GatherElementsOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                                 SmallVectorImpl<Type>& out) {
  Shape index = shape_of(op.getIndices().getType());
  if (failed(fits_beside(loc, op.getX(), op.getIndices(), op.getAxis()))) return failure();
  out.push_back(tensor_of(index, element_of(op.getX())));
  return success();
}

LogicalResult GatherNdOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                           SmallVectorImpl<Type>& out) {
  std::optional<Shape> shape = slices(loc, shape_of(op.getX().getType()), shape_of(op.getIndices().getType()),
                                      static_cast<int64_t>(op.getBatchDims()));
  if (!shape) return failure();
  out.push_back(tensor_of(*shape, element_of(op.getX())));
  return success();
}

LogicalResult ScatterElementsOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                                  SmallVectorImpl<Type>& out) {
  const Shape index = shape_of(op.getIndices().getType());
  if (failed(same_type(loc, op.getX(), op.getUpdates())) ||
      failed(joins(loc, op.getX(), op.getReduction())) ||
      failed(fits_beside(loc, op.getX(), op.getIndices(), op.getAxis())))
    return failure();
  const Shape updates = shape_of(op.getUpdates().getType());
  if (!may_be_equal(index, updates))
    return mismatch(loc, "indices " + text_of(index) + " and updates " + text_of(updates));
  out.push_back(op.getX().getType());
  return success();
}

LogicalResult ScatterNdOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                            SmallVectorImpl<Type>& out) {
  if (failed(same_type(loc, op.getX(), op.getUpdates())) || failed(joins(loc, op.getX(), op.getReduction())))
    return failure();
  std::optional<Shape> shape =
      slices(loc, shape_of(op.getX().getType()), shape_of(op.getIndices().getType()), 0);
  if (!shape) return failure();
  const Shape updates = shape_of(op.getUpdates().getType());
  if (!may_be_equal(*shape, updates))
    return mismatch(loc, "slices " + text_of(*shape) + " and updates " + text_of(updates));
  out.push_back(op.getX().getType());
  return success();
}

// Scatter is what ScatterElements was called before opset 11.
void import_gather(Rooms& rooms) {
  rooms.carries<GatherOp, GatherElementsOp, GatherNdOp>();
  rooms.on("Gather", 1, gather);
  rooms.on("GatherElements", 11, gather_elements);
  rooms.on("GatherND", 11, gather_nd);
  rooms.on("Compress", 9, compress);
  rooms.on("TensorScatter", 24, tensor_scatter);
  rooms.on("Scatter", 9, scatter_elements, Widens::integers);
  rooms.on("ScatterElements", 11, scatter_elements, Widens::integers);
  rooms.on("ScatterND", 11, scatter_nd, Widens::integers);
}

}  // namespace invar::compiler
