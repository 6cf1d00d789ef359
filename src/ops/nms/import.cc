#include <algorithm>

#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/builders/compact.h"

namespace invar::compiler {
namespace {

// The same of indices that are computed when the program runs.
Status selected_at_run_time(Node& node, Value indices) {
  const Shape shape = shape_of(indices.getType());
  INVAR_TRY(Value boxes, flattened(node, indices));
  INVAR_TRY(Value is_box, node.make<GreaterEqualOp>({boxes, node.constant(Sizes(0))}));
  INVAR_TRY(const Places places, places_of(node, is_box));
  const Value room = node.sizes(*polynomial_of(shape[2]), int64_t{1}),
              classes = node.sizes(*polynomial_of(shape[1]), int64_t{1});
  INVAR_TRY(Value row, node.make<DivOp>({places.index, room}));
  SmallVector<Value> columns(3);
  INVAR_TRY(columns[0], node.make<DivOp>({row, classes}));
  INVAR_TRY(columns[1], node.make<ModOp>({row, classes}));
  INVAR_TRY(columns[2], node.make<GatherOp>({boxes, places.index}));
  for (Value& column : columns) {
    INVAR_TRY(column, shaped(node, column, {places.count, Extent::of(1)}));
  }
  INVAR_TRY(Value out, joined(node, columns, 1));
  return node.replace(out);
}

// [M, 3] of indices [B, C, K]: batch, class and box of each that is no -1.
Status selected(Node& node, Value indices) {
  auto known = indices.getDefiningOp<ReproWeightOp>();
  if (!known || !known.getData()) return selected_at_run_time(node, indices);
  const Shape shape = shape_of(indices.getType());
  const int64_t classes = shape[1].value, k = shape[2].value;
  std::vector<int64_t> rows;
  int64_t at = 0;
  for (int64_t box : integers_from_hex(*known.getData(), 8)) {
    const int64_t row = at++ / k;
    if (box >= 0) rows.insert(rows.end(), {row / classes, row % classes, box});
  }
  const auto count = static_cast<int64_t>(rows.size() / 3);
  return node.replace(node.constant(bytes_of(rows, 8), DType::i64, {count, 3}));
}

Status non_max_suppression(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 5, {"center_point_box"}));
  INVAR_TRY(const int64_t centred, node.i("center_point_box", 0));
  SmallVector<NamedAttribute> attrs = {node.attr("center_point_box", int64_t{centred != 0})};
  // Without a number, none.
  Value most = node.has(2) ? node.in(2) : node.constant(std::vector<int64_t>{0});
  Value overlap = node.has(3) ? node.in(3) : node.constant(0.0f);
  SmallVector<Value> operands = {node.in(0), node.in(1), most, overlap};
  if (node.has(4)) operands.push_back(node.in(4));
  // No more room than is asked for.
  const Shape scores = node.shape(1);
  const Result<int64_t> number = number_of(node, 2, 0);
  if (number && scores.size() == 3 && scores[2].constant())
    attrs.push_back(node.attr("k", std::clamp<int64_t>(*number, 0, scores[2].value)));
  INVAR_TRY(Value indices, node.make<NmsOp>(operands, attrs));
  return selected(node, indices);
}

}  // namespace

LogicalResult NmsOp::inferReturnTypes(MLIRContext* context, std::optional<Location> loc, Adaptor op,
                                      SmallVectorImpl<Type>& out) {
  const Shape boxes = shape_of(op.getBoxes().getType());
  Shape scores = shape_of(op.getScores().getType());
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != Extent::of(4))
    return mismatch(loc, "boxes of shape " + text_of(boxes) + " and scores of shape " + text_of(scores) +
                             " are not [B, N, 4] and [B, C, N]");
  if (!may_be_equal(boxes[0], scores[0]))
    return differ(loc, boxes[0], scores[0], "batches of boxes and scores");
  if (!may_be_equal(boxes[1], scores[2]))
    return differ(loc, boxes[1], scores[2], "numbers of boxes and scores");
  for (Value limit : {op.getMost(), op.getOverlap(), op.getLeast()})
    if (const Shape shape = limit ? shape_of(limit.getType()) : Shape();
        shape.size() > 1 || (shape.size() == 1 && shape[0] != Extent::of(1)))
      return mismatch(loc, "a limit of shape " + text_of(shape) + " is not one number");
  if (const auto k = op.getK()) {
    const auto room = static_cast<int64_t>(*k);
    if (room < 0 || (scores[2].constant() && room > scores[2].value))
      return mismatch(loc, "room for " + std::to_string(room) + " of " + text_of(scores[2]) + " boxes");
    scores[2] = Extent::of(room);
  }
  out.push_back(tensor_of(scores, IntegerType::get(context, 64)));
  return success();
}

void import_nms(Rooms& rooms) {
  rooms.on("NonMaxSuppression", 10, non_max_suppression);
}

}  // namespace invar::compiler
