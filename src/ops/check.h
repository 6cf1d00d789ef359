// What rooms require of a call's shapes and dtypes: plans are files, and a kernel believes its operands.
// Each function returns null where all is well, else what is required.
#pragma once
#include "ops/call.h"

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
// The same over the last dimension, which must have elements.
inline const char* check_rows(const Call& c) {
  if (const char* wrong = check_unary(c)) return wrong;
  return c.in[0].rank >= 1 && last_dim(c.in[0]) >= 1 ? nullptr : "a last dimension with elements";
}

// out = f(a, b) with NumPy broadcasting.
inline const char* check_pair(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  if (!is_weight(a) || !is_weight(b) || !is_f32(out)) return "f32 (weights may be bf16 or f16)";
  if (out.rank != (a.rank > b.rank ? a.rank : b.rank)) return "a result of the operands' rank";
  for (int i = 1; i <= out.rank; ++i) {
    int64_t da = i <= a.rank ? a.dim[a.rank - i] : 1, db = i <= b.rank ? b.dim[b.rank - i] : 1;
    if ((da != db && da != 1 && db != 1) || out.dim[out.rank - i] != (da == 1 ? db : da))
      return "shapes that broadcast to the result's";
  }
  return nullptr;
}

}  // namespace invar::ops
