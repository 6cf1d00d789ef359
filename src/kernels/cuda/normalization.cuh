// What the normalizations of rows along memory share: where the rows are, and weights of a stored format.
#pragma once
#include "kernels/cuda/row_reduction.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// As an operation of rows.cuh, kSums its reductions.
template <bool kVectors, int kSums>
struct NormRows {
  static constexpr bool kAligned = kVectors, kGives = true;
  static constexpr int kReductions = kSums;
  template <int>
  using Join = num::INVAR_ISA_NS::Sum;
  const float* x;
  float* y;
  int64_t n;
  float epsilon;

  NormRows(const Call& call, int64_t elements)
      : x(call.in[0].as<const float>()),
        y(call.out[0].as<float>()),
        n(elements),
        epsilon(attr_f(call, "epsilon", 1e-5f)) {}
  INVAR_DEVICE num::INVAR_ISA_NS::Line<kAligned> source(int64_t r, int64_t = 0) const { return {x + r * n}; }
};
template <class Fn>
void queue_norm(const Fn& fn, int64_t rows, const Call& call, Stream stream) {
  if constexpr (Fn::kAligned)
    queue_rows(fn, rows, fn.n, call.shared, stream);
  else
    queue_loose_rows(fn, rows, fn.n, call.shared, stream);
}
bool aligned_rows(const Call& call, int64_t n) {
  return aligned(call.in[0].data) && aligned(call.out[0].data) && n % 4 == 0;
}

struct Weights {
  const void* p;  // null: none
  DType format;
};
Weights weights_of(const View& v) {
  return {v.data, v.dtype};
}
// Asks for the first n into the second cache, which is allowed before a kernel waits: what is there stays coherent.
INVAR_DEVICE void ask(const Weights& w, int64_t n) {
  constexpr int64_t kLine = 128;
  const auto* p = static_cast<const char*>(w.p);
  const int64_t bytes = p ? n * (w.format == DType::f32 ? 4 : 2) : 0;
  for (int64_t at = threadIdx.x * kLine; at < bytes; at += blockDim.x * kLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p + at));
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
// The weights of a row's elements, in the row's vectors, on their way before the row is reduced where a thread has
// registers for them. kFloats: they are f32, as their owner knows.
template <class Row, bool kFloats>
class RowWeights {
 public:
  INVAR_DEVICE RowWeights(const Row& row, const Weights& w) : w_(w) {
    if constexpr (kEarly)
      if (w.p) row.slots([&](int slot, int64_t i) { load(i, early_[slot]); });
  }
  INVAR_DEVICE void get(int slot, int64_t i, F* v) const {
    if constexpr (kEarly) {
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) v[k] = early_[slot][k];
    } else {
      load(i, v);
    }
  }

 private:
  static constexpr bool kEarly = Row::kElements <= 16;
  const Weights& w_;
  F early_[kEarly ? Row::kSlots : 1][Row::kV];

  INVAR_DEVICE void load(int64_t i, F* v) const {
    constexpr int kV = Row::kV;
    if (kFloats || w_.format == DType::f32)
      return num::INVAR_ISA_NS::load_vector<kV>(static_cast<const float*>(w_.p) + i, v);
    struct alignas(2 * kV) {
      uint16_t x[kV];
    } const u = *reinterpret_cast<const decltype(u)*>(static_cast<const uint16_t*>(w_.p) + i);
#pragma unroll
    for (int k = 0; k < kV; ++k) v[k] = widened(u.x[k], w_.format);
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
