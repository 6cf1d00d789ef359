// What cpu.cc files share over num/lane: loads of stored weights by dtype, loops over elements. Compiled once per
// instruction set, so everything here has internal linkage.
#pragma once
#include "num/convert/convert.h"
#include "num/lane/lane.h"
#include "ops/call.h"

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

// formats.8: a copied or widened value, whose NaN becomes canonical.
INVAR_INLINE F copied(F x) {
  return select(unordered(x, x), from_bits(set1_i(0x7fc00000)), x);
}

// f(F32{}), f(Bf16{}) or f(F16{}) for the format of an operand.
template <class Fn>
INVAR_INLINE void with_format(DType t, Fn f) {
  if (t == DType::bf16)
    f(Bf16{});
  else if (t == DType::f16)
    f(F16{});
  else
    f(F32{});
}

// The maximum (spec/formats.md formats.7) of n >= 1 numbers; order-free, hence no schedule.
INVAR_INLINE float row_max(const float* x, int64_t n) {
  alignas(64) float lane[kW];
  F most = set1(x[0]);
  int64_t i = 0;
  for (; i + kW <= n; i += kW) most = maximum(most, load(x + i));
  for (; i < n; ++i) most = maximum(most, set1(x[i]));
  store(lane, most);
  for (int j = 1; j < kW; ++j) most = maximum(most, set1(lane[j]));
  return first(most);
}

// Stores f(i, lanes) at out + i for i < n in steps of kW; f gets how many lanes count. As it is ...
template <class Fn>
INVAR_INLINE void strip_exact(float* out, int64_t n, Fn f) {
  int64_t i = 0;
  for (; i + kW <= n; i += kW) store(out + i, f(i, kW));
  if (i < n) store_n(out + i, f(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}
// ... or by the store rule (formats.5).
template <class Fn>
INVAR_INLINE void strip(float* out, int64_t n, Fn f) {
  strip_exact(
      out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) { return canon(f(i, lanes)); });
}

// Units [begin, end) of a unary f32 operation.
template <class Fn>
INVAR_INLINE void unary(const Call& call, int64_t begin, int64_t end, Fn f) {
  int64_t n = call.out[0].elements(), from = begin * kChunk, to = end * kChunk < n ? end * kChunk : n;
  const float* x = call.in[0].as<const float>() + from;
  strip(
      call.out[0].as<float>() + from, to - from, [&](int64_t i, int lanes) __attribute__((always_inline)) {
        return f(lanes == kW ? load(x + i) : load_n(x + i, lanes));
      });
}

// Units [begin, end) of a binary operation with broadcasting; operands may be stored in any weight format.
template <class Fn>
INVAR_INLINE void binary(const Call& call, int64_t begin, int64_t end, Fn f) {
  const Broadcast b = broadcast(call.in[0], call.in[1], call.out[0]);
  int64_t n = call.out[0].elements(), to = end * kChunk < n ? end * kChunk : n;
  float* out = call.out[0].as<float>();
  with_format(call.in[0].dtype, [&](auto fa) {
    with_format(call.in[1].dtype, [&](auto fb) {
      using A = decltype(fa);
      using B = decltype(fb);
      for (int64_t i = begin * kChunk; i < to;) {
        int64_t row = i / b.inner, at = i % b.inner, len = b.inner - at < to - i ? b.inner - at : to - i;
        auto pa = call.in[0].template as<const typename A::T>() + at * b.inner_a;
        auto pb = call.in[1].template as<const typename B::T>() + at * b.inner_b;
        for (int d = 0; d < b.rank; ++d) {
          pa += row % b.dim[d] * b.stride_a[d], pb += row % b.dim[d] * b.stride_b[d];
          row /= b.dim[d];
        }
        strip(
            out + i, len, [&](int64_t j, int lanes) __attribute__((always_inline)) {
              F x = !b.inner_a ? set1(A::one(*pa)) : lanes == kW ? A::get(pa + j) : A::get_n(pa + j, lanes);
              F y = !b.inner_b ? set1(B::one(*pb)) : lanes == kW ? B::get(pb + j) : B::get_n(pb + j, lanes);
              return f(x, y);
            });
        i += len;
      }
    });
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
