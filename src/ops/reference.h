// Scalar access to tensors for reference.cc files: one element at a time, in the order the specification writes.
#pragma once
#include "num/convert/convert.h"
#include "ops/call.h"

namespace invar::ops {

// Element i as binary32: exact for f32, bf16 and f16 (spec/formats.md formats.2), the dtypes a weight may have.
inline float value(const View& v, int64_t i) {
  switch (v.dtype) {
    case DType::bf16: return num::f32_from_bf16(v.as<uint16_t>()[i]);
    case DType::f16: return num::f32_from_f16(v.as<uint16_t>()[i]);
    default: return v.as<float>()[i];
  }
}

// Stores binary32 under the store rule (formats.5).
inline void put(const View& v, int64_t i, float x) {
  v.as<float>()[i] = num::canon(x);
}

// formats.8: a copied or widened value, whose NaN becomes canonical.
inline float copied(float x) {
  return x == x ? x : num::f32_from_bits(0x7fc00000);
}

// maximum of IEEE 754-2019 (formats.7): NaN wins, -0 < +0.
inline float maximum(float a, float b) {
  if (a != a || b != b) return num::f32_from_bits(0x7fc00000);
  if (a == b) return num::f32_from_bits(num::f32_bits(a) & num::f32_bits(b));
  return a > b ? a : b;
}

// The loop of an element-by-element reference: out[i] = f(i).
template <class Fn>
void each(const Call& call, int64_t begin, int64_t end, Fn f) {
  int64_t n = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) put(call.out[0], i, f(i));
}

// The same for two operands that broadcast: out = f(a, b).
template <class Fn>
void each_pair(const Call& call, int64_t begin, int64_t end, Fn f) {
  const View &a = call.in[0], &b = call.in[1], &out = call.out[0];
  each(call, begin, end, [&](int64_t i) {
    int64_t ia = 0, ib = 0, step_a = 1, step_b = 1;
    for (int d = out.rank - 1, rest = 0; d >= 0;
         --d, ++rest) {  // from the last dimension: the index there, in each operand
      int64_t at = i % out.dim[d];
      i /= out.dim[d];
      if (rest < a.rank) {
        int64_t size = a.dim[a.rank - 1 - rest];
        ia += step_a * (size == 1 ? 0 : at), step_a *= size;
      }
      if (rest < b.rank) {
        int64_t size = b.dim[b.rank - 1 - rest];
        ib += step_b * (size == 1 ? 0 : at), step_b *= size;
      }
    }
    return f(value(a, ia), value(b, ib));
  });
}

}  // namespace invar::ops
