// Broadcast operands with short rows, gathered into tiles in the layout of the result (repeated,
// widened or copied), over which a map of maps.h runs for more than one row.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "ops/elementwise/walk.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using elementwise::kOperands;

constexpr int64_t kTile = 1024;  // elements of an operand on the stack
struct alignas(64) Tile {
  char bytes[(kTile + kW) * 8];
};

// Layouts of a tile: copy() a row of n elements, or repeat() its first one n times. Up to kW
// elements more are written; the next row overwrites them or they are unused. WidenLayout: a stored
// format, as f32.
template <class W>
struct WidenLayout {
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
// Bits unchanged.
template <class T>
struct BitsLayout {
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

// f(WidenLayout<...>{}) or f(BitsLayout<...>{}) for an element type.
template <class Fn>
INVAR_INLINE void with_layout(DType t, Fn f) {
  switch (t) {
    case DType::f32: return f(WidenLayout<F32>{});
    case DType::bf16: return f(WidenLayout<Bf16>{});
    case DType::f16: return f(WidenLayout<F16>{});
    case DType::i32:
    case DType::u32: return f(BitsLayout<uint32_t>{});
    case DType::i64:
    case DType::u64:
    case DType::f64: return f(BitsLayout<uint64_t>{});
    case DType::i16:
    case DType::u16: return f(BitsLayout<uint16_t>{});
    default: return f(BitsLayout<uint8_t>{});
  }
}

// The position of operand k at row `row` of the outer loops: the index of each loop, and the
// offset.
struct OperandCursor {
  int64_t index[kMaxRank], at;
};
INVAR_INLINE OperandCursor cursor_at(const elementwise::BroadcastLoops& w, int k, int64_t row) {
  OperandCursor p{};
  for (int d = 0; d < w.rank; ++d) {
    p.index[d] = row % w.dim[d];
    row /= w.dim[d];
    p.at += p.index[d] * w.stride[k][d];
  }
  return p;
}
INVAR_INLINE void next(OperandCursor& p, const elementwise::BroadcastLoops& w, int k) {
  for (int d = 0; d < w.rank; ++d) {
    p.at += w.stride[k][d];
    if (++p.index[d] < w.dim[d]) return;
    p.index[d] = 0;
    p.at -= w.dim[d] * w.stride[k][d];
  }
}

// Gathers the elements of operand k that broadcast to elements [i, i + count) of the result.
template <class Layout>
INVAR_INLINE void gather(Tile& tile, const elementwise::BroadcastLoops& w, int k, const void* data, int64_t i,
                         int64_t count) {
  auto from = static_cast<const typename Layout::From*>(data);
  auto to = reinterpret_cast<typename Layout::To*>(tile.bytes);
  OperandCursor place = cursor_at(w, k, i / w.inner);
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
INVAR_INTERNAL void gather(Tile& tile, const elementwise::BroadcastLoops& w, int k, const View& v, int64_t i,
                           int64_t count) {
  with_layout(v.dtype,
              [&](auto layout) { gather<decltype(layout)>(tile, w, k, v.as<const char>(), i, count); });
}
// Loads `count` contiguous elements at p, or one.
INVAR_INTERNAL void load_tile(Tile& tile, const char* p, int64_t count, DType t) {
  with_layout(t, [&](auto layout) {
    using Layout = decltype(layout);
    Layout::copy(reinterpret_cast<typename Layout::To*>(tile.bytes),
                 reinterpret_cast<const typename Layout::From*>(p), count);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
