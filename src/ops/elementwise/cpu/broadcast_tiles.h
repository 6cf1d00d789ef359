// Operands whose rows are short, laid out as the result lies: repeated, widened or copied into tiles over which a map of
// maps.h can run for longer than a row.
#pragma once
#include "ops/elementwise/walk.h"
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using elementwise::kOperands;

constexpr int64_t kTile = 1024;  // elements of an operand on the stack
struct alignas(64) Tile {
  char bytes[(kTile + kW) * 8];
};

// How a row of n elements, or its first one n times, is laid: with up to kW elements written beyond it, which are those of
// the next row or nothing. Real: a stored format, as f32.
template <class W>
struct Real {
  using From = typename W::T;
  using To = float;
  INVAR_INLINE void repeat(To* to, const From* p, int64_t n) {
    const F x = set1(W::one(*p));
    for (int64_t i = 0; i < n; i += kW) store(to + i, x);
  }
  INVAR_INLINE void copy(To* to, const From* p, int64_t n) {
    int64_t i = 0;
    for (; i + kW <= n; i += kW) store(to + i, W::get(p + i));
    if (i < n) store(to + i, W::get_n(p + i, static_cast<int>(n - i)));
  }
};
// As it is.
template <class T>
struct Plain {
  using From = T;
  using To = T;
  INVAR_INLINE void repeat(To* to, const From* p, int64_t n) {
    const T x = *p;
    for (int64_t i = 0; i < n; ++i) to[i] = x;
  }
  INVAR_INLINE void copy(To* to, const From* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = p[i];
  }
};

// f(Real<...>{}) or f(Plain<...>{}) for an element type.
template <class Fn>
INVAR_INLINE void with_layout(DType t, Fn f) {
  switch (t) {
    case DType::f32: return f(Real<F32>{});
    case DType::bf16: return f(Real<Bf16>{});
    case DType::f16: return f(Real<F16>{});
    case DType::i32:
    case DType::u32: return f(Plain<uint32_t>{});
    case DType::i64:
    case DType::u64:
    case DType::f64: return f(Plain<uint64_t>{});
    case DType::i16:
    case DType::u16: return f(Plain<uint16_t>{});
    default: return f(Plain<uint8_t>{});
  }
}

// Row `row` of the outer loops: the index in each, and where operand k is there.
struct Place {
  int64_t index[kMaxRank], at;
};
INVAR_INLINE Place place_of(const elementwise::Walk& w, int k, int64_t row) {
  Place p{};
  for (int d = 0; d < w.rank; ++d) {
    p.index[d] = row % w.dim[d];
    row /= w.dim[d];
    p.at += p.index[d] * w.stride[k][d];
  }
  return p;
}
INVAR_INLINE void next(Place& p, const elementwise::Walk& w, int k) {
  for (int d = 0; d < w.rank; ++d) {
    p.at += w.stride[k][d];
    if (++p.index[d] < w.dim[d]) return;
    p.index[d] = 0;
    p.at -= w.dim[d] * w.stride[k][d];
  }
}

// The elements of operand k that belong to elements [i, i + count) of the result.
template <class Layout>
INVAR_INLINE void gather(Tile& tile, const elementwise::Walk& w, int k, const void* data, int64_t i,
                         int64_t count) {
  auto from = static_cast<const typename Layout::From*>(data);
  auto to = reinterpret_cast<typename Layout::To*>(tile.bytes);
  Place place = place_of(w, k, i / w.inner);
  int64_t first = i % w.inner;
  auto rows = [&](auto lay) __attribute__((always_inline)) {
    for (int64_t done = 0; done < count; next(place, w, k), first = 0) {
      int64_t n = w.inner - first < count - done ? w.inner - first : count - done;
      lay(to + done, from + place.at, n);
      done += n;
    }
  };
  if (w.step[k] == 0)
    rows([](auto t, auto p, int64_t n) __attribute__((always_inline)) { Layout::repeat(t, p, n); });
  else
    rows([&](auto t, auto p, int64_t n) __attribute__((always_inline)) { Layout::copy(t, p + first, n); });
}
INVAR_INTERNAL void gather(Tile& tile, const elementwise::Walk& w, int k, const View& v, int64_t i,
                           int64_t count) {
  with_layout(v.dtype,
              [&](auto layout) { gather<decltype(layout)>(tile, w, k, v.as<const char>(), i, count); });
}
// `count` elements that lie at p, or one.
INVAR_INTERNAL void lay(Tile& tile, const char* p, int64_t count, DType t) {
  with_layout(t, [&](auto layout) {
    using Layout = decltype(layout);
    Layout::copy(reinterpret_cast<typename Layout::To*>(tile.bytes),
                 reinterpret_cast<const typename Layout::From*>(p), count);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
