// Scalar access to tensors for reference.cc files: one element at a time, in the order of the
// specification.
#pragma once
#include <cmath>

#include "kernels/call.h"
#include "num/convert/convert.h"

namespace invar::ops {

// Element i as binary32: exact for f32, bf16 and f16 (spec/formats.md formats.2), the dtypes a
// weight may have.
inline float value(const View& v, int64_t i) {
  switch (v.dtype) {
    case DType::bf16: return num::f32_from_bf16(v.as<uint16_t>()[i]);
    case DType::f16: return num::f32_from_f16(v.as<uint16_t>()[i]);
    default: return v.as<float>()[i];
  }
}

// Stores binary32 under the store rule (formats.5).
inline void store_canonical(const View& v, int64_t i, float x) {
  v.as<float>()[i] = num::canonicalize(x);
}

// formats.8: a copied or widened value; a NaN becomes canonical.
inline float canonical_nan(float x) {
  return x == x ? x : num::f32_from_bits(0x7fc00000);
}

// 1 / sqrt(v + epsilon) as the normalizations define it: an add, a sqrt and a div, none of them
// stored.
inline float inverse_sqrt(float v, float epsilon) {
  float shifted = v + epsilon;
  float root = std::sqrt(shifted);
  return 1.0f / root;
}

// maximum of IEEE 754-2019 (formats.7): NaN wins, -0 < +0.
inline float maximum(float a, float b) {
  if (a != a || b != b) return num::f32_from_bits(0x7fc00000);
  if (a == b) return num::f32_from_bits(num::f32_bits(a) & num::f32_bits(b));
  return a > b ? a : b;
}

}  // namespace invar::ops
