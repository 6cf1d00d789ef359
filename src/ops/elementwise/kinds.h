// What each operation takes: a Kind per operation, from table.h. Included behind the maps it names: Map, one_f32, test_f32,
// binary_f32, heavy_f32, compare_f32, single, couple and choose are loops in maps.h and kernels in maps.cuh.
#pragma once
#include "ops/elementwise/table.h"
#include "ops/elementwise/walk.h"

// The part of the table that a file takes.
#ifndef INVAR_KINDS
#define INVAR_KINDS INVAR_ELEMENTWISE
#endif

namespace invar::ops::INVAR_ISA_NS {
namespace {

using elementwise::kScalars;

// A loop for each element type that an operation takes; f32 stands for bf16 and f16 too where it has several operands.
struct Kind {
  Map f32 = nullptr, f64 = nullptr, i64 = nullptr, i32 = nullptr, i8 = nullptr, u8 = nullptr,
      boolean = nullptr, u64 = nullptr, u32 = nullptr, words = nullptr;  // words: i16 and u16
  int operands = 1;
  bool truth = false;  // the result is bool, else what the last operand is (f32 where that is widened)
  const char* scalar[kScalars] = {};
};

// The constructors that table.h names. `scaled`: with attributes; `heavy`: of many instructions.
template <class Fn>
constexpr Kind light(Fn) {
  return {.f32 = one_f32<Fn, 0, true>};
}
// Of binary64 as well.
template <class Fn>
constexpr Kind light_real(Fn) {
  return {.f32 = one_f32<Fn, 0, true>, .f64 = single<Fn, double>};
}
// Of binary64 alone.
template <class Fn>
constexpr Kind binary64(Fn) {
  return {.f64 = single<Fn, double>};
}
template <class Fn>
constexpr Kind unary(Fn) {
  return {.f32 = one_f32<Fn, 0, false>};
}
template <class Fn>
constexpr Kind scaled(Fn, const char* a) {
  return {.f32 = one_f32<Fn, 1, true>, .scalar = {a}};
}
template <class Fn>
constexpr Kind scaled(Fn, const char* a, const char* b) {
  return {.f32 = one_f32<Fn, 2, true>, .scalar = {a, b}};
}
template <class Fn>
constexpr Kind scaled_heavy(Fn, const char* a) {
  return {.f32 = one_f32<Fn, 1, false>, .scalar = {a}};
}
template <class Fn>
constexpr Kind scaled_heavy(Fn, const char* a, const char* b) {
  return {.f32 = one_f32<Fn, 2, false>, .scalar = {a, b}};
}
template <class Fn>
constexpr Kind unary_bits(Fn) {
  return {.i64 = single<Fn, int64_t>,
          .i32 = single<Fn, int32_t>,
          .i8 = single<Fn, int8_t>,
          .u8 = single<Fn, uint8_t>,
          .u64 = single<Fn, int64_t>};
}
template <class Fn>
constexpr Kind unary_number(Fn f) {
  Kind k = unary_bits(f);
  k.f32 = one_f32<Fn, 0, true>;
  k.f64 = single<Fn, double>;
  k.u64 = single<Fn, uint64_t>;
  return k;
}
template <class Fn>
constexpr Kind test_real(Fn) {
  return {.f32 = test_f32<Fn, 0>, .f64 = single<Fn, double, uint8_t>, .truth = true};
}
template <class Fn>
constexpr Kind test(Fn, const char* a, const char* b) {
  return {.f32 = test_f32<Fn, 2>, .truth = true, .scalar = {a, b}};
}
template <class Fn>
constexpr Kind binary(Fn) {
  return {.f32 = binary_f32<Fn>, .operands = 2};
}
template <class Fn>
constexpr Kind binary_heavy(Fn) {
  return {.f32 = heavy_f32<Fn>, .operands = 2};
}
template <class Fn>
constexpr Kind power(Fn) {
  return {.f32 = heavy_f32<Fn>, .i64 = couple<Fn, int64_t>, .i32 = couple<Fn, int32_t>, .operands = 2};
}
template <class Fn>
constexpr Kind binary_bits(Fn) {
  return {.i64 = couple<Fn, int64_t>,
          .i32 = couple<Fn, int32_t>,
          .i8 = couple<Fn, int8_t>,
          .u8 = couple<Fn, uint8_t>,
          .u64 = couple<Fn, int64_t>,  // the same bits with and without a sign
          .operands = 2};
}
template <class Fn>
constexpr Kind binary_integer(Fn f) {
  Kind k = binary_bits(f);
  k.u64 = couple<Fn, uint64_t>;
  return k;
}
template <class Fn>
constexpr Kind of_floats(Kind k, Fn) {
  k.f32 = binary_f32<Fn>;
  k.f64 = couple<Fn, double>;
  return k;
}
template <class Fn>
constexpr Kind binary_number(Fn f) {
  return of_floats(binary_integer(f), f);
}
template <class Fn>
constexpr Kind binary_wrapping(Fn f) {
  return of_floats(binary_bits(f), f);
}
template <class Fn>
constexpr Kind compare(Fn) {
  return {.f32 = compare_f32<Fn>,
          .f64 = couple<Fn, double, uint8_t>,
          .i64 = couple<Fn, int64_t, uint8_t>,
          .i32 = couple<Fn, int32_t, uint8_t>,
          .i8 = couple<Fn, int8_t, uint8_t>,
          .u8 = couple<Fn, uint8_t, uint8_t>,
          .u64 = couple<Fn, uint64_t, uint8_t>,
          .operands = 2,
          .truth = true};
}
template <class Fn>
constexpr Kind compare_all(Fn f) {
  Kind k = compare(f);
  k.boolean = couple<Fn, graph::Truth, uint8_t>;
  return k;
}
template <class Fn>
constexpr Kind logic(Fn) {
  return {.boolean = couple<Fn, graph::Truth, uint8_t>, .operands = 2, .truth = true};
}
template <class Fn>
constexpr Kind negation(Fn) {
  return {.boolean = single<Fn, graph::Truth, uint8_t>, .truth = true};
}
template <class Fn>
constexpr Kind choice(Fn) {
  return {.f32 = choose<Fn, uint32_t, true>,
          .f64 = choose<Fn, uint64_t, true>,
          .i64 = choose<Fn, uint64_t>,
          .i32 = choose<Fn, uint32_t>,
          .i8 = choose<Fn, uint8_t>,
          .u8 = choose<Fn, uint8_t>,
          .boolean = choose<Fn, uint8_t>,
          .u64 = choose<Fn, uint64_t>,
          .u32 = choose<Fn, uint32_t>,
          .words = choose<Fn, uint16_t>,
          .operands = 3};
}

// A type for each graph.
#ifdef __CUDACC__
#define INVAR_CALLED __device__
#else
#define INVAR_CALLED [[gnu::always_inline]]
#endif
#define INVAR_EACH(how, name, ...)               \
  struct GraphOf_##name {                        \
    template <class... X>                        \
    INVAR_CALLED auto operator()(X... x) const { \
      return graph::name(x...);                  \
    }                                            \
  };                                             \
  constexpr Kind k_##name = how(GraphOf_##name {} __VA_OPT__(, ) __VA_ARGS__);
INVAR_KINDS(INVAR_EACH)
#undef INVAR_EACH
#undef INVAR_CALLED

INVAR_INLINE Map map_of(const Kind& k, DType t) {
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
