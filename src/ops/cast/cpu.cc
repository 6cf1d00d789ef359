// Lanes from f32, bf16 and f16 to these, i32 and i64; one element at a time for the rest.
#include "ops/cast/cast.h"
#include "ops/lanes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

bool is_float32_like(DType t) {
  return t == DType::f32 || t == DType::bf16 || t == DType::f16;
}

template <class Fn>
INVAR_INLINE void strip_h(uint16_t* out, int64_t n, Fn f) {
  int64_t i = 0;
  for (; i + kW <= n; i += kW) store_h(out + i, f(i, kW));
  if (i < n) store_h_n(out + i, f(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}

// Integers of 32 or 64 bits; the last ones through memory of their own.
INVAR_INLINE void put_integers(int32_t* p, F x) {
  store_i(p, truncate(x));
}
INVAR_INLINE void put_integers(int64_t* p, F x) {
  store_l(p, truncate_wide(x));
}
template <class T, class Fn>
INVAR_INLINE void strip_integers(T* out, int64_t n, Fn f) {
  int64_t i = 0;
  for (; i + kW <= n; i += kW) put_integers(out + i, f(i, kW));
  if (i == n) return;
  T last[kW];
  put_integers(last, f(i, static_cast<int>(n - i)));
  for (int64_t j = i; j < n; ++j) out[j] = last[j - i];
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &in = call.in[0], &out = call.out[0];
  int64_t n = out.elements(), from = begin * kChunk, to = end * kChunk < n ? end * kChunk : n;
  bool bf16_copy =
      in.dtype == DType::bf16 && out.dtype == DType::bf16;  // keeps subnormals, which to_bf16 would not
  bool integers = out.dtype == DType::i32 || out.dtype == DType::i64;
  if (!is_float32_like(in.dtype) || !(is_float32_like(out.dtype) || integers) || bf16_copy) {
    for (int64_t i = from; i < to; ++i)
      write_number(out.data, out.dtype, i, read_number(in.data, in.dtype, i), in.dtype);
    return;
  }
  with_format(in.dtype, [&](auto format) {
    using X = decltype(format);
    auto x = in.as<const typename X::T>() + from;
    auto get = [&](int64_t i, int lanes) { return lanes == kW ? X::get(x + i) : X::get_n(x + i, lanes); };
    if (out.dtype == DType::i32) {
      strip_integers(out.as<int32_t>() + from, to - from, get);
    } else if (out.dtype == DType::i64) {
      strip_integers(out.as<int64_t>() + from, to - from, get);
    } else if (out.dtype == DType::f32) {
      strip_exact(out.as<float>() + from, to - from,
                  [&](int64_t i, int lanes) { return copied(get(i, lanes)); });
    } else if (out.dtype == DType::bf16) {
      strip_h(out.as<uint16_t>() + from, to - from,
              [&](int64_t i, int lanes) { return to_bf16(get(i, lanes)); });
    } else {
      strip_h(out.as<uint16_t>() + from, to - from,
              [&](int64_t i, int lanes) { return to_f16(get(i, lanes)); });
    }
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "cast", .isa = INVAR_ISA, .units = chunk_units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
