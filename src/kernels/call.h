// How kernels read a Call. Functions are out of line on purpose: kernels are compiled once per instruction set, and
// nothing inline of the standard library may be compiled there (the linker would keep one copy for all of them;
// tools/laws/odr.sh checks).
#pragma once
#include "num/inline.h"
#include "kernels/kernel.h"

namespace invar::ops {

int64_t attr_i(const Call&, const char* name, int64_t fallback);
float attr_f(const Call&, const char* name, float fallback);
int64_t attr_i(const Attrs&, const char* name, int64_t fallback);

// What a row with an epilogue calls when these elements are written.
INVAR_INLINE void finished(const Call& call, const Region& r) {
  if (call.epilogue && r.n > 0 && r.rows > 0) call.epilogue->run(call.epilogue->context, r);
}

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
// Of a pass over contiguous elements whose parts an epilogue is told of: a part, with operands, stays in the second cache.
inline constexpr int64_t kToldAtOnce = 2 * kChunk;
int64_t chunk_units(const Call&, int phase);  // ceil(elements of out[0] / kChunk)
int64_t row_units(const Call&, int phase);    // rows of out[0]

// compute(elements) for the elements of out[0] that units [begin, end) of chunk_units are, in parts where an epilogue follows.
template <class Compute>
INVAR_INLINE void each_part(const Call& call, int64_t begin, int64_t end, Compute compute) {
  const int64_t n = call.out[0].elements(), from = begin * kChunk, to = end * kChunk < n ? end * kChunk : n;
  const int64_t most = call.epilogue ? kToldAtOnce : to - from;
  for (int64_t i = from; i < to; i += most) {
    const Region r{i, to - i < most ? to - i : most, 1, 0};
    compute(r);
    finished(call, r);
  }
}

}  // namespace invar::ops
