// How kernels read a Call. Functions are out of line on purpose: kernels are compiled once per
// instruction set, and nothing inline of the standard library may be compiled there (the linker
// would keep one copy for all of them; tools/laws/odr.sh checks).
#pragma once
#include "kernels/cpu_kernel.h"
#include "num/inline.h"

namespace invar::ops {

// A list attribute. An absent one has the default of its elements everywhere.
struct IntegerList {
  const int64_t* data;
  int64_t size;  // -1: absent
  int64_t fallback;
  [[gnu::always_inline]] bool absent() const { return size < 0; }
  [[gnu::always_inline]] bool fits(int64_t n) const { return absent() || size == n; }
  [[gnu::always_inline]] int64_t operator[](int64_t i) const { return absent() ? fallback : data[i]; }
};
// tools/ops/generate.py makes a struct of the attributes of each operation of the room's ops.toml
// (ops/ROOM/attributes.h). `const SoftmaxAttributes a(call);` reads all of them, with the table's
// defaults, by a search for each name: once a call, not once a row.
struct AttributeReader {
  const Attributes* map;  // null: all are absent
  [[gnu::always_inline]] AttributeReader(const Call& call) : map(call.attrs) {}
  [[gnu::always_inline]] AttributeReader(const Attributes& attrs) : map(&attrs) {}
  int64_t i64(const char* name, int64_t fallback) const;
  float f32(const char* name, float fallback) const;
  IntegerList list(const char* name, int64_t fallback) const;
};

// Reports elements that are written to the epilogue callback, if there is one.
INVAR_INLINE void notify_epilogue(const Call& call, const Region& r) {
  if (call.cpu.epilogue && r.n > 0 && r.rows > 0) call.cpu.epilogue->run(call.cpu.epilogue->context, r);
}

// The last dimension, and how many rows of that length there are.
INVAR_INLINE int64_t last_dim(const View& v) {
  return v.rank ? v.dim[v.rank - 1] : 1;
}
int64_t row_count(const View& v);

// A tensor seen along one axis (counted from the end if negative): row-major [outer, n, inner]. If
// inner is 1, the axis is contiguous in memory.
struct AxisExtents {
  int64_t outer, n, inner;
};
AxisExtents axis_extents(const View&, int64_t axis);

// The reduced rows along an axis in blocks of adjacent columns: for each outer index, `blocks`
// blocks of at most `width` of the `inner` columns.
struct ColumnBlocks : AxisExtents {
  int64_t width, blocks;
};
// Memory offset of block u (in a tensor with n elements along the axis), and its number of columns.
INVAR_INLINE int64_t block_begin(const ColumnBlocks& c, int64_t u, int64_t n) {
  return u / c.blocks * n * c.inner + u % c.blocks * c.width;
}
INVAR_INLINE int64_t block_width(const ColumnBlocks& c, int64_t u) {
  int64_t left = c.inner - u % c.blocks * c.width;
  return left < c.width ? left : c.width;
}
// Blocks as wide as `width` allows, or narrower (but at least `least` >= 16 columns) to reach
// `units` blocks.
ColumnBlocks column_blocks(const AxisExtents&, int64_t width, int64_t least = INT64_MAX, int64_t units = 0);

// Elements per work unit of an elementwise operation: a multiple of every vector width.
inline constexpr int64_t kChunk = 2048;
// Elements per epilogue callback in a pass over contiguous elements: with its operands, a chunk
// stays in the L2 cache.
inline constexpr int64_t kEpilogueChunk = 2 * kChunk;
int64_t chunk_units(const Call&, int phase);  // ceil(elements of out[0] / kChunk)
int64_t row_units(const Call&, int phase);    // rows of out[0]
int64_t norm_rows(const Call&, int phase);    // rows of in[0], each as long as the weight in[1]

// Calls compute(region) for the elements of out[0] that belong to units [begin, end) of
// chunk_units, in chunks if an epilogue follows.
template <class Compute>
INVAR_INLINE void for_each_chunk(const Call& call, int64_t begin, int64_t end, Compute compute) {
  const int64_t n = call.out[0].elements(), from = begin * kChunk, to = end * kChunk < n ? end * kChunk : n;
  const int64_t most = call.cpu.epilogue ? kEpilogueChunk : to - from;
  for (int64_t i = from; i < to; i += most) {
    const Region r{i, to - i < most ? to - i : most, 1, 0};
    compute(r);
    notify_epilogue(call, r);
  }
}

}  // namespace invar::ops
