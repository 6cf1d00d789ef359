// One chain of k for a block of outputs: tiles of rows x columns in registers, their sums between chains in memory.
// Compiled once per instruction set.
#pragma once
#include "num/contract/lanes.h"
#include "ops/panel.h"
#include "ops/tile.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using num::kChain;
constexpr int64_t kRow = kChain + 18;  // between copied rows of a: not in one bank of the first cache

// Panels of a tile of full height.
constexpr int64_t kTogether = tile_vectors(kMaxRows, 8) > kPer ? tile_vectors(kMaxRows, 8) / kPer : 1;

// Rows of a for one chain: `ld` elements apart, kRow where they were copied ...
template <bool kCopied>
struct Spaced {
  const float* data;
  int64_t ld;
  INVAR_INLINE Spaced skip(const Spaced& a, int64_t rows) { return {a.data + rows * a.ld, a.ld}; }
  template <int MR, int NV, class B>
  INVAR_INLINE void sum(const Spaced& a, const B& b, int64_t k, F (&c)[MR * NV]) {
    chains<MR, NV>(a.data, kCopied ? kRow : a.ld, b, 0, k, c);
  }
};
// ... or each at a place of its own, in stretches of k: element k < end, behind the stretch before, lies `shift` + k behind the place.
struct Stretch {
  int64_t shift, end;
};
struct Placed {
  const float* data;
  const int64_t* place;
  const Stretch* stretch;
  INVAR_INLINE Placed skip(const Placed& a, int64_t rows) { return {a.data, a.place + rows, a.stretch}; }
  template <int MR, int NV, class B>
  INVAR_INLINE void sum(const Placed& a, const B& b, int64_t k, F (&c)[MR * NV]) {
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) c[i] = zero();
    const Stretch* s = a.stretch;
    for (int64_t begin = 0; begin < k; begin = s->end, ++s) {
      Apart<MR> rows;
#pragma GCC unroll 32
      for (int r = 0; r < MR; ++r) rows.row[r] = a.data + a.place[r] + s->shift;
      extend<MR, NV>(rows, b, begin, s->end, c);
    }
  }
};

// Where the chains of one block of k go.
struct Place {
  num::BlockPlace block;
  float* sums;  // of the tile's first row and panel
  int64_t rows, level;
  float* out;          // of the tile's first row and column
  int64_t n, columns;  // of the whole result; from the tile's first column to its end
  const float* bias =
      nullptr;  // of the tile's first row: added to the stored contraction (spec/contraction.md contraction.6)
};

// Sets c[0..MR * NV) to the contraction, or keeps the sums of an unfinished one: false.
template <int MR, int NV>
INVAR_INLINE bool join(const Place& p, F (&c)[MR * NV]) {
  if (p.block.opens && p.block.last && p.block.segment == 0) {  // one chain is all there is
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) c[i] = add(zero(), c[i]);  // contraction.3
    return true;
  }
  num::INVAR_ISA_NS::join_block(
      p.block, c, [&](int i, int sum) __attribute__((always_inline)) {
        int v = i % NV;
        return p.sums + sum * p.level + (v / kPer * p.rows + i / NV) * kPanel + v % kPer * kW;
      });
  return p.block.last;
}

template <int MR, int NV, class A, class B>
INVAR_INLINE void tile(const A& a, const B& b, int64_t k, const Place& p) {
  constexpr int kLine = 64 / sizeof(float);
  if (p.block.last)  // the lines of the result arrive while the chains are summed
    for (int r = 0; r < MR; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < NV * kW; j += kLine) __builtin_prefetch(p.out + r * p.n + j, 1);
  F c[MR * NV];
  a.template sum<MR, NV>(a, b, k, c);
  if (!join<MR, NV>(p, c)) return;
  if (p.bias)
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) c[i] = add(canon(c[i]), set1(p.bias[i / NV]));
  if (p.columns >= NV * kW) {
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) put(p.out + i / NV * p.n + i % NV * kW, c[i]);
    return;
  }
  for (int i = 0; i < MR * NV; ++i) {
    const int64_t j = i % NV * kW, left = p.columns - j;
    if (left > 0) put_n(p.out + i / NV * p.n + j, c[i], within(left));
  }
}

// MR rows times `panels` panels of b, the columns of a tile (ops/tile.h).
template <int MR, class A, class B>
[[gnu::noinline]] void across(A a, B b, int64_t panels, int64_t k, Place p) {
  constexpr int kWide = tile_vectors(MR, B::kWide), kNarrow = tile_vectors(MR, kPer);
  for (int64_t v = 0; v < panels * kPer;) {
    const auto from = b.skip(b, v);
    Place to = p;
    to.sums += v / kPer * p.rows * kPanel + v % kPer * kW;
    to.out += v * kW, to.columns -= v * kW;
    if (kWide > kNarrow && v + kWide <= panels * kPer) {
      tile<MR, kWide>(a, from, k, to);
      v += kWide;
    } else {
      tile<MR, kNarrow>(a, from, k, to);
      v += kNarrow;
    }
  }
}

// What will be read of b next, fetched into the second cache meanwhile: `count` runs of `bytes`, `hop` apart.
struct Ahead {
  const char* at = nullptr;
  int64_t count = 0, bytes = 0, hop = 0;
};

// `rows` rows, in tiles of nearly equal height.
template <class A, class B>
void down(A a, const B& b, int64_t panels, int64_t k, int64_t rows, Place p, Ahead next) {
  int64_t tiles = (rows + B::kRows - 1) / B::kRows;
  const int64_t share =
      tiles < 4 ? 0 : (next.count * ((next.bytes + 63) / 64) + tiles - 1) / tiles;  // lines a tile
  int64_t offset = 0;
  for (int64_t t = 0; t < tiles; ++t) {
    for (int64_t line = 0; line < share && next.count > 0; ++line) {
      __builtin_prefetch(next.at + offset, 0, 2);
      if ((offset += 64) >= next.bytes) offset = 0, next.at += next.hop, --next.count;
    }
    int height = static_cast<int>(rows / tiles + (t < rows % tiles));
    with_rows<B::kRows>(height, [&](auto mr) { across<decltype(mr)::value>(a, b, panels, k, p); });
    a = a.skip(a, height);
    p.sums += height * kPanel, p.out += height * p.n;
    if (p.bias) p.bias += height;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
