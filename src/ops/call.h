// How kernels read a Call. Functions are out of line on purpose: kernels are compiled once per instruction set, and
// nothing inline of the standard library may be compiled there (the linker would keep one copy for all of them;
// tools/laws/odr.sh checks).
#pragma once
#include "num/inline.h"
#include "ops/kernel.h"

namespace invar::ops {

int64_t attr_i(const Call&, const char* name, int64_t fallback);
float attr_f(const Call&, const char* name, float fallback);
int64_t attr_i(const Attrs&, const char* name, int64_t fallback);

// The last dimension, and how many rows of it there are.
INVAR_INLINE int64_t last_dim(const View& v) {
  return v.rank ? v.dim[v.rank - 1] : 1;
}
int64_t row_count(const View& v);

// An axis, counted from the end where it is negative, as it lies in memory: [outer, n, inner]. inner = 1: its rows lie
// along memory.
struct Axis {
  int64_t outer, n, inner;
};
Axis axis_of(const View&, int64_t axis);

// The rows along an axis in blocks: for each index before it, `blocks` blocks of at most `width` of the `inner` rows that
// are neighbouring columns.
struct Columns : Axis {
  int64_t width, blocks;
};
// Where block u begins in memory (in a tensor with n elements along the axis), and how many columns it has.
INVAR_INLINE int64_t block_begin(const Columns& c, int64_t u, int64_t n) {
  return u / c.blocks * n * c.inner + u % c.blocks * c.width;
}
INVAR_INLINE int64_t block_width(const Columns& c, int64_t u) {
  int64_t left = c.inner - u % c.blocks * c.width;
  return left < c.width ? left : c.width;
}
// Blocks as wide as `width` allows, or narrower (`least` columns at least, 16 or more) where that makes `units` blocks.
Columns columns_of(const Axis&, int64_t width, int64_t least = INT64_MAX, int64_t units = 0);

// Elements of work per unit of an elementwise operation: a multiple of every vector width.
inline constexpr int64_t kChunk = 2048;
int64_t chunk_units(const Call&, int phase);  // ceil(elements of out[0] / kChunk)
int64_t row_units(const Call&, int phase);    // rows of out[0]

}  // namespace invar::ops
