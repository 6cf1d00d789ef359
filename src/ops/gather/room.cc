// Checks, partition and bounds of gather and scatter.
#include "kernels/blocks/block_readers.h"
#include "kernels/check.h"
#include "kernels/fusion/part_rules.h"
#include "ops/gather/index.h"
#include "weights/packed_rows.h"

namespace invar::ops {
namespace {

constexpr int64_t kColumns = 1024;  // per block
constexpr int64_t kMany = 4096;     // updates that are worth several workers
constexpr int64_t kParts = 8;

bool is_index(const View& v) {
  return v.dtype == DType::i64;
}
// A table whose rows are gathered whole.
const RegisteredBlockReader table_rows("gather", [](const View& x, int i, const Attributes& attrs) {
  if (i != 0 || x.rank != 2 || x.dtype != DType::f32) return false;
  if (x.packed && !x.as<const weights::PackedRows>()->format) return false;
  const AxisExtents a = axis_extents(x, GatherAttributes(attrs).axis);
  return a.n == x.dim[0] && a.inner == x.dim[1];
});

const RegisteredPartRule parts_by_index({.op = "gather_nd",
                                         .reads_along = [](const Attributes& attrs) -> int64_t {
                                           return GatherNdAttributes(attrs).batch_dims;
                                         }});

int axis_of_call(const Call& c) {
  return axis_in(c.in[0], GatherAttributes(c).axis);
}

const char* reduction_check(const Call& c) {
  int64_t reduction = ScatterNdAttributes(c).reduction;
  DType t = c.in[0].dtype;
  if (reduction < 0 || reduction >= kReductions) return "a reduction of 0 to 4";
  if (reduction != 0 && t != DType::f32 && t != DType::f64 && t != DType::i64 && t != DType::i32)
    return "f32, f64, i64 or i32 where updates are joined";
  if (!has_operands(c, 3, 1) || !is_index(c.in[1]) || c.in[2].dtype != t || c.out[0].dtype != t)
    return "an operand, i64 indices, updates and a result of the operand's type";
  return same_shape(c.in[0], c.out[0]) ? nullptr : "a result shaped like the operand";
}

// Indices of x's rank that match x in every dimension except the axis.
const char* fits_beside(const View& x, const View& index, int axis) {
  if (axis < 0) return "an axis of the operand";
  if (index.rank != x.rank) return "indices of the operand's rank";
  for (int d = 0; d < x.rank; ++d)
    if (d != axis && index.dim[d] > x.dim[d]) return "indices no longer than the operand beside the axis";
  return nullptr;
}

// Index tuples for x, and `slices` shaped [tuples..., the dimensions of x that are not indexed].
const char* tuples_fit(const View& x, const View& index, const View& slices, int64_t batch_dims) {
  if (index.rank < 1 || x.rank < 1 || batch_dims < 0 || batch_dims >= index.rank || batch_dims > x.rank)
    return "tuples of indices in the last dimension, behind the batches";
  int64_t width = last_dim(index);
  if (width < 1 || width > x.rank - batch_dims) return "tuples no longer than the operand's rank";
  int b = static_cast<int>(batch_dims), from = b + static_cast<int>(width);
  if (!same_leading(x, index, b)) return "the same batches in operand and indices";
  if (slices.rank != index.rank - 1 + x.rank - from || !same_leading(index, slices, index.rank - 1))
    return "a slice for each tuple";
  for (int d = from; d < x.rank; ++d)
    if (slices.dim[index.rank - 1 + d - from] != x.dim[d]) return "slices shaped like the operand's";
  return nullptr;
}

bool first_out_of_bounds(const Call& c, const IndexTuples& t, OutOfBounds& s) {
  const int64_t *index = c.in[1].as<const int64_t>(), n = c.in[1].elements();
  for (int64_t i = 0; i < n; ++i)
    if (normalize_index(index[i], t.dim[i % t.width]) < 0)
      return s = {1, i, index[i], t.dim[i % t.width]}, true;
  return false;
}

}  // namespace

IndexTuples index_tuples(const View& x, const View& index, int64_t batch_dims) {
  IndexTuples t{1, 1, 1, 1, static_cast<int>(last_dim(index)), {}, {}};
  int b = static_cast<int>(batch_dims);
  for (int d = 0; d + 1 < index.rank; ++d) (d < b ? t.batches : t.count) *= index.dim[d];
  for (int d = b + t.width; d < x.rank; ++d) t.inner *= x.dim[d];
  for (int i = t.width - 1; i >= 0; --i) {
    t.dim[i] = x.dim[b + i], t.stride[i] = t.slices;
    t.slices *= t.dim[i];
  }
  return t;
}

ScatterRows scatter_rows(const Call& call) {
  const View& index = call.in[1];
  ScatterRows l{axis_of_call(call), 0, 1, 1, 0, 0};
  l.length = index.dim[l.axis];
  bool last = l.axis == index.rank - 1;
  if (!last) l.columns = last_dim(index);
  for (int d = 0; d < index.rank - (last ? 0 : 1); ++d)
    if (d != l.axis) l.rows *= index.dim[d];
  l.block = l.columns < kColumns ? l.columns : kColumns;
  while (l.block >= 128 && l.rows * ((l.columns + l.block - 1) / l.block) < kParts) l.block /= 2;
  l.blocks = l.block ? (l.columns + l.block - 1) / l.block : 0;
  return l;
}

ScatterPartition scatter_partition(const IndexTuples& t) {
  ScatterPartition s{0, t.inner < kColumns ? t.inner : kColumns, 1};
  s.blocks = s.block ? (t.inner + s.block - 1) / s.block : 0;
  if (s.blocks < kParts && t.count * s.block >= kMany) s.parts = kParts;
  return s;
}

int64_t scatter_rows_units(const Call& call, int phase) {
  if (phase == 0) return chunk_units(call, 0);
  ScatterRows l = scatter_rows(call);
  return l.length ? l.rows * l.blocks : 0;
}

int64_t scatter_partition_units(const Call& call, int phase) {
  if (phase == 0) return chunk_units(call, 0);
  const ScatterPartition s = scatter_partition(index_tuples(call.in[0], call.in[1], 0));
  return call.in[2].elements() ? s.blocks * s.parts : 0;
}

const char* gather_check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "a table, indices and one result";
  const View &x = c.in[0], &index = c.in[1], &out = c.out[0];
  if (!is_index(index) || out.dtype != (is_weight(x) ? DType::f32 : x.dtype))
    return "a table, i64 indices, a result of the table's type (f32 for bf16 and f16)";
  int axis = axis_of_call(c);
  if (axis < 0) return "an axis of the table";
  if (out.rank != x.rank - 1 + index.rank) return "indices in place of the axis";
  for (int d = 0; d < out.rank; ++d) {
    int behind = d - axis - index.rank;
    int64_t size = d < axis ? x.dim[d] : behind < 0 ? index.dim[d - axis] : x.dim[axis + 1 + behind];
    if (out.dim[d] != size) return "indices in place of the axis";
  }
  return nullptr;
}

const char* gather_elements_check(const Call& c) {
  if (!has_operands(c, 2, 1) || !is_index(c.in[1]) || c.in[0].dtype != c.out[0].dtype)
    return "an operand, i64 indices, a result of the operand's type";
  if (!same_shape(c.in[1], c.out[0])) return "a result shaped like the indices";
  return fits_beside(c.in[0], c.in[1], axis_of_call(c));
}

const char* gather_nd_check(const Call& c) {
  if (!has_operands(c, 2, 1) || !is_index(c.in[1]) || c.in[0].dtype != c.out[0].dtype)
    return "an operand, i64 indices, a result of the operand's type";
  return tuples_fit(c.in[0], c.in[1], c.out[0], GatherNdAttributes(c).batch_dims);
}

const char* scatter_elements_check(const Call& c) {
  if (const char* wrong = reduction_check(c)) return wrong;
  if (!same_shape(c.in[1], c.in[2])) return "an update for each index";
  return fits_beside(c.in[0], c.in[1], axis_of_call(c));
}

const char* scatter_nd_check(const Call& c) {
  if (const char* wrong = reduction_check(c)) return wrong;
  return tuples_fit(c.in[0], c.in[1], c.in[2], 0);
}

bool gather_out_of_bounds(const Call& c, OutOfBounds& s) {
  IndexTuples t{};
  t.width = 1, t.dim[0] = c.in[0].dim[axis_of_call(c)];
  return first_out_of_bounds(c, t, s);
}
bool gather_nd_out_of_bounds(const Call& c, OutOfBounds& s) {
  return first_out_of_bounds(c, index_tuples(c.in[0], c.in[1], GatherNdAttributes(c).batch_dims), s);
}
bool scatter_nd_out_of_bounds(const Call& c, OutOfBounds& s) {
  return first_out_of_bounds(c, index_tuples(c.in[0], c.in[1], 0), s);
}

}  // namespace invar::ops
