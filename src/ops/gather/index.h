// Index semantics of gather and scatter, shared by all rows: normalization, out-of-bounds values,
// index tuples, scatter reductions and the partition of updates.
#pragma once
#include "kernels/call.h"
#include "num/binary64.h"
#include "num/convert/convert.h"
#include "ops/gather/attributes.h"

namespace invar::ops {

// gather.3: normalizes an index of an axis of n elements (negative: from the end); -1 if out of
// bounds.
INVAR_INLINE int64_t normalize_index(int64_t index, int64_t n) {
  if (index < 0) index += n;
  return index >= 0 && index < n ? index : -1;
}
// The bits of a result element whose index is out of bounds: the canonical NaN, or 0.
INVAR_INLINE uint64_t out_of_bounds_value(DType t) {
  return t == DType::f32    ? 0x7fc00000
         : t == DType::bf16 ? 0x7fc0
         : t == DType::f16  ? 0x7e00
         : t == DType::f64  ? 0x7ff8000000000000
                            : 0;
}

// Index tuples (gather.6, gather.8): `count` tuples per batch in `batches` batches, each of `width`
// indices, selecting slices of `inner` elements; `slices` slices per batch.
struct IndexTuples {
  int64_t batches, count, inner, slices;
  int width;
  int64_t dim[kMaxRank], stride[kMaxRank];  // of the indexed dimensions, in slices
};
IndexTuples index_tuples(const View& x, const View& indices, int64_t batch_dims);
// The slice that a tuple selects, or -1 if it is out of bounds.
INVAR_INLINE int64_t slice_of(const IndexTuples& t, const int64_t* tuple) {
  int64_t at = 0;
  for (int i = 0; i < t.width; ++i) {
    int64_t j = normalize_index(tuple[i], t.dim[i]);
    if (j < 0) return -1;
    at += j * t.stride[i];
  }
  return at;
}

// gather.9: how a scatter combines an update with the element it addresses.
enum class ScatterReduction : int64_t { none, add, mul, min, max };
inline constexpr int64_t kReductions = 5;

template <ScatterReduction join>
INVAR_INLINE float reduce_update(float there, float update) {
  if constexpr (join == ScatterReduction::none) return update;
  if constexpr (join == ScatterReduction::add) return num::canonicalize(there + update);
  if constexpr (join == ScatterReduction::mul) return num::canonicalize(there * update);
  // formats.7: equal values differ only for zeros; AND of their bits is the larger zero, OR the
  // smaller.
  constexpr bool most = join == ScatterReduction::max;
  uint32_t a = num::f32_bits(there), b = num::f32_bits(update);
  float equal = num::f32_from_bits(most ? a & b : a | b);
  float r = there == update ? equal : (most ? there > update : there < update) ? there : update;
  return there == there && update == update ? num::canonicalize(r) : num::f32_from_bits(0x7fc00000);
}
template <ScatterReduction join>
INVAR_INLINE double reduce_update(double there, double update) {
  if constexpr (join == ScatterReduction::none) return update;
  if constexpr (join == ScatterReduction::add) return num::canonicalize64(there + update);
  if constexpr (join == ScatterReduction::mul) return num::canonicalize64(there * update);
  if constexpr (join == ScatterReduction::max) return num::canonicalize64(num::maximum64(there, update));
  return num::canonicalize64(num::minimum64(there, update));
}
// Integers wrap: computed unsigned.
template <ScatterReduction join, class U, class S>
INVAR_INLINE U reduce_integer(U there, U update) {
  if constexpr (join == ScatterReduction::none) return update;
  if constexpr (join == ScatterReduction::add) return there + update;
  if constexpr (join == ScatterReduction::mul) return there * update;
  S a = static_cast<S>(there), b = static_cast<S>(update);
  return (join == ScatterReduction::max ? a > b : a < b) ? there : update;
}
template <ScatterReduction join>
INVAR_INLINE uint32_t reduce_update(uint32_t there, uint32_t update) {
  return reduce_integer<join, uint32_t, int32_t>(there, update);
}
template <ScatterReduction join>
INVAR_INLINE uint64_t reduce_update(uint64_t there, uint64_t update) {
  return reduce_integer<join, uint64_t, int64_t>(there, update);
}
template <ScatterReduction join>
INVAR_INLINE uint16_t reduce_update(uint16_t, uint16_t update) {
  return update;
}
template <ScatterReduction join>
INVAR_INLINE uint8_t reduce_update(uint8_t, uint8_t update) {
  return update;
}
// Calls f(T{}, ReductionIs<...>{}) with the element type and the reduction. Elements that are only
// moved are unsigned and have no reduction.
template <ScatterReduction join>
struct ReductionIs {
  static constexpr ScatterReduction value = join;
};
template <class T, class Fn>
INVAR_INLINE void with_reduction(int64_t reduction, T zero, Fn f) {
  switch (static_cast<ScatterReduction>(reduction)) {
    case ScatterReduction::none: return f(zero, ReductionIs<ScatterReduction::none>{});
    case ScatterReduction::add: return f(zero, ReductionIs<ScatterReduction::add>{});
    case ScatterReduction::mul: return f(zero, ReductionIs<ScatterReduction::mul>{});
    case ScatterReduction::min: return f(zero, ReductionIs<ScatterReduction::min>{});
    case ScatterReduction::max: return f(zero, ReductionIs<ScatterReduction::max>{});
  }
}
template <class Fn>
INVAR_INLINE void with_reduction(int64_t reduction, DType t, Fn f) {
  if (reduction != 0 && t == DType::f32) return with_reduction(reduction, float{}, f);
  if (reduction != 0 && t == DType::f64) return with_reduction(reduction, double{}, f);
  if (reduction != 0 && size_of(t) == 4) return with_reduction(reduction, uint32_t{}, f);
  if (reduction != 0) return with_reduction(reduction, uint64_t{}, f);
  switch (size_of(t)) {
    case 1: return f(uint8_t{}, ReductionIs<ScatterReduction::none>{});
    case 2: return f(uint16_t{}, ReductionIs<ScatterReduction::none>{});
    case 4: return f(uint32_t{}, ReductionIs<ScatterReduction::none>{});
    default: f(uint64_t{}, ReductionIs<ScatterReduction::none>{});
  }
}

// The partition of updates along an axis (gather.7): rows of updates across the axis, in blocks of
// columns.
struct ScatterRows {
  int axis;
  int64_t length;                // updates along the axis
  int64_t rows, columns, block;  // rows of `columns` updates; columns per block
  int64_t blocks;
};
ScatterRows scatter_rows(const Call&);
// The partition of scattered slices: blocks of columns, and parts of the slices of the result.
struct ScatterPartition {
  int64_t blocks, block, parts;
};
ScatterPartition scatter_partition(const IndexTuples&);

// Shared by the rows of all instruction sets. Phase 0 of a scatter copies the operand, phase 1
// applies the updates.
int64_t scatter_rows_units(const Call&, int phase);
int64_t scatter_partition_units(const Call&, int phase);

const char* gather_check(const Call&);
const char* gather_elements_check(const Call&);
const char* gather_nd_check(const Call&);
const char* scatter_elements_check(const Call&);
const char* scatter_nd_check(const Call&);
bool gather_out_of_bounds(const Call&, OutOfBounds&);
bool gather_nd_out_of_bounds(const Call&, OutOfBounds&);
bool scatter_nd_out_of_bounds(const Call&, OutOfBounds&);

}  // namespace invar::ops
