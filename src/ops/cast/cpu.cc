// CPU cast: lanes from f32, bf16 and f16 to these and to integers; a scalar loop for every other
// pair.
#include <type_traits>

#include "kernels/cpu/vector_io.h"
#include "ops/cast/cast.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

#define INVAR_DTYPES(X) \
  X(f32) X(bf16) X(f16) X(f64) X(i64) X(i32) X(i8) X(u8) X(boolean) X(i16) X(u16) X(u32) X(u64)

bool is_float32_like(DType t) {
  return t == DType::f32 || t == DType::bf16 || t == DType::f16;
}
// Tells whether there are lanes from f32, bf16 and f16 to t.
bool has_lanes(DType t) {
  return is_float32_like(t) || t == DType::i32 || t == DType::i64 || t == DType::i8 || t == DType::u8;
}

template <class Fn>
INVAR_INLINE void strip_h(uint16_t* out, int64_t n, Fn f) {
  int64_t i = 0;
  for (; i + kW <= n; i += kW) store_h(out + i, f(i, kW));
  if (i < n) store_h_n(out + i, f(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}

// Integers; a partial last vector goes through a temporary.
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

// The C++ type of stored elements, or void if there is none.
template <DType t>
struct Native {
  using T = void;
};
#define INVAR_NATIVE(dtype, type) \
  template <>                     \
  struct Native<DType::dtype> {   \
    using T = type;               \
  };
INVAR_NATIVE(f32, float)
INVAR_NATIVE(f64, double)
INVAR_NATIVE(i64, int64_t)
INVAR_NATIVE(i32, int32_t)
INVAR_NATIVE(i8, int8_t)
INVAR_NATIVE(u8, uint8_t)
INVAR_NATIVE(boolean, uint8_t)
INVAR_NATIVE(i16, int16_t)
INVAR_NATIVE(u16, uint16_t)
INVAR_NATIVE(u32, uint32_t)
INVAR_NATIVE(u64, uint64_t)
#undef INVAR_NATIVE

// Converts elements [begin, end) of dtypes known at compile time. From integers C++ converts as
// formats.10 does: to floats with one rounding (none is subnormal), to integers by the low bits.
template <DType from, DType to>
void each(const View& in, const View& out, int64_t begin, int64_t end) {
  using X = typename Native<from>::T;
  using Y = typename Native<to>::T;
  if constexpr (!std::is_void_v<X> && !std::is_void_v<Y> && (std::is_integral_v<X> || to == DType::boolean)) {
    auto x = in.as<const X>();
    auto y = out.as<Y>();
    int64_t i = begin;
    if constexpr (from == DType::i64 && to == DType::f32)
      for (; i + kW <= end; i += kW) store(y + i, to_float(load_l(x + i)));
    for (; i < end; ++i)
      if constexpr (from == DType::boolean || to == DType::boolean)
        y[i] = static_cast<Y>(x[i] != 0);
      else
        y[i] = static_cast<Y>(x[i]);
  } else {
    for (int64_t i = begin; i < end; ++i) write_number(out.data, to, i, read_number(in.data, from, i), from);
  }
}
template <DType from>
void each_to(const View& in, const View& out, int64_t begin, int64_t end) {
  switch (out.dtype) {
#define INVAR_TO(t) \
  case DType::t: return each<from, DType::t>(in, out, begin, end);
    INVAR_DTYPES(INVAR_TO)
#undef INVAR_TO
  }
}
void each_from(const View& in, const View& out, int64_t begin, int64_t end) {
  switch (in.dtype) {
#define INVAR_FROM(t) \
  case DType::t: return each_to<DType::t>(in, out, begin, end);
    INVAR_DTYPES(INVAR_FROM)
#undef INVAR_FROM
  }
}

void range(const Call& call, int64_t from, int64_t to) {
  const View &in = call.in[0], &out = call.out[0];
  bool bf16_copy =
      in.dtype == DType::bf16 && out.dtype == DType::bf16;  // keeps subnormals, which to_bf16 would flush
  if (!is_float32_like(in.dtype) || !has_lanes(out.dtype) || bf16_copy) return each_from(in, out, from, to);
  with_format(in.dtype, [&](auto format) {
    using X = decltype(format);
    auto x = in.as<const typename X::T>() + from;
    auto get = [&](int64_t i, int lanes) { return lanes == kW ? X::get(x + i) : X::get_n(x + i, lanes); };
    // Saturating to 32 bits and then to 8 equals saturating to 8.
    auto byte = [&](int64_t i, int lanes) __attribute__((always_inline)) {
      return truncate(get(i, lanes));
    };
    if (out.dtype == DType::i32) {
      strip_integers(out.as<int32_t>() + from, to - from, get);
    } else if (out.dtype == DType::i64) {
      strip_integers(out.as<int64_t>() + from, to - from, get);
    } else if (out.dtype == DType::i8) {
      strip_bytes(out.as<int8_t>() + from, to - from, byte);
    } else if (out.dtype == DType::u8) {
      strip_bytes(out.as<uint8_t>() + from, to - from, byte);
    } else if (out.dtype == DType::f32) {
      strip_exact(out.as<float>() + from, to - from,
                  [&](int64_t i, int lanes) { return canonical_nan(get(i, lanes)); });
    } else if (out.dtype == DType::bf16) {
      strip_h(out.as<uint16_t>() + from, to - from,
              [&](int64_t i, int lanes) { return to_bf16(get(i, lanes)); });
    } else {
      strip_h(out.as<uint16_t>() + from, to - from,
              [&](int64_t i, int lanes) { return to_f16(get(i, lanes)); });
    }
  });
}

void region(const Call& call, const Region& r) {
  for (int64_t i = 0; i < r.rows; ++i) range(call, r.at + i * r.pitch, r.at + i * r.pitch + r.n);
}
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { region(call, r); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "cast",
                             .isa = INVAR_ISA,
                             .units = chunk_units,
                             .run = INVAR_ISA_NS::run,
                             .epilogue = true,
                             .region = INVAR_ISA_NS::region};

}  // namespace invar::ops
