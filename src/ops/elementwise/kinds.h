// The element types and maps of each operation, from ops.toml. Included after the maps it names:
// Map, unary_f32, test_f32, binary_f32, binary_graph_f32, binary_heavy_f32, compare_f32,
// unary_scalar, binary_scalar and select_scalar are loops in maps.h and kernels in maps.cuh.
#pragma once
#include "ops/elementwise/table.h"
#include "ops/elementwise/walk.h"

// The part of the table that a file instantiates.
#ifndef INVAR_KINDS
#define INVAR_KINDS INVAR_ELEMENTWISE
#endif

namespace invar::ops::INVAR_ISA_NS {
namespace {

using elementwise::kScalars;

// A map per element type of an operation; f32 also serves bf16 and f16 if there are several
// operands.
struct TypedMaps {
  Map f32 = nullptr, f64 = nullptr, i64 = nullptr, i32 = nullptr, i8 = nullptr, u8 = nullptr,
      boolean = nullptr, u64 = nullptr, u32 = nullptr, words = nullptr;  // words: i16 and u16
  int operands = 1;
  bool truth = false;  // the result is bool, else the type of the last operand (f32 if that is widened)
  const char* scalar[kScalars] = {};
};

// The constructors that ops.toml names. `scaled`: with attributes; `heavy`: many instructions.
template <class Fn>
constexpr TypedMaps light(Fn) {
  return {.f32 = unary_f32<Fn, 0, true>};
}
// These have binary64, too.
template <class Fn>
constexpr TypedMaps light_real(Fn) {
  return {.f32 = unary_f32<Fn, 0, true>, .f64 = unary_scalar<Fn, double>};
}
// These have binary64 alone.
template <class Fn>
constexpr TypedMaps binary64(Fn) {
  return {.f64 = unary_scalar<Fn, double>};
}
template <class Fn>
constexpr TypedMaps unary(Fn) {
  return {.f32 = unary_f32<Fn, 0, false>};
}
template <class Fn>
constexpr TypedMaps scaled(Fn, const char* a) {
  return {.f32 = unary_f32<Fn, 1, true>, .scalar = {a}};
}
template <class Fn>
constexpr TypedMaps scaled(Fn, const char* a, const char* b) {
  return {.f32 = unary_f32<Fn, 2, true>, .scalar = {a, b}};
}
template <class Fn>
constexpr TypedMaps scaled_heavy(Fn, const char* a) {
  return {.f32 = unary_f32<Fn, 1, false>, .scalar = {a}};
}
template <class Fn>
constexpr TypedMaps scaled_heavy(Fn, const char* a, const char* b) {
  return {.f32 = unary_f32<Fn, 2, false>, .scalar = {a, b}};
}
template <class Fn>
constexpr TypedMaps unary_bits(Fn) {
  return {.i64 = unary_scalar<Fn, int64_t>,
          .i32 = unary_scalar<Fn, int32_t>,
          .i8 = unary_scalar<Fn, int8_t>,
          .u8 = unary_scalar<Fn, uint8_t>,
          .u64 = unary_scalar<Fn, int64_t>};
}
template <class Fn>
constexpr TypedMaps unary_number(Fn f) {
  TypedMaps k = unary_bits(f);
  k.f32 = unary_f32<Fn, 0, true>;
  k.f64 = unary_scalar<Fn, double>;
  k.u64 = unary_scalar<Fn, uint64_t>;
  return k;
}
template <class Fn>
constexpr TypedMaps test_real(Fn) {
  return {.f32 = test_f32<Fn, 0>, .f64 = unary_scalar<Fn, double, uint8_t>, .truth = true};
}
template <class Fn>
constexpr TypedMaps test(Fn, const char* a, const char* b) {
  return {.f32 = test_f32<Fn, 2>, .truth = true, .scalar = {a, b}};
}
template <class Fn>
constexpr TypedMaps binary(Fn) {
  return {.f32 = binary_f32<Fn>, .operands = 2};
}
template <class Fn>
constexpr TypedMaps binary_graph(Fn) {
  return {.f32 = binary_graph_f32<Fn>, .operands = 2};
}
template <class Fn>
constexpr TypedMaps binary_heavy(Fn) {
  return {.f32 = binary_heavy_f32<Fn>, .operands = 2};
}
template <class Fn>
constexpr TypedMaps power(Fn) {
  return {.f32 = binary_heavy_f32<Fn>,
          .i64 = binary_scalar<Fn, int64_t>,
          .i32 = binary_scalar<Fn, int32_t>,
          .operands = 2};
}
template <class Fn>
constexpr TypedMaps binary_bits(Fn) {
  return {.i64 = binary_scalar<Fn, int64_t>,
          .i32 = binary_scalar<Fn, int32_t>,
          .i8 = binary_scalar<Fn, int8_t>,
          .u8 = binary_scalar<Fn, uint8_t>,
          .u64 = binary_scalar<Fn, int64_t>,  // the same bits signed and unsigned
          .operands = 2};
}
template <class Fn>
constexpr TypedMaps binary_integer(Fn f) {
  TypedMaps k = binary_bits(f);
  k.u64 = binary_scalar<Fn, uint64_t>;
  return k;
}
template <class Fn>
constexpr TypedMaps of_floats(TypedMaps k, Fn) {
  k.f32 = binary_f32<Fn>;
  k.f64 = binary_scalar<Fn, double>;
  return k;
}
template <class Fn>
constexpr TypedMaps binary_number(Fn f) {
  return of_floats(binary_integer(f), f);
}
template <class Fn>
constexpr TypedMaps binary_wrapping(Fn f) {
  return of_floats(binary_bits(f), f);
}
template <class Fn>
constexpr TypedMaps compare(Fn) {
  return {.f32 = compare_f32<Fn>,
          .f64 = binary_scalar<Fn, double, uint8_t>,
          .i64 = binary_scalar<Fn, int64_t, uint8_t>,
          .i32 = binary_scalar<Fn, int32_t, uint8_t>,
          .i8 = binary_scalar<Fn, int8_t, uint8_t>,
          .u8 = binary_scalar<Fn, uint8_t, uint8_t>,
          .u64 = binary_scalar<Fn, uint64_t, uint8_t>,
          .operands = 2,
          .truth = true};
}
template <class Fn>
constexpr TypedMaps compare_all(Fn f) {
  TypedMaps k = compare(f);
  k.boolean = binary_scalar<Fn, graph::Bool8, uint8_t>;
  return k;
}
template <class Fn>
constexpr TypedMaps logic(Fn) {
  return {.boolean = binary_scalar<Fn, graph::Bool8, uint8_t>, .operands = 2, .truth = true};
}
template <class Fn>
constexpr TypedMaps negation(Fn) {
  return {.boolean = unary_scalar<Fn, graph::Bool8, uint8_t>, .truth = true};
}
template <class Fn>
constexpr TypedMaps ternary_select(Fn) {
  return {.f32 = select_scalar<Fn, uint32_t, true>,
          .f64 = select_scalar<Fn, uint64_t, true>,
          .i64 = select_scalar<Fn, uint64_t>,
          .i32 = select_scalar<Fn, uint32_t>,
          .i8 = select_scalar<Fn, uint8_t>,
          .u8 = select_scalar<Fn, uint8_t>,
          .boolean = select_scalar<Fn, uint8_t>,
          .u64 = select_scalar<Fn, uint64_t>,
          .u32 = select_scalar<Fn, uint32_t>,
          .words = select_scalar<Fn, uint16_t>,
          .operands = 3};
}

// One functor type per graph.
#ifdef __CUDACC__
#define INVAR_CALLED __device__
#else
#define INVAR_CALLED [[gnu::always_inline]]
#endif
#define INVAR_EACH(how, name, onnx, ...)         \
  struct GraphOf_##name {                        \
    template <class... X>                        \
    INVAR_CALLED auto operator()(X... x) const { \
      return graph::name(x...);                  \
    }                                            \
  };                                             \
  constexpr TypedMaps k_##name = how(GraphOf_##name {} __VA_OPT__(, ) __VA_ARGS__);
INVAR_KINDS(INVAR_EACH)
#undef INVAR_EACH
#undef INVAR_CALLED

INVAR_INLINE Map map_of(const TypedMaps& k, DType t) {
  switch (t) {
    case DType::f32: return k.f32;
    case DType::bf16:
    case DType::f16: return k.operands > 1 ? k.f32 : nullptr;
    case DType::i64: return k.i64;
    case DType::i32: return k.i32;
    case DType::i8: return k.i8;
    case DType::u8: return k.u8;
    case DType::boolean: return k.boolean;
    case DType::f64: return k.f64;
    case DType::u64: return k.u64;
    case DType::u32: return k.u32;
    case DType::i16:
    case DType::u16: return k.words;
  }
  return nullptr;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
