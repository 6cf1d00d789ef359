// One chain of k for a block of outputs: tiles of rows x columns in registers, their sums between chains in memory.
// Compiled once per instruction set.
#pragma once
#include "num/contract/lanes.h"
#include "kernels/cpu/gemm_epilogue.h"
#include "kernels/cpu/gemm_packing.h"
#include "kernels/cpu/gemm_microkernel.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using num::kChain;
constexpr int64_t kRow = kChain + 18;  // between copied rows of a: not in one bank of the first cache

// Panels of a tile of full height.
constexpr int64_t kTogether = tile_vectors(kMaxRows, 8) > kPer ? tile_vectors(kMaxRows, 8) / kPer : 1;

// What will be read of b next, fetched into the second cache meanwhile: `count` runs of `bytes`, `hop` apart.
struct Ahead {
  const char* at = nullptr;
  int64_t count = 0, bytes = 0, hop = 0;
};
// Rows of the result, and of what is added to it, that a tile will want when its chains are summed.
struct Wanted {
  const float *out, *other;  // of the first row; other: or null
  int64_t n, beside;         // from a row to the next
  int row, rows, each;       // the next one, all of them, with a piece of k
};
// A tile's part of both, some lines for every piece of k: many at once would hold up the tile's own loads.
constexpr int64_t kPiece = 32;
struct Fetch {
  const char* at;
  int64_t lines;
  Wanted wanted{};
};
template <int NV>
INVAR_INLINE void fetch(Wanted& w, int rows) {
  constexpr int kLine = 64 / sizeof(float);
  for (int i = 0; i < rows && w.row < w.rows; ++i, ++w.row)
#pragma GCC unroll 8
    for (int j = 0; j < NV * kW; j += kLine) {
      __builtin_prefetch(w.out + w.row * w.n + j, 1);
      if (w.other) __builtin_prefetch(w.other + w.row * w.beside + j);
    }
}
// go(from, to) from begin to end, piece by piece.
template <int NV, class Go>
INVAR_INLINE void in_pieces(Fetch& f, int64_t begin, int64_t end, Go go) {
  for (int64_t to; begin < end; begin = to) {
    to = f.lines || f.wanted.each ? num::min_i64(begin + kPiece, end) : end;
    for (int64_t i = 0; i < f.lines; ++i, f.at += 64) __builtin_prefetch(f.at, 0, 2);
    fetch<NV>(f.wanted, f.wanted.each);
    go(begin, to);
  }
}

// Rows of a for one chain: `ld` elements apart, kRow where they were copied ...
template <bool kCopied>
struct Spaced {
  static constexpr bool kByColumn = false;  // a bias is of rows
  const float* data;
  int64_t ld;
  INVAR_INLINE Spaced skip(const Spaced& a, int64_t rows) { return {a.data + rows * a.ld, a.ld}; }
  template <int MR, int NV, class B>
  INVAR_INLINE bool sum(const Spaced& a, const B& b, int64_t k, F (&c)[MR * NV], Fetch& next) {
    const int64_t ld = kCopied ? kRow : a.ld;
    if constexpr (B::kFew) return fetch<NV>(next.wanted, MR), chains<MR, NV>(a.data, ld, b, 0, k, c), true;
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) c[i] = zero();
    if constexpr (!B::kFew)
      in_pieces<NV>(
          next, 0, k, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
            extend<MR, NV>(a.data, ld, b, begin, end, c);
          });
    return true;
  }
};
// ... or each at a place of its own, in stretches of k: element k < end, behind the stretch before, lies `shift` + k behind a place in
// the list that begins `first` behind the first one.
struct Stretch {
  int64_t shift, end, first;
};
struct Placed {
  static constexpr bool kByColumn = true;  // it may be of columns (Finish::by_column)
  const float* const* place;
  const Stretch* stretch;
  // Not null: a place of zeros, whose products are left out (contraction.5) where all rows of a tile have it.
  const float* zeros;
  INVAR_INLINE Placed skip(const Placed& a, int64_t rows) { return {a.place + rows, a.stretch, a.zeros}; }
  // False: nothing is left of the chain.
  template <int MR, int NV, class B>
  INVAR_INLINE bool sum(const Placed& a, const B& b, int64_t k, F (&c)[MR * NV], Fetch& next) {
    bool some = !a.zeros;
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) c[i] = zero();
    const Stretch* s = a.stretch;
    for (int64_t begin = 0; begin < k; begin = s->end, ++s) {
      if (a.zeros) {
        int r = 0;
        while (r < MR && a.place[s->first + r] == a.zeros) ++r;
        if (r == MR) continue;
        some = true;
      }
      Apart<MR> rows;
#pragma GCC unroll 32
      for (int r = 0; r < MR; ++r) rows.row[r] = a.place[s->first + r] + s->shift;
      in_pieces<NV>(
          next, begin, s->end, [&](int64_t from, int64_t to) __attribute__((always_inline)) {
            extend<MR, NV>(rows, b, from, to, c);
          });
    }
    return some;
  }
};

// Where the chains of one block of k go.
struct Place {
  num::BlockPlace block;
  float* sums;  // of the first row and panel
  int64_t rows, level;
  float* out;          // of the first row and column
  int64_t n, columns;  // of the whole result; from the first column to its end
  Finish finish{};     // where more is to come than the store rule
};
// A tile in it: its first row, and its first vector of columns.
struct Corner {
  int64_t row, v;
};

// Sets c[0..MR * NV) to the contraction, or keeps the sums of an unfinished one: false.
template <int MR, int NV>
INVAR_INLINE bool join(const Place& p, Corner corner, F (&c)[MR * NV]) {
  if (p.block.opens && p.block.last && p.block.segment == 0) {  // one chain is all there is
    if (!p.finish.plain)
#pragma GCC unroll 32
      for (int i = 0; i < MR * NV; ++i) c[i] = add(zero(), c[i]);  // contraction.3
    return true;
  }
  float* const sums = p.sums + (corner.v / kPer * p.rows + corner.row) * kPanel + corner.v % kPer * kW;
  num::INVAR_ISA_NS::join_block(
      p.block, c, [&](int i, int sum) __attribute__((always_inline)) {
        int v = i % NV;
        return sums + sum * p.level + (v / kPer * p.rows + i / NV) * kPanel + v % kPer * kW;
      });
  return p.block.last;
}

template <int MR, int NV, class A, class B>
INVAR_INLINE void tile(const A& a, const B& b, int64_t k, const Place& p, Corner corner, Fetch& next) {
  const Finish& f = p.finish;
  float* const out = p.out + corner.row * p.n + corner.v * kW;
  const int64_t beside = f.other_ld ? f.other_ld : p.n;
  const float* const other = f.other ? f.other + corner.row * beside + corner.v * kW : nullptr;
  const bool by_column = A::kByColumn && f.by_column;
  const float* const bias = f.bias ? f.bias + (by_column ? corner.v * kW : corner.row) : nullptr;
  next.wanted = {};
  if (p.block.last)
    next.wanted = {out, other, p.n, beside, 0, MR, static_cast<int>((MR * kPiece + k - 1) / k)};
  asm("" : "+m"(next.wanted));  // there it stays: registers are for the tile
  F c[MR * NV];
  const bool some = a.template sum<MR, NV>(a, b, k, c, next);
  if (!some && !p.block.opens && !p.block.closes) return;  // its segment, which is not -0, stays
  if (!join<MR, NV>(p, corner, c)) return;
  auto at = [&](int i) __attribute__((always_inline)) {
    return i / NV * p.n + i % NV * kW;
  };
  auto by_other = [&](int i) __attribute__((always_inline)) {
    return i / NV * beside + i % NV * kW;
  };
  auto bias_at = [&](int i) __attribute__((always_inline)) {
    return !bias ? zero() : by_column ? load(bias + i % NV * kW) : set1(bias[i / NV]);
  };
  auto all = [&](auto value) __attribute__((always_inline)) {
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) store(out + at(i), value(i));
  };
  const int64_t columns = p.columns - corner.v * kW;
  if (columns >= NV * kW) {
    if (f.raw) return all([&](int i) __attribute__((always_inline)) { return c[i]; });
    if (!any(f)) return all([&](int i) __attribute__((always_inline)) { return canon(c[i]); });
    const F low = least(f);
    auto plainly = [&](auto bias_of_it) __attribute__((always_inline)) {
      if (!other)
        return all([&](int i)
                       __attribute__((always_inline)) { return finish_plain(c[i], bias_of_it(i), low); });
      all([&](int i) __attribute__((always_inline)) {
        return finish_plain(c[i], bias_of_it(i), load(other + by_other(i)), low);
      });
    };
    if (f.plain && by_column)
      return plainly([&](int i) __attribute__((always_inline)) { return load(bias + i % NV * kW); });
    if (f.plain) return plainly([&](int i) __attribute__((always_inline)) { return set1(bias[i / NV]); });
  }
  float kept[MR * NV * kW];
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) store(kept + i * kW, c[i]);
#pragma GCC unroll 1
  for (int i = 0; i < MR * NV; ++i) {
    const int lanes = within(columns - i % NV * kW);
    if (lanes > 0)
      store_part(out + at(i),
                 finish(f, load(kept + i * kW), bias_at(i), other ? other + by_other(i) - f.other : 0, lanes),
                 lanes);
  }
}

// MR rows of a from `row` on times `panels` panels of b, the columns of a tile (kernels/cpu/gemm_microkernel.h). By reference: what is copied right after
// parts of it were written waits for them.
template <int MR, class A, class B>
[[gnu::noinline]] void across(const A& all, const B& b, int64_t panels, int64_t k, const Place& p,
                              int64_t row, Fetch next) {
  constexpr int kWide = tile_vectors(MR, B::kWide), kNarrow = tile_vectors(MR, kPer);
  const A a = all.skip(all, row);
  for (int64_t v = 0; v < panels * kPer;) {
    const auto from = b.skip(b, v);
    if (kWide > kNarrow && v + kWide <= panels * kPer) {
      tile<MR, kWide>(a, from, k, p, {row, v}, next);
      v += kWide;
    } else {
      tile<MR, kNarrow>(a, from, k, p, {row, v}, next);
      v += kNarrow;
    }
  }
}

// `rows` rows, in tiles of nearly equal height.
template <class A, class B>
void down(const A& a, const B& b, int64_t panels, int64_t k, int64_t rows, const Place& p, Ahead next) {
  int64_t tiles = (rows + B::kRows - 1) / B::kRows;
  const int64_t share =
      tiles < 4 ? 0 : (next.count * ((next.bytes + 63) / 64) + tiles - 1) / tiles;  // lines a tile
  int64_t offset = 0;
  for (int64_t t = 0, row = 0; t < tiles; ++t) {
    Fetch fetch{next.at + offset, 0};
    if (next.count == 1) {
      const int64_t pieces = panels * ((k + kPiece - 1) / kPiece);
      fetch.lines = offset < next.bytes ? (share + pieces - 1) / pieces : 0;
      offset += share * 64;
    }
    for (int64_t line = 0; line < share && next.count > 1; ++line) {
      __builtin_prefetch(next.at + offset, 0, 2);
      if ((offset += 64) >= next.bytes) offset = 0, next.at += next.hop, --next.count;
    }
    int height = static_cast<int>(rows / tiles + (t < rows % tiles));
    with_rows<B::kRows>(height,
                        [&](auto mr) { across<decltype(mr)::value>(a, b, panels, k, p, row, fetch); });
    row += height;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
