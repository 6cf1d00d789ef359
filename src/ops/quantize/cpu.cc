// CPU quantize and dequantize: runs of elements that share a scale, or have consecutive scales.
#include <type_traits>

#include "ops/quantize/cpu/graph.h"
#include "ops/quantize/quantize.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Bytes as 0 ... 255; signed ones are offset by 128, so differences are unchanged.
template <class T>
constexpr int kSignOffset = std::is_signed_v<T> ? 128 : 0;
template <class T>
INVAR_INLINE I offset_bytes(const T* p, int lanes) {
  auto bytes = reinterpret_cast<const uint8_t*>(p);
  return bit_xor(lanes == kW ? load_u8(bytes) : load_u8_n(bytes, lanes), set1_i(kSignOffset<T>));
}

// Calls f(i, n, run) for the runs of a region: n elements from i on.
template <class Fn>
INVAR_INLINE void for_each_scale_run(const Call& call, const Region& r, Fn f) {
  const ScaleLayout g = scale_layout(call);
  const int64_t size = call.out[0].elements();
  // The rows of a tile: each within one index of the axis, or along all of its indices.
  if (g.by_axis && r.rows > 1 && r.pitch % (g.inner > 1 ? g.inner : g.n) == 0) {
    const int64_t column = r.at % (g.inner > 1 ? g.inner : g.n), step = r.pitch / g.inner % g.n;
    int64_t k = g.inner > 1 ? r.at / g.inner % g.n : column;
    if (column + r.n <= (g.inner > 1 ? g.inner : g.n)) {
      for (int64_t i = 0; i < r.rows; ++i) {
        f(r.at + i * r.pitch, r.n, ScaleRun{size, k, g.inner == 1});
        k += g.inner > 1 ? step : 0;
        if (k >= g.n) k -= g.n;
      }
      return;
    }
  }
  for (int64_t row = 0; row < r.rows; ++row) {
    int64_t i = r.at + row * r.pitch;
    const int64_t to = i + r.n;
    while (i < to) {
      const ScaleRun run = scale_run_at(g, i, size);
      const int64_t n = (run.end < to ? run.end : to) - i;
      f(i, n, run);
      i += n;
    }
  }
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
INVAR_INLINE void quantize(const Call& call, const Region& region) {
  const auto* x = call.in[0].as<const float>();
  const auto* scale = call.in[1].as<const float>();
  const T* zeros = call.in.size() > 2 ? call.in[2].as<const T>() : nullptr;
  T* out = call.out[0].as<T>();
  for_each_scale_run(call, region, [&](int64_t at, int64_t n, ScaleRun run) {
    if (!run.each) {
      const Divisor s(scale[run.at]);
      const I zero = set1_i(zeros ? zeros[run.at] : 0);
      strip_bytes(
          out + at, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            return quantized(get_part<F32>(x + at + i, lanes), s, zero);
          });
    } else {
      strip_bytes(
          out + at, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            const I zero =
                zeros ? sub(offset_bytes(zeros + run.at + i, lanes), set1_i(kSignOffset<T>)) : set1_i(0);
            return quantized(get_part<F32>(x + at + i, lanes), get_part<F32>(scale + run.at + i, lanes),
                             zero);
          });
    }
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

template <class T>
INVAR_INLINE void dequantize(const Call& call, const Region& region) {
  const T* q = call.in[0].as<const T>();
  const auto* scale = call.in[1].as<const float>();
  const T* zeros = call.in.size() > 2 ? call.in[2].as<const T>() : nullptr;
  auto* out = call.out[0].as<float>();
  for_each_scale_run(call, region, [&](int64_t at, int64_t n, ScaleRun run) {
    const I none = set1_i(kSignOffset<T>);
    if (run.each) {
      return strip(
          out + at, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            I zero = none;
            if constexpr (sizeof(T) == 1)
              if (zeros) zero = offset_bytes(zeros + run.at + i, lanes);
            return mul(to_float(difference(q + at + i, zero, lanes)),
                       get_part<F32>(scale + run.at + i, lanes));
          });
    }
    const float one = scale[run.at];
    const F s = set1(one);
    const I zero = zeros ? add(none, set1_i(static_cast<int32_t>(zeros[run.at]))) : none;
    auto product = [&](int64_t i, int lanes) __attribute__((always_inline)) {
      return mul(to_float(difference(q + at + i, zero, lanes)), s);
    };
    // An integer times zero or a normal number is zero or normal and not NaN: the store rule
    // changes nothing.
    const uint32_t mag = num::f32_bits(one) & 0x7fffffff;
    if (mag == 0 || (mag >= 0x00800000 && mag < 0x7f800000))
      strip_exact(out + at, n, product);
    else
      strip(out + at, n, product);
  });
}

void region_quantize(const Call& call, const Region& r) {
  if (call.out[0].dtype == DType::i8)
    quantize<int8_t>(call, r);
  else
    quantize<uint8_t>(call, r);
}
void region_dequantize(const Call& call, const Region& r) {
  switch (call.in[0].dtype) {
    case DType::i8: return dequantize<int8_t>(call, r);
    case DType::u8: return dequantize<uint8_t>(call, r);
    default: dequantize<int32_t>(call, r);
  }
}
void run_quantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { region_quantize(call, r); });
}
void run_dequantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { region_dequantize(call, r); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(quantize_linear), INVAR_ROW_OF(dequantize_linear);
const CpuKernel INVAR_ROW_OF(quantize_linear) = {.op = "quantize_linear",
                                                 .isa = INVAR_ISA,
                                                 .units = chunk_units,
                                                 .run = INVAR_ISA_NS::run_quantize,
                                                 .epilogue = true,
                                                 .region = INVAR_ISA_NS::region_quantize};
const CpuKernel INVAR_ROW_OF(dequantize_linear) = {.op = "dequantize_linear",
                                                   .isa = INVAR_ISA,
                                                   .units = chunk_units,
                                                   .run = INVAR_ISA_NS::run_dequantize,
                                                   .epilogue = true,
                                                   .region = INVAR_ISA_NS::region_dequantize};

}  // namespace invar::ops
