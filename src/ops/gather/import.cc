// Lowering of Gather, Scatter and their like, Compress and TensorScatter, and their type inference.
#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/builders/nonzero_indices.h"

namespace invar::compiler {
namespace {

// The indices (operand 1) as i64. Constant indices are checked against the dimension n.
Result<Value> checked_indices(NodeView& node, const Dim& n) {
  Value index = node.in(1);
  if (std::optional<std::string> bytes = node.constant_bytes(1); bytes && n.constant()) {
    const int size = element_of(index).isSignlessInteger(64) ? 8 : 4;
    for (int64_t i : integers_from_bytes(*bytes, size))
      if (i < -n.value || i >= n.value)
        return bad_input("index " + std::to_string(i) + " is outside a dimension of " +
                         std::to_string(n.value));
  }
  if (!element_of(index).isSignlessInteger(32)) return index;
  return node.make<CastOp>(index, {}, tensor_of(node.shape(1), node.builder().getI64Type()));
}
Result<int64_t> normalized_axis(NodeView& node) {
  INVAR_TRY(int64_t wanted, node.int_attr("axis", 0));
  return NodeView::normalize_axis(wanted, node.shape(0).size());
}

Status gather(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis"}));
  INVAR_TRY(int64_t axis, normalized_axis(node));
  INVAR_TRY(Value index, checked_indices(node, node.shape(0)[axis]));
  SmallVector<NamedAttribute> attrs;
  if (axis != 0) attrs.push_back(node.attr("axis", axis));
  INVAR_TRY(Value out, node.make<GatherOp>({node.in(0), index}, attrs));
  return node.replace(out);
}

Status gather_elements(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis"}));
  INVAR_TRY(int64_t axis, normalized_axis(node));
  INVAR_TRY(Value index, checked_indices(node, node.shape(0)[axis]));
  INVAR_TRY(Value out, node.make<GatherElementsOp>({node.in(0), index}, node.attr("axis", axis)));
  return node.replace(out);
}

Status gather_nd(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"batch_dims"}));
  INVAR_TRY(int64_t batch_dims, node.int_attr("batch_dims", 0));
  INVAR_TRY(Value out, node.make<GatherNdOp>({node.in(0), node.in(1)}, node.attr("batch_dims", batch_dims)));
  return node.replace(out);
}

Result<int64_t> parse_reduction(NodeView& node) {
  Attribute given = node.attribute("reduction");
  if (!given) return int64_t{0};
  auto text = dyn_cast<StringAttr>(given);
  SmallVector<llvm::StringRef> names;
  llvm::StringRef("none add mul min max").split(names, ' ');
  for (size_t i = 0; text && i < names.size(); ++i)
    if (text.getValue() == names[i]) return static_cast<int64_t>(i);
  return bad_input("attribute \"reduction\" is none of none, add, mul, min and max");
}

Status scatter_elements(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"axis", "reduction"}));
  INVAR_TRY(int64_t axis, normalized_axis(node));
  INVAR_TRY(int64_t reduction, parse_reduction(node));
  INVAR_TRY(Value index, checked_indices(node, node.shape(0)[axis]));
  INVAR_TRY(Value out,
            node.make<ScatterElementsOp>({node.in(0), index, node.in(2)},
                                         {node.attr("axis", axis), node.attr("reduction", reduction)}));
  return node.replace(out);
}

Status scatter_nd(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3, {"reduction"}));
  INVAR_TRY(int64_t reduction, parse_reduction(node));
  INVAR_TRY(Value out,
            node.make<ScatterNdOp>({node.in(0), node.in(1), node.in(2)}, node.attr("reduction", reduction)));
  return node.replace(out);
}

// The elements along an axis, or of the flattened operand, for which the condition is true.
Status compress(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"axis"}));
  const std::optional<std::string> condition = node.constant_bytes(1);
  Value x = node.in(0);
  int64_t axis = 0;
  if (node.attribute("axis")) {
    INVAR_TRY(axis, normalized_axis(node));
  } else {
    INVAR_TRY(x, flatten_to_1d(node, x));
  }
  SmallVector<NamedAttribute> attrs;
  if (axis != 0) attrs.push_back(node.attr("axis", axis));
  if (!condition) {
    if (node.shape(1).size() != 1 || !element_of(node.in(1)).isSignlessInteger(1))
      return bad_input("operand 1 is not a list of booleans");
    INVAR_TRY(const NonzeroIndices selected, nonzero_indices(node, node.in(1)));
    INVAR_TRY(Value out, node.make<GatherOp>({x, selected.index}, attrs));
    return node.replace(out);
  }
  const Dim length = shape_of(x.getType())[static_cast<size_t>(axis)];
  if (!length.constant()) return not_covered("dimension " + text_of(length) + " compressed");
  std::vector<int64_t> indices;
  for (size_t i = 0; i < condition->size(); ++i)
    if ((*condition)[i]) indices.push_back(static_cast<int64_t>(i));
  if (!indices.empty() && indices.back() >= length.value)
    return bad_input("a condition longer than the axis");
  INVAR_TRY(Value out, node.make<GatherOp>({x, node.constant(indices)}, attrs));
  return node.replace(out);
}

// Writes an update into a cache, for each batch element from its own start position on.
Status tensor_scatter(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"axis", "mode"}));
  INVAR_TRY(const int64_t wanted, node.int_attr("axis", -2));
  const Shape cache = node.shape(0), update = node.shape(1);
  INVAR_TRY(const int64_t axis, NodeView::normalize_axis(wanted, cache.size()));
  auto mode = dyn_cast_or_null<StringAttr>(node.attribute("mode"));
  if (mode && mode.getValue() != "linear" && mode.getValue() != "circular")
    return bad_input("attribute \"mode\" is neither linear nor circular");
  const auto at = static_cast<size_t>(axis);
  if (axis == 0 || update.size() != cache.size()) return bad_input("axis 0, or an update of another rank");
  if (!cache[at].constant() || !update[at].constant()) return not_covered("positions of an unknown number");
  if (update[at].value > cache[at].value) return bad_input("an update longer than the cache");
  for (size_t d = 0; d < cache.size(); ++d)
    if (d != at && !known_equal(cache[d], update[d]))
      return unequal_shapes({cache[d]}, {update[d]}, "cache and update differ beside the axis");
  Shape line(cache.size(), Dim::of(1)), start = line;
  line[at] = update[at], start[0] = cache[0];
  INVAR_TRY(Value position, iota_constant(node, update[at].value, line));
  if (node.has(2)) {
    if (node.shape(2) != Shape{cache[0]})
      return unequal_shapes(node.shape(2), {cache[0]}, "operand 2 is not one index for each element");
    INVAR_TRY(Value first, reshape(node, node.in(2), start));
    INVAR_TRY(position, node.make<AddOp>({first, position}));
  }
  if (mode && mode.getValue() == "circular") {
    INVAR_TRY(position, node.make<ModOp>({position, node.constant(Ints(cache[at].value))}));
  }
  INVAR_TRY(position, expand(node, position, update));
  INVAR_TRY(Value out,
            node.make<ScatterElementsOp>({node.in(0), position, node.in(1)},
                                         {node.attr("axis", axis), node.attr("reduction", int64_t{0})}));
  return node.replace(out);
}

// ---- type inference

// Checks that indices have x's rank and fit it on all other axes. Kernels check symbolic
// dimensions.
LogicalResult check_index_shape(std::optional<Location> loc, Value operand, Value indices, int64_t axis) {
  const Shape x = shape_of(operand.getType()), index = shape_of(indices.getType());
  if (x.size() != index.size()) return mismatch(loc, "operand and indices differ in rank");
  if (axis < 0 || axis >= static_cast<int64_t>(x.size()))
    return mismatch(loc, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(x.size()));
  for (size_t d = 0; d < x.size(); ++d) {
    if (static_cast<int64_t>(d) == axis || known_equal(x[d], index[d])) continue;
    if (!x[d].known() || !index[d].known()) return refuse(loc, "indices that cannot be shown to fit");
    if (x[d].constant() && index[d].constant() && index[d].value > x[d].value)
      return mismatch(loc, "indices are longer than the operand");
  }
  return success();
}

// The shape that index tuples gather; nullopt after a diagnostic.
std::optional<Shape> gathered_shape(std::optional<Location> loc, const Shape& x, const Shape& index,
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
      (void)unequal_dims(loc, x[d], index[d], "batches of operand and indices");
      return std::nullopt;
    }
  Shape shape(index.begin(), index.end() - 1);
  shape.insert(shape.end(), x.begin() + batch_dims + width, x.end());
  return shape;
}

LogicalResult check_update_type(std::optional<Location> loc, Value x, Value updates) {
  if (element_of(x) == element_of(updates)) return success();
  return mismatch(loc, "operand and updates of different element types");
}
LogicalResult check_reduction_type(std::optional<Location> loc, Value x, int64_t reduction) {
  Type t = element_of(x);
  if (reduction == 0 || t.isF32() || t.isF64() || t.isSignlessInteger(64) || t.isSignlessInteger(32))
    return success();
  return refuse(loc, "covered are updates that join in f32, f64, i64 and i32");
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
  if (failed(check_index_shape(loc, op.getX(), op.getIndices(), op.getAxis()))) return failure();
  out.push_back(tensor_of(index, element_of(op.getX())));
  return success();
}

LogicalResult GatherNdOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                           SmallVectorImpl<Type>& out) {
  std::optional<Shape> shape =
      gathered_shape(loc, shape_of(op.getX().getType()), shape_of(op.getIndices().getType()),
                     static_cast<int64_t>(op.getBatchDims()));
  if (!shape) return failure();
  out.push_back(tensor_of(*shape, element_of(op.getX())));
  return success();
}

LogicalResult ScatterElementsOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                                  SmallVectorImpl<Type>& out) {
  const Shape index = shape_of(op.getIndices().getType());
  if (failed(check_update_type(loc, op.getX(), op.getUpdates())) ||
      failed(check_reduction_type(loc, op.getX(), op.getReduction())) ||
      failed(check_index_shape(loc, op.getX(), op.getIndices(), op.getAxis())))
    return failure();
  const Shape updates = shape_of(op.getUpdates().getType());
  if (!may_be_equal(index, updates))
    return mismatch(loc, "indices " + text_of(index) + " and updates " + text_of(updates));
  out.push_back(op.getX().getType());
  return success();
}

LogicalResult ScatterNdOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                            SmallVectorImpl<Type>& out) {
  if (failed(check_update_type(loc, op.getX(), op.getUpdates())) ||
      failed(check_reduction_type(loc, op.getX(), op.getReduction())))
    return failure();
  std::optional<Shape> shape =
      gathered_shape(loc, shape_of(op.getX().getType()), shape_of(op.getIndices().getType()), 0);
  if (!shape) return failure();
  const Shape updates = shape_of(op.getUpdates().getType());
  if (!may_be_equal(*shape, updates))
    return mismatch(loc, "slices " + text_of(*shape) + " and updates " + text_of(updates));
  out.push_back(op.getX().getType());
  return success();
}

// Before opset 11 ScatterElements was called Scatter.
void import_gather(RuleRegistry& registry) {
  registry.moves_elements<GatherOp, GatherElementsOp, GatherNdOp>(/*selector=*/1);
  registry.add_rule("Gather", 1, gather);
  registry.add_rule("GatherElements", 11, gather_elements);
  registry.add_rule("GatherND", 11, gather_nd);
  registry.add_rule("Compress", 9, compress);
  registry.add_rule("TensorScatter", 24, tensor_scatter);
  registry.add_rule("Scatter", 9, scatter_elements, Widening::integers);
  registry.add_rule("ScatterElements", 11, scatter_elements, Widening::integers);
  registry.add_rule("ScatterND", 11, scatter_nd, Widening::integers);
}

}  // namespace invar::compiler
