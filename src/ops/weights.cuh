// Weights of a stored format, as kernels that hold rows read them: in the vectors of num's HeldRow.
#pragma once
#include "ops/rows.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct Weights {
  const void* p;  // null: none
  DType format;
};
Weights weights_of(const View& v) {
  return {v.data, v.dtype};
}
// Whether vectors of four elements are aligned.
bool aligned(const Weights& w) {
  return aligned(w.p, w.format == DType::f32 ? 16 : 8);
}

// The GPU's own conversion is as exact as num/convert's (formats.2), and shorter.
INVAR_DEVICE F widened(uint16_t x, DType format) {
  if (format == DType::bf16) return {Bf16::one(x)};
  F y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y.v) : "h"(x));
  return y;
}
INVAR_DEVICE F weight(const Weights& w, int64_t i) {
  if (w.format == DType::f32) return {static_cast<const float*>(w.p)[i]};
  return widened(static_cast<const uint16_t*>(w.p)[i], w.format);
}
// kFloats: they are f32, as their owner knows.
template <int kV, bool kVectors, bool kFloats>
INVAR_DEVICE void load_weights(const Weights& w, int64_t i, int count, F* v) {
  if constexpr (!kVectors) {
#pragma unroll
    for (int k = 0; k < kV; ++k)
      if (k < count) v[k] = weight(w, i + k);
  } else if (kFloats || w.format == DType::f32) {
    num::INVAR_ISA_NS::load_vector<kV>(static_cast<const float*>(w.p) + i, v);
  } else {
    struct alignas(2 * kV) {
      uint16_t x[kV];
    } const u = *reinterpret_cast<const decltype(u)*>(static_cast<const uint16_t*>(w.p) + i);
#pragma unroll
    for (int k = 0; k < kV; ++k) v[k] = widened(u.x[k], w.format);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
