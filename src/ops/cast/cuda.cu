// Casts: an elementwise kernel for each pair of element types.
#include <type_traits>

#include "kernels/cuda/vectorized_loop.h"
#include "ops/cast/cast.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

#define INVAR_DTYPES(X) \
  X(f32) X(bf16) X(f16) X(f64) X(i64) X(i32) X(i8) X(u8) X(boolean) X(i16) X(u16) X(u32) X(u64)

// The storage type of a dtype; bf16 and f16 as bits.
template <DType t>
struct Element {
  using T = uint8_t;
};
#define INVAR_ELEMENT(dtype, type) \
  template <>                      \
  struct Element<DType::dtype> {   \
    using T = type;                \
  };
INVAR_ELEMENT(f32, float)
INVAR_ELEMENT(bf16, uint16_t)
INVAR_ELEMENT(f16, uint16_t)
INVAR_ELEMENT(f64, double)
INVAR_ELEMENT(i64, int64_t)
INVAR_ELEMENT(i32, int32_t)
INVAR_ELEMENT(i8, int8_t)
INVAR_ELEMENT(i16, int16_t)
INVAR_ELEMENT(u16, uint16_t)
INVAR_ELEMENT(u32, uint32_t)
INVAR_ELEMENT(u64, uint64_t)
#undef INVAR_ELEMENT

template <DType from, DType to>
struct Conversion {
  using X = typename Element<from>::T;
  using Y = typename Element<to>::T;
  __device__ Y operator()(X x) const {
    constexpr bool is_short = from == DType::bf16 || from == DType::f16,
                   is_integer = std::is_integral_v<X> && !is_short;
    constexpr bool whole_bf16 =
        from == DType::bf16 && to == DType::bf16;  // keeps subnormals, which to_bf16 would not
    if constexpr ((from == DType::f32 || is_short) && !whole_bf16) {
      F wide;
      if constexpr (from == DType::bf16)
        wide = Bf16::get(&x);
      else if constexpr (from == DType::f16)
        wide = F16::get(&x);
      else
        wide = load(&x);
      if constexpr (to == DType::f32) return canonical_nan(wide).v;
      if constexpr (to == DType::bf16) return to_bf16(wide).v;
      if constexpr (to == DType::f16) return to_f16(wide).v;
      if constexpr (to == DType::i32) return truncate(wide).v;
      if constexpr (to == DType::i64) return truncate_wide(wide).v;
    }
    // C++ converts from integers as formats.10 does.
    if constexpr (is_integer && from != DType::boolean && to != DType::boolean && to != DType::bf16 &&
                  to != DType::f16)
      return static_cast<Y>(x);
    Y y;
    write_number(&y, to, 0, read_number(&x, from, 0), from);
    return y;
  }
};

template <DType from, DType to>
void convert(const Call& call, Stream stream) {
  using C = Conversion<from, to>;
  launch_elementwise<Cost::low>(stream, call.out[0].elements(), call.out[0].as<typename C::Y>(), C{},
                                ContiguousOperand<typename C::X>{call.in[0].as<const typename C::X>()});
}
template <DType from>
void convert_from(const Call& call, Stream stream) {
  switch (call.out[0].dtype) {
#define INVAR_TO(t) \
  case DType::t: return convert<from, DType::t>(call, stream);
    INVAR_DTYPES(INVAR_TO)
#undef INVAR_TO
  }
}
void enqueue(const Call& call, Stream stream) {
  switch (call.in[0].dtype) {
#define INVAR_FROM(t) \
  case DType::t: return convert_from<DType::t>(call, stream);
    INVAR_DTYPES(INVAR_FROM)
#undef INVAR_FROM
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "cast", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
