// Lowering of Gather, Scatter and their like, Compress and TensorScatter, and their type inference.
#include "compiler/room_api.h"
#include "ops/gather/attributes.h"

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
Status check_index_shape(const Shape& x, const Shape& index, int64_t axis) {
  if (x.size() != index.size()) return bad_input("operand and indices differ in rank");
  INVAR_CHECK_OK(check_axis(axis, x));
  for (size_t d = 0; d < x.size(); ++d) {
    if (static_cast<int64_t>(d) == axis || known_equal(x[d], index[d])) continue;
    if (!x[d].known() || !index[d].known()) return not_covered("indices that cannot be shown to fit");
    if (x[d].constant() && index[d].constant() && index[d].value > x[d].value)
      return bad_input("indices are longer than the operand");
  }
  return {};
}

// The shape that index tuples gather.
Result<Shape> gathered_shape(InferredCall& in, int64_t batch_dims) {
  const Shape &x = in[0].shape, &index = in[1].shape;
  const int64_t rank = static_cast<int64_t>(x.size()), tuples = static_cast<int64_t>(index.size()) - 1;
  if (tuples < 0 || batch_dims < 0 || batch_dims > tuples || batch_dims > rank)
    return bad_input("batch_dims " + std::to_string(batch_dims) + " of operand and indices");
  if (!index.back().constant()) return not_covered("covered are tuples of constant length");
  const int64_t width = index.back().value;
  if (width < 1 || width > rank - batch_dims)
    return bad_input("tuples of " + std::to_string(width) + " indices for rank " + std::to_string(rank));
  for (size_t d = 0; d < static_cast<size_t>(batch_dims); ++d)
    if (!may_be_equal(x[d], index[d]))
      return in.unequal_dims(x[d], index[d], "batches of operand and indices");
  Shape shape(index.begin(), index.end() - 1);
  shape.insert(shape.end(), x.begin() + batch_dims + width, x.end());
  return shape;
}

// Checks the element types of the operand and its updates.
Status check_updates(const InferredCall& in, int64_t reduction) {
  const DType t = in[0].dtype;
  if (t != in[2].dtype) return bad_input("operand and updates of different element types");
  if (reduction == 0 || t == DType::f32 || t == DType::f64 || t == DType::i64 || t == DType::i32) return {};
  return not_covered("covered are updates that join in f32, f64, i64 and i32");
}

}  // namespace

Result<ValueType> infer_gather(InferredCall& in, const ops::GatherAttributes& a) {
  const Shape &table = in[0].shape, &index = in[1].shape;
  INVAR_CHECK_OK(check_axis(a.axis, table));
  Shape shape(table.begin(), table.begin() + a.axis);
  shape.insert(shape.end(), index.begin(), index.end());
  shape.insert(shape.end(), table.begin() + a.axis + 1, table.end());
  return ValueType{widened(in[0].dtype), shape};
}

Result<ValueType> infer_gather_elements(InferredCall& in, const ops::GatherElementsAttributes& a) {
  INVAR_CHECK_OK(check_index_shape(in[0].shape, in[1].shape, a.axis));
  return ValueType{in[0].dtype, in[1].shape};
}

Result<ValueType> infer_gather_nd(InferredCall& in, const ops::GatherNdAttributes& a) {
  INVAR_TRY(const Shape shape, gathered_shape(in, a.batch_dims));
  return ValueType{in[0].dtype, shape};
}

Result<ValueType> infer_scatter_elements(InferredCall& in, const ops::ScatterElementsAttributes& a) {
  INVAR_CHECK_OK(check_updates(in, a.reduction));
  INVAR_CHECK_OK(check_index_shape(in[0].shape, in[1].shape, a.axis));
  if (!may_be_equal(in[1].shape, in[2].shape))
    return bad_input("indices " + text_of(in[1].shape) + " and updates " + text_of(in[2].shape));
  return in[0];
}

Result<ValueType> infer_scatter_nd(InferredCall& in, const ops::ScatterNdAttributes& a) {
  INVAR_CHECK_OK(check_updates(in, a.reduction));
  INVAR_TRY(const Shape shape, gathered_shape(in, 0));
  if (!may_be_equal(shape, in[2].shape))
    return bad_input("slices " + text_of(shape) + " and updates " + text_of(in[2].shape));
  return in[0];
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
