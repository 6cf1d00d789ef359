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

// A broadcast binary operation as a few nested loops (NumPy rules): adjacent dimensions that both operands walk in
// step are merged, so that `inner` is as long as it can be. Strides are in elements; 0 = repeated.
struct Broadcast {
  int rank;  // of the outer loops
  int64_t dim[kMaxRank], stride_a[kMaxRank], stride_b[kMaxRank];
  int64_t inner, inner_a, inner_b;  // the innermost loop: length and strides (0 or 1)
  int64_t rows;                     // product of the outer dimensions
};
Broadcast broadcast(const View& a, const View& b, const View& out);

// Elements of work per unit of an elementwise operation: a multiple of every vector width.
inline constexpr int64_t kChunk = 2048;
int64_t chunk_units(const Call&, int phase);  // ceil(elements of out[0] / kChunk)
int64_t row_units(const Call&, int phase);    // rows of out[0]

}  // namespace invar::ops
