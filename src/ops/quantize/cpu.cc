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

// Calls f(i, n, run) for the runs of [begin, end): n elements from i on.
template <class Fn>
INVAR_INLINE void for_each_scale_run(const Call& call, int64_t begin, int64_t end, Fn f) {
  const ScaleLayout g = scale_layout(call);
  const int64_t size = call.out[0].elements();
  int64_t i = begin * kChunk;
  const int64_t to = end * kChunk < size ? end * kChunk : size;
  while (i < to) {
    const ScaleRun run = scale_run_at(g, i, size);
    const int64_t n = (run.end < to ? run.end : to) - i;
    f(i, n, run);
    i += n;
  }
}

template <class T>
INVAR_INLINE void quantize(const Call& call, int64_t begin, int64_t end) {
  const auto* x = call.in[0].as<const float>();
  const auto* scale = call.in[1].as<const float>();
  const T* zeros = call.in.size() > 2 ? call.in[2].as<const T>() : nullptr;
  T* out = call.out[0].as<T>();
  for_each_scale_run(call, begin, end, [&](int64_t at, int64_t n, ScaleRun run) {
    if (!run.each) {
      const F s = set1(scale[run.at]);
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
INVAR_INLINE void dequantize(const Call& call, int64_t begin, int64_t end) {
  const T* q = call.in[0].as<const T>();
  const auto* scale = call.in[1].as<const float>();
  const T* zeros = call.in.size() > 2 ? call.in[2].as<const T>() : nullptr;
  auto* out = call.out[0].as<float>();
  for_each_scale_run(call, begin, end, [&](int64_t at, int64_t n, ScaleRun run) {
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

void run_quantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  if (call.out[0].dtype == DType::i8)
    quantize<int8_t>(call, begin, end);
  else
    quantize<uint8_t>(call, begin, end);
}
void run_dequantize(const Call& call, int, int64_t begin, int64_t end, void*) {
  switch (call.in[0].dtype) {
    case DType::i8: return dequantize<int8_t>(call, begin, end);
    case DType::u8: return dequantize<uint8_t>(call, begin, end);
    default: dequantize<int32_t>(call, begin, end);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(quantize_linear), INVAR_ROW_OF(dequantize_linear);
const CpuKernel INVAR_ROW_OF(quantize_linear) = {
    .op = "quantize_linear", .isa = INVAR_ISA, .units = chunk_units, .run = INVAR_ISA_NS::run_quantize};
const CpuKernel INVAR_ROW_OF(dequantize_linear) = {
    .op = "dequantize_linear", .isa = INVAR_ISA, .units = chunk_units, .run = INVAR_ISA_NS::run_dequantize};

}  // namespace invar::ops
