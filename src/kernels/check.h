// Checks of a call's shapes and dtypes. Plans are files, and a kernel trusts its operands. Each
// function returns null if the call is valid, else what is required.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

inline bool is_f32(const View& v) {
  return v.dtype == DType::f32;
}
inline bool is_weight(const View& v) {
  return v.dtype == DType::f32 || v.dtype == DType::bf16 || v.dtype == DType::f16;
}
// The first `dims` dimensions are equal.
inline bool same_leading(const View& a, const View& b, int dims) {
  if (a.rank < dims || b.rank < dims) return false;
  for (int i = 0; i < dims; ++i)
    if (a.dim[i] != b.dim[i]) return false;
  return true;
}
inline bool same_shape(const View& a, const View& b) {
  return a.rank == b.rank && same_leading(a, b, a.rank);
}
inline bool has_operands(const Call& c, size_t in, size_t out) {
  return c.in.size() == in && c.out.size() == out;
}

// out = f(x), element by element in f32.
inline const char* check_unary(const Call& c) {
  if (!has_operands(c, 1, 1)) return "one operand and one result";
  if (!is_f32(c.in[0]) || !is_f32(c.out[0])) return "f32";
  return same_shape(c.in[0], c.out[0]) ? nullptr : "a result shaped like the operand";
}

// Layer and RMS normalization: the weight has the trailing dimensions of x and is not empty.
const char* check_norm_weight(const View& x, const View& w);

// Normalizes an axis of v (counted from the end if negative) to [0, rank); -1 if out of range.
inline int axis_in(const View& v, int64_t axis) {
  if (axis < -v.rank || axis >= v.rank) return -1;
  return static_cast<int>(axis < 0 ? axis + v.rank : axis);
}

}  // namespace invar::ops
