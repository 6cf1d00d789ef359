// Vector loads and stores of cpu.cc files over num/lane: stored formats widened to lanes, loops
// over elements. Compiled once per instruction set, so everything here has internal linkage.
#pragma once
#include "kernels/call.h"
#include "num/convert/convert.h"
#include "num/lane/lane.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using namespace num::INVAR_ISA_NS;

// A stored format: its element type and its exact widening to lanes (spec/formats.md formats.2).
struct F32 {
  using T = float;
  INVAR_INLINE F get(const T* p) { return load(p); }
  INVAR_INLINE F get_n(const T* p, int n) { return load_n(p, n); }
  INVAR_INLINE float one(T x) { return x; }
};
struct Bf16 {
  using T = uint16_t;
  INVAR_INLINE F get(const T* p) { return load_bf16(p); }
  INVAR_INLINE F get_n(const T* p, int n) { return load_bf16_n(p, n); }
  INVAR_INLINE float one(T x) { return num::f32_from_bf16(x); }
};
struct F16 {
  using T = uint16_t;
  INVAR_INLINE F get(const T* p) { return load_f16(p); }
  INVAR_INLINE F get_n(const T* p, int n) { return load_f16_n(p, n); }
  INVAR_INLINE float one(T x) { return num::f32_from_f16(x); }
};

// Pins x to a register: GCC would fold the load into each use and read memory once per use.
INVAR_INLINE F in_register(F x) {
#if defined(__x86_64__) && !defined(__CUDACC__)
  __asm__("" : "+v"(x.v));
#endif
  return x;
}

// n <= kW elements of a stored format.
template <class W>
INVAR_INLINE F get_part(const typename W::T* p, int n) {
  return n == kW ? W::get(p) : W::get_n(p, n);
}

// formats.8: a copied or widened value; a NaN becomes canonical.
INVAR_INLINE F canonical_nan(F x) {
  return select(unordered(x, x), from_bits(set1_i(0x7fc00000)), x);
}

// 1 / sqrt(v + epsilon) as the normalizations define it: an add, a sqrt and a div, none of them
// stored.
INVAR_INLINE F inverse_sqrt(F v, float epsilon) {
  return div(set1(1.0f), sqrt(add(v, set1(epsilon))));
}

// Calls f(F32{}), f(Bf16{}) or f(F16{}) by the dtype of an operand.
template <class Fn>
INVAR_INLINE void with_format(DType t, Fn f) {
  if (t == DType::bf16)
    f(Bf16{});
  else if (t == DType::f16)
    f(F16{});
  else
    f(F32{});
}

// Stores f(i, lanes) at out + i for i < n in steps of kW; f receives the number of valid lanes.
// Stores the bits unchanged.
template <class Fn>
INVAR_INLINE void strip_exact(float* out, int64_t n, Fn f) {
  int64_t i = 0;
  for (; i + kW <= n; i += kW) store(out + i, f(i, kW));
  if (i < n) store_n(out + i, f(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}
// The same under the store rule (formats.5).
template <class Fn>
INVAR_INLINE void strip(float* out, int64_t n, Fn f) {
  strip_exact(
      out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) { return canonicalize(f(i, lanes)); });
}

// Stores the integers f(i, lanes) as bytes, saturated to the range of T, at out + i for i < n in
// steps of kW.
template <class T, class Fn>
INVAR_INLINE void strip_bytes(T* out, int64_t n, Fn f) {
  int64_t i = 0;
  for (; i + 4 * kW <= n; i += 4 * kW) {
    const I x[4] = {f(i, kW), f(i + kW, kW), f(i + 2 * kW, kW), f(i + 3 * kW, kW)};
    store_limited(out + i, x);
  }
  if (i == n) return;
  I x[4] = {set1_i(0), set1_i(0), set1_i(0), set1_i(0)};
  for (int v = 0; i + v * kW < n; ++v) {
    const int64_t left = n - i - v * kW;
    x[v] = f(i + v * kW, left < kW ? static_cast<int>(left) : kW);
  }
  T last[4 * kW];
  store_limited(last, x);
  for (int64_t j = i; j < n; ++j) out[j] = last[j - i];
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
