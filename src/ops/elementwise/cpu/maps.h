// Graphs as loops over contiguous elements, for the operation tables of kinds.h.
#pragma once
#include "ops/elementwise/graphs/activations.h"
#include "ops/elementwise/graphs/float64.h"
#include "ops/elementwise/graphs/gradients.h"
#include "ops/elementwise/graphs/integer.h"
#include "ops/elementwise/graphs/remainder.h"
#include "ops/elementwise/walk.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using elementwise::kOperands;
using elementwise::kScalars;

// n elements: operand k is at in[k], or repeats in[k][0] if one[k].
struct Strip {
  const void* in[kOperands];
  bool one[kOperands];
  void* out;
  int64_t n;
  float scalar[kScalars];
  template <class T>
  INVAR_INLINE const T* at(const Strip& s, int k) {
    return static_cast<const T*>(s.in[k]);
  }
};
using Map = void (*)(const Strip&);

// strip() for graphs of few instructions: unrolled by four, so that loop overhead is hidden.
template <class Fn>
INVAR_INLINE void strip_light(float* out, int64_t n, Fn f) {
  int64_t i = 0;
  for (; i + 4 * kW <= n; i += 4 * kW) {
    F a = canonicalize(f(i, kW)), b = canonicalize(f(i + kW, kW)), c = canonicalize(f(i + 2 * kW, kW)),
      d = canonicalize(f(i + 3 * kW, kW));
    store(out + i, a);
    store(out + i + kW, b);
    store(out + i + 2 * kW, c);
    store(out + i + 3 * kW, d);
  }
  strip(
      out + i, n - i, [&](int64_t j, int lanes) __attribute__((always_inline)) { return f(i + j, lanes); });
}

// One operand. is_light: few instructions per vector.
template <class Fn, int scalars, bool is_light>
void unary_f32(const Strip& s) {
  auto x = Strip::at<float>(s, 0);
  float a = s.scalar[0], b = s.scalar[1];
  auto f = [=](int64_t i, int lanes) __attribute__((always_inline)) {
    if constexpr (scalars == 2)
      return Fn{}(load_part(x + i, lanes), a, b);
    else if constexpr (scalars == 1)
      return Fn{}(load_part(x + i, lanes), a);
    else
      return Fn{}(load_part(x + i, lanes));
  };
  auto out = static_cast<float*>(s.out);
  if constexpr (is_light)
    strip_light(out, s.n, f);
  else
    strip(out, s.n, f);
}

// f(i, lanes) of two operands: a separate loop for each broadcast case, so that no loop branches.
template <class Loop, class Fn>
INVAR_INLINE void binary_lanes(const Strip& s, Loop loop, Fn f) {
  auto a = Strip::at<float>(s, 0), b = Strip::at<float>(s, 1);
  if (s.one[0]) {
    F x = set1(*a);
    loop([=](int64_t i, int n) __attribute__((always_inline)) { return f(x, load_part(b + i, n)); });
  } else if (s.one[1]) {
    F y = set1(*b);
    loop([=](int64_t i, int n) __attribute__((always_inline)) { return f(load_part(a + i, n), y); });
  } else {
    loop([=](int64_t i, int n)
             __attribute__((always_inline)) { return f(load_part(a + i, n), load_part(b + i, n)); });
  }
}
template <class Fn>
void binary_f32(const Strip& s) {
  binary_lanes(
      s, [&](auto f) __attribute__((always_inline)) { strip_light(static_cast<float*>(s.out), s.n, f); },
      Fn{});
}
// Graphs of many instructions have one loop for all three cases, to compile them once.
template <class Fn>
void binary_heavy_f32(const Strip& s) {
  auto a = Strip::at<float>(s, 0), b = Strip::at<float>(s, 1);
  const bool one_a = s.one[0], one_b = s.one[1];
  const F x = set1(*a), y = set1(*b);
  strip(
      static_cast<float*>(s.out), s.n, [=](int64_t i, int lanes) __attribute__((always_inline)) {
        return Fn{}(one_a ? x : load_part(a + i, lanes), one_b ? y : load_part(b + i, lanes));
      });
}
template <class Fn>
void binary_graph_f32(const Strip& s) {
  binary_heavy_f32<Fn>(s);
}

// Masks become bytes through a tile of 32-bit zeros and ones.
template <class Fn>
INVAR_INLINE void store_masks(uint8_t* out, int64_t n, Fn mask) {
  constexpr int kTile = 256;
  alignas(64) float tile[kTile];
  for (int64_t at = 0; at < n; at += kTile) {
    int64_t count = n - at < kTile ? n - at : kTile;
    strip_exact(
        tile, count, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          return from_bits(select(mask(at + i, lanes), set1_i(1), set1_i(0)));
        });
    auto bits = reinterpret_cast<const uint32_t*>(tile);
    for (int64_t i = 0; i < count; ++i) out[at + i] = static_cast<uint8_t>(bits[i]);
  }
}
template <class Fn>
void compare_f32(const Strip& s) {
  binary_lanes(
      s, [&](auto f) __attribute__((always_inline)) { store_masks(static_cast<uint8_t*>(s.out), s.n, f); },
      Fn{});
}
template <class Fn, int scalars>
void test_f32(const Strip& s) {
  auto x = Strip::at<float>(s, 0);
  float a = s.scalar[0], b = s.scalar[1];
  store_masks(
      static_cast<uint8_t*>(s.out), s.n, [=](int64_t i, int lanes) __attribute__((always_inline)) {
        if constexpr (scalars == 2)
          return Fn{}(load_part(x + i, lanes), a, b);
        else
          return Fn{}(load_part(x + i, lanes));
      });
}

// One element at a time: integers, binary64 and bool.
using graph::as_stored;
template <class Fn, class T, class R = T>
void unary_scalar(const Strip& s) {
  auto x = Strip::at<T>(s, 0);
  auto out = static_cast<R*>(s.out);
  const int64_t n = s.n;  // hoisted: byte stores may alias s
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(as_stored(Fn{}(x[i])));
}
template <class Fn, class T, class R = T>
void binary_scalar(const Strip& s) {
  auto a = Strip::at<T>(s, 0), b = Strip::at<T>(s, 1);
  auto out = static_cast<R*>(s.out);
  const int64_t n = s.n;
  if (s.one[0]) {
    const T x = *a;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(as_stored(Fn{}(x, b[i])));
  } else if (s.one[1]) {
    const T y = *b;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(as_stored(Fn{}(a[i], y)));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(as_stored(Fn{}(a[i], b[i])));
  }
}

// elementwise.15: where; T holds the bits.
template <class Fn, class T, bool is_float = false>
void select_scalar(const Strip& s) {
  auto c = Strip::at<uint8_t>(s, 0);
  auto a = Strip::at<T>(s, 1), b = Strip::at<T>(s, 2);
  auto out = static_cast<T*>(s.out);
  const int64_t n = s.n;
  auto loop = [=](auto at_c, auto at_a, auto at_b) __attribute__((always_inline)) {
    for (int64_t i = 0; i < n; ++i) {
      T v = Fn{}(at_c(i), at_a(i), at_b(i));
      if constexpr (is_float) v = graph::canonical(v);
      out[i] = v;
    }
  };
  auto each_c = [=](int64_t i) { return c[i]; };
  auto each_a = [=](int64_t i) { return a[i]; };
  auto each_b = [=](int64_t i) { return b[i]; };
  T one_a = s.one[1] ? *a : T{}, one_b = s.one[2] ? *b : T{};
  auto all_a = [=](int64_t) { return one_a; };
  auto all_b = [=](int64_t) { return one_b; };
  if (s.one[0]) {
    uint8_t one_c = *c;
    loop([=](int64_t) { return one_c; }, [&](int64_t i) { return a[s.one[1] ? 0 : i]; },
         [&](int64_t i) { return b[s.one[2] ? 0 : i]; });
  } else if (s.one[1] && s.one[2]) {
    loop(each_c, all_a, all_b);
  } else if (s.one[1]) {
    loop(each_c, all_a, each_b);
  } else if (s.one[2]) {
    loop(each_c, each_a, all_b);
  } else {
    loop(each_c, each_a, each_b);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS

#include "ops/elementwise/kinds.h"
