// Quantization and dequantization of runs: elements that share a scale, or have consecutive scales.
// Compiled once per instruction set.
#pragma once
#include <type_traits>

#include "ops/quantize/cpu/graph.h"
#include "ops/quantize/quantize.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Bytes as 0 ... 255; signed ones are offset by 128, so differences are unchanged.
template <class T>
constexpr int kSignOffset = std::is_signed_v<T> ? 128 : 0;
template <class T>
INVAR_INLINE I offset_bytes(const T* p, int lanes) {
  auto bytes = reinterpret_cast<const uint8_t*>(p);
  return bit_xor(lanes == kW ? load_u8(bytes) : load_u8_n(bytes, lanes), set1_i(kSignOffset<T>));
}

// The scales and zero points of a call; `zeros` is null if there are none.
template <class T>
struct Scales {
  const float* scale;
  const T* zeros;
  explicit Scales(const Call& call)
      : scale(call.in[1].as<const float>()), zeros(call.in.size() > 2 ? call.in[2].as<const T>() : nullptr) {}
  int32_t zero(int64_t at) const { return zeros ? static_cast<int32_t>(zeros[at]) : 0; }
};

// strip_bytes() where rows are short: the last elements are stored as a few larger ones.
template <class T, class Fn>
INVAR_INLINE void strip_row(T* out, int64_t n, Fn f) {
  const int64_t whole = n / (4 * kW) * (4 * kW);
  strip_bytes(out, whole, f);
  int64_t left = n - whole;
  if (left == 0) return;
  I x[4] = {set1_i(0), set1_i(0), set1_i(0), set1_i(0)};
  for (int v = 0; v * kW < left; ++v)
    x[v] = f(whole + v * kW, static_cast<int>(left - v * kW < kW ? left - v * kW : kW));
  T last[4 * kW], *to = out + whole;
  store_limited(last, x);
  const T* from = last;
  for (; left >= 16; left -= 16, from += 16, to += 16) __builtin_memcpy(to, from, 16);
  if (left & 8) __builtin_memcpy(to, from, 8), from += 8, to += 8;
  if (left & 4) __builtin_memcpy(to, from, 4), from += 4, to += 4;
  for (left &= 3; left > 0; --left) *to++ = *from++;
}

// quantized() by one scale. x times 1 / s, within +-1024, is less than 2^-12 from x / s (each of
// three roundings is at most 2^-24 of it), so both round to one integer where the product is 2^-11
// and more from a tie. Where a lane is not, and for NaN, x is divided. A quotient beyond 1023 in
// magnitude saturates whichever integer it rounds to.
struct Divisor {
  F s, inverse;
  bool near_one;  // 1 / s is normal
  explicit Divisor(float scale) : s(set1(scale)), inverse(div(set1(1.0f), s)), near_one(is_near_one(scale)) {}
  INVAR_INLINE bool is_near_one(float scale) {
    const float mag = __builtin_fabsf(scale);
    return mag > 0x1p-100f && mag < 0x1p100f;
  }
};
INVAR_INLINE I quantized(F x, const Divisor& by, I zero) {
  if (by.near_one) {
    const F q = clamp(mul(x, by.inverse), -1024.0f, 1024.0f), shift = set1(0x3p22f);
    const F r = add(q, shift);
    if (all(lt(abs(sub(q, sub(r, shift))), set1(0.5f - 0x1p-11f))))
      return add(bits(r), sub(zero, set1_i(0x4b400000)));
  }
  return quantized(x, by.s, zero);
}

template <class T>
INVAR_INLINE void quantize_run(const float* x, T* out, int64_t n, const Scales<T>& s, ScaleRun run) {
  if (!run.each) {
    const Divisor by(s.scale[run.at]);
    const I zero = set1_i(s.zero(run.at));
    strip_row(out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
      return quantized(get_part<F32>(x + i, lanes), by, zero);
    });
    return;
  }
  strip_row(out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    const I zero =
        s.zeros ? sub(offset_bytes(s.zeros + run.at + i, lanes), set1_i(kSignOffset<T>)) : set1_i(0);
    return quantized(get_part<F32>(x + i, lanes), get_part<F32>(s.scale + run.at + i, lanes), zero);
  });
}

// q - z of n elements, exact.
template <class T>
INVAR_INLINE I difference(const T* q, I zero, int lanes) {
  if constexpr (sizeof(T) == 1)
    return sub(offset_bytes(q, lanes), zero);
  else
    return bits(load_part(reinterpret_cast<const float*>(q), lanes));
}

// Dequantized elements by one scale.
template <class T>
struct Factor {
  F s;
  I zero;
  // An integer times zero or a normal number is zero or normal and not NaN: the store rule changes
  // nothing.
  bool exact;
  Factor(const Scales<T>& of, int64_t at)
      : s(set1(of.scale[at])), zero(set1_i(kSignOffset<T> + of.zero(at))), exact(false) {
    const uint32_t mag = num::f32_bits(of.scale[at]) & 0x7fffffff;
    exact = mag == 0 || (mag >= 0x00800000 && mag < 0x7f800000);
  }
};
template <class T>
INVAR_INLINE F dequantized(const T* q, const Factor<T>& by, int lanes) {
  return mul(to_float(difference(q, by.zero, lanes)), by.s);
}

template <class T>
INVAR_INLINE void dequantize_run(const T* q, float* out, int64_t n, const Scales<T>& s, ScaleRun run) {
  if (run.each) {
    return strip(out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
      I zero = set1_i(kSignOffset<T>);
      if constexpr (sizeof(T) == 1)
        if (s.zeros) zero = offset_bytes(s.zeros + run.at + i, lanes);
      return mul(to_float(difference(q + i, zero, lanes)), get_part<F32>(s.scale + run.at + i, lanes));
    });
  }
  const Factor<T> by(s, run.at);
  auto product = [&](int64_t i, int lanes)
                     __attribute__((always_inline)) { return dequantized(q + i, by, lanes); };
  if (by.exact)
    strip_exact(out, n, product);
  else
    strip(out, n, product);
}

// Dequantized by one scale and quantized by another, without a result between them.
template <class T, class U>
INVAR_INLINE void requantize_run(const T* q, U* out, int64_t n, const Factor<T>& from, const Divisor& to,
                                 I zero) {
  if (from.exact)
    strip_row(out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
      return quantized(dequantized(q + i, from, lanes), to, zero);
    });
  else
    strip_row(out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
      return quantized(canonicalize(dequantized(q + i, from, lanes)), to, zero);
    });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
