// Lowering of NonMaxSuppression, and the type inference of repro.nms.
#include <algorithm>

#include "compiler/room_api.h"
#include "ops/nms/attributes.h"

namespace invar::compiler {
namespace {

// compact_selection of indices that are known at run time only.
Status compact_selection_dynamic(NodeView& node, Value indices) {
  const Shape shape = shape_of(indices.getType());
  INVAR_TRY(Value boxes, flatten_to_1d(node, indices));
  INVAR_TRY(Value is_box, node.make<GreaterEqualOp>({boxes, node.constant(Ints(0))}));
  INVAR_TRY(const NonzeroIndices selected, nonzero_indices(node, is_box));
  const Value slots = node.size_tensor(*dim_expr_of(shape[2]), int64_t{1}),
              classes = node.size_tensor(*dim_expr_of(shape[1]), int64_t{1});
  INVAR_TRY(Value row, node.make<DivOp>({selected.index, slots}));
  SmallVector<Value> columns(3);
  INVAR_TRY(columns[0], node.make<DivOp>({row, classes}));
  INVAR_TRY(columns[1], node.make<ModOp>({row, classes}));
  INVAR_TRY(columns[2], node.make<GatherOp>({boxes, selected.index}));
  for (Value& column : columns) {
    INVAR_TRY(column, reshape(node, column, {selected.count, Dim::of(1)}));
  }
  INVAR_TRY(Value out, concat(node, columns, 1));
  return node.replace(out);
}

// Indices [B, C, K], where -1 is an empty slot -> rows [M, 3] of batch, class and box.
Status compact_selection(NodeView& node, Value indices) {
  auto known = indices.getDefiningOp<ReproWeightOp>();
  if (!known || !known.getData()) return compact_selection_dynamic(node, indices);
  const Shape shape = shape_of(indices.getType());
  const int64_t classes = shape[1].value, k = shape[2].value;
  std::vector<int64_t> rows;
  int64_t at = 0;
  for (int64_t box : integers_from_bytes(std::string_view(*known.getData()), 8)) {
    const int64_t row = at++ / k;
    if (box >= 0) rows.insert(rows.end(), {row / classes, row % classes, box});
  }
  const auto count = static_cast<int64_t>(rows.size() / 3);
  return node.replace(node.constant(bytes_of(rows, 8), DType::i64, {count, 3}));
}

Status non_max_suppression(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 5, {"center_point_box"}));
  INVAR_TRY(const int64_t centred, node.int_attr("center_point_box", 0));
  SmallVector<NamedAttribute> attrs = {node.attr("center_point_box", int64_t{centred != 0})};
  // Without max_output_boxes_per_class no box is selected.
  Value max_boxes = node.has(2) ? node.in(2) : node.constant(std::vector<int64_t>{0});
  Value overlap = node.has(3) ? node.in(3) : node.constant(0.0f);
  SmallVector<Value> operands = {node.in(0), node.in(1), max_boxes, overlap};
  if (node.has(4)) operands.push_back(node.in(4));
  // There are as many slots as may be selected.
  const Shape scores = node.shape(1);
  const Result<int64_t> number = constant_int(node, 2, 0);
  if (number && scores.size() == 3 && scores[2].constant())
    attrs.push_back(node.attr("k", std::clamp<int64_t>(*number, 0, scores[2].value)));
  INVAR_TRY(Value indices, node.make<NmsOp>(operands, attrs));
  return compact_selection(node, indices);
}

}  // namespace

Result<ValueType> infer_nms(InferredCall& in, const ops::NmsAttributes&) {
  const Shape& boxes = in[0].shape;
  Shape scores = in[1].shape;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != Dim::of(4))
    return bad_input("boxes of shape " + text_of(boxes) + " and scores of shape " + text_of(scores) +
                     " are not [B, N, 4] and [B, C, N]");
  if (!may_be_equal(boxes[0], scores[0]))
    return in.unequal_dims(boxes[0], scores[0], "batches of boxes and scores");
  if (!may_be_equal(boxes[1], scores[2]))
    return in.unequal_dims(boxes[1], scores[2], "numbers of boxes and scores");
  for (size_t limit = 2; limit < in.size(); ++limit)
    if (const Shape& shape = in[limit].shape;
        shape.size() > 1 || (shape.size() == 1 && shape[0] != Dim::of(1)))
      return bad_input("a limit of shape " + text_of(shape) + " is not one number");
  if (const std::optional<int64_t> k = in.integer("k")) {
    if (*k < 0 || (scores[2].constant() && *k > scores[2].value))
      return bad_input("room for " + std::to_string(*k) + " of " + text_of(scores[2]) + " boxes");
    scores[2] = Dim::of(*k);
  }
  return ValueType{DType::i64, scores};
}

void import_nms(RuleRegistry& registry) {
  registry.add_rule("NonMaxSuppression", 10, non_max_suppression);
}

}  // namespace invar::compiler
