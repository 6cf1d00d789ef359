#include "kernels/norm_gradients.h"

#include "kernels/check.h"
#include "num/reduce/columns.h"

namespace invar::ops {

int64_t norm_backward_rows(const Call& call, int) {
  int64_t rows = 1;
  for (int i = 0; i + call.in[2].rank < call.in[1].rank; ++i) rows *= call.in[1].dim[i];
  return rows;
}

bool norm_backward_batch_independent(const Call& c, uint64_t batched) {
  return batched == 3 && c.in[2].rank < c.in[1].rank;
}

const char* check_norm_backward(const Call& c) {
  if (!has_operands(c, 3, 1)) return "three operands and one result";
  const View &grad = c.in[0], &x = c.in[1], &w = c.in[2], &out = c.out[0];
  if (!is_f32(grad) || !is_f32(x) || !is_weight(w) || !is_f32(out))
    return "f32 (the weight may be bf16 or f16)";
  if (!same_shape(grad, x)) return "a gradient shaped like x";
  if (const char* wrong = check_norm_weight(x, w)) return wrong;
  return same_shape(x, out) ? nullptr : "a result shaped like x";
}

NormWeightRows norm_weight_rows(const Call& call) {
  const View& x = call.in[1];
  const int axis = x.rank - call.out[0].rank;
  NormWeightRows r{1, 1, 0, 0};
  for (int i = 0; i < x.rank; ++i) (i < axis ? r.rows : r.n) *= x.dim[i];
  r.segments = (r.rows + num::kRowSegment - 1) / num::kRowSegment;
  r.blocks = (r.n + NormWeightRows::kColumns - 1) / NormWeightRows::kColumns;
  return r;
}

const char* check_norm_backward_weight(const Call& c, int64_t axis_of_call) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &grad = c.in[0], &x = c.in[1], &out = c.out[0];
  if (!is_f32(grad) || !is_f32(x) || !is_f32(out)) return "f32";
  if (!same_shape(grad, x)) return "a gradient shaped like x";
  const int axis = axis_in(x, axis_of_call);
  if (axis < 0) return "an axis of x";
  if (out.rank != x.rank - axis) return "a result of the dimensions of x from the axis on";
  for (int i = axis; i < x.rank; ++i)
    if (x.dim[i] < 1 || out.dim[i - axis] != x.dim[i])
      return "a result of the dimensions of x from the axis on, which have elements";
  return nullptr;
}

int64_t norm_weight_units(const Call& call, int phase) {
  const NormWeightRows r = norm_weight_rows(call);
  return phase == 0 ? r.rows : phase == 1 ? r.blocks * r.segments : chunk_units(call, 0);
}

size_t norm_weight_scratch(const Call&) {
  return static_cast<size_t>(num::portable::kWideBuffers * NormWeightRows::kColumns) * sizeof(float);
}

// The factor and the mean of each row, then the segments of each column.
size_t norm_weight_shared(const Call& call) {
  const NormWeightRows r = norm_weight_rows(call);
  return static_cast<size_t>(2 * r.rows + r.segments * r.n) * sizeof(float);
}

}  // namespace invar::ops
