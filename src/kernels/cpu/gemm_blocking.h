// The GEMM macro-kernel over one block of K: register tiles of rows x columns, whose sums are kept
// in memory between K blocks. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_epilogue.h"
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/gemm_packing.h"
#include "num/contract/lanes.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using num::kChain;
constexpr int64_t kPackedRow = kChain + 18;  // stride of packed rows of A: avoids L1 bank conflicts

// Panels covered by a tile of full height.
constexpr int64_t kPanelsPerTile = tile_vectors(kMaxRows, 8) > kVectorsPerPanel
                                       ? tile_vectors(kMaxRows, 8) / kVectorsPerPanel
                                       : 1;

// The part of B that is read next, prefetched into the L2 cache meanwhile: `count` runs of `bytes`,
// `hop` bytes apart.
struct PrefetchRange {
  const char* at = nullptr;
  int64_t count = 0, bytes = 0, hop = 0;
};
// Rows of the result, and of what is added to it, that a tile needs when its chains are summed.
struct ResultPrefetch {
  const float *out, *other;  // of the first row; other: or null
  int64_t n, other_stride;   // from a row to the next
  int row, rows, each;       // the next one, all of them, with a piece of k
};
// Prefetches of both for a tile, some lines per kPrefetchPeriod of K: many at once would stall the
// tile's own loads.
constexpr int64_t kPrefetchPeriod = 32;
struct TilePrefetch {
  const char* at;
  int64_t lines;
  ResultPrefetch wanted{};
};
template <int NV>
INVAR_INLINE void prefetch_result(ResultPrefetch& w, int rows) {
  constexpr int kLine = 64 / sizeof(float);
  for (int i = 0; i < rows && w.row < w.rows; ++i, ++w.row)
#pragma GCC unroll 8
    for (int j = 0; j < NV * kW; j += kLine) {
      __builtin_prefetch(w.out + w.row * w.n + j, 1);
      if (w.other) __builtin_prefetch(w.other + w.row * w.other_stride + j);
    }
}
// Calls go(from, to) over [begin, end) in pieces of K, with prefetches between pieces.
template <int NV, class Go>
INVAR_INLINE void for_each_k_piece(TilePrefetch& f, int64_t begin, int64_t end, Go go) {
  for (int64_t to; begin < end; begin = to) {
    to = f.lines || f.wanted.each ? num::min_i64(begin + kPrefetchPeriod, end) : end;
    for (int64_t i = 0; i < f.lines; ++i, f.at += 64) __builtin_prefetch(f.at, 0, 2);
    prefetch_result<NV>(f.wanted, f.wanted.each);
    go(begin, to);
  }
}

// The A operand of one K block as strided rows: `ld` elements apart, kPackedRow if packed.
template <bool kCopied>
struct DirectA {
  static constexpr bool kByColumn = false;  // a bias is of rows
  const float* data;
  int64_t ld;
  INVAR_INLINE DirectA skip(const DirectA& a, int64_t rows) { return {a.data + rows * a.ld, a.ld}; }
  template <int MR, int NV, class B>
  INVAR_INLINE bool sum(const DirectA& a, const B& b, int64_t k, F (&c)[MR * NV], TilePrefetch& next) {
    const int64_t ld = kCopied ? kPackedRow : a.ld;
    if constexpr (B::kUnpackedA)
      return prefetch_result<NV>(next.wanted, MR), microkernel<MR, NV>(a.data, ld, b, 0, k, c), true;
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) c[i] = zero();
    if constexpr (!B::kUnpackedA)
      for_each_k_piece<NV>(
          next, 0, k, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
            microkernel_accumulate<MR, NV>(a.data, ld, b, begin, end, c);
          });
    return true;
  }
};
// The A operand of one K block through an indirection buffer (as in indirect convolution): K is
// split into spans. Element k < end of a span is at pointer + shift + k, where the pointers of a
// span start at `first` in the buffer.
struct KSpan {
  int64_t shift, end, first;
};
struct IndirectA {
  static constexpr bool kByColumn = true;  // the bias may be per column (GemmEpilogue::by_column)
  const float* const* pointers;
  const KSpan* spans;
  // If not null, a pointer to zeros: a span for which all rows of a tile point there is skipped
  // (contraction.5).
  const float* zeros;
  INVAR_INLINE IndirectA skip(const IndirectA& a, int64_t rows) {
    return {a.pointers + rows, a.spans, a.zeros};
  }
  // Returns false if the whole chain was skipped.
  template <int MR, int NV, class B>
  INVAR_INLINE bool sum(const IndirectA& a, const B& b, int64_t k, F (&c)[MR * NV], TilePrefetch& next) {
    bool some = !a.zeros;
#pragma GCC unroll 32
    for (int i = 0; i < MR * NV; ++i) c[i] = zero();
    const KSpan* s = a.spans;
    for (int64_t begin = 0; begin < k; begin = s->end, ++s) {
      if (a.zeros) {
        int r = 0;
        while (r < MR && a.pointers[s->first + r] == a.zeros) ++r;
        if (r == MR) continue;
        some = true;
      }
      RowPointers<MR> rows;
#pragma GCC unroll 32
      for (int r = 0; r < MR; ++r) rows.row[r] = a.pointers[s->first + r] + s->shift;
      for_each_k_piece<NV>(
          next, begin, s->end, [&](int64_t from, int64_t to) __attribute__((always_inline)) {
            microkernel_accumulate<MR, NV>(rows, b, from, to, c);
          });
    }
    return some;
  }
};

// The place of the FMA chains of one K block of a block of outputs. E: GemmEpilogue, or StoreRule
// if nothing else follows.
template <class E>
struct KBlockOutputWith {
  num::BlockPosition block;
  float* sums;  // of the first row and panel
  int64_t rows, level;
  float* out;          // of the first row and column
  int64_t n, columns;  // row stride of the result; columns from the first one to the end
  E epilogue{};
};
using KBlockOutput = KBlockOutputWith<GemmEpilogue>;
using StoredKBlock = KBlockOutputWith<StoreRule>;
// A tile in it: its first row, and its first vector of columns.
struct TileOrigin {
  int64_t row, v;
};

// Sets c[0..MR * NV) to the finished contraction, or keeps the partial sums and returns false.
template <int MR, int NV, class E>
INVAR_INLINE bool join_chains(const KBlockOutputWith<E>& p, TileOrigin corner, F (&c)[MR * NV]) {
  if (p.block.opens && p.block.last && p.block.segment == 0) {  // a single chain
    if (!p.epilogue.plain)
#pragma GCC unroll 32
      for (int i = 0; i < MR * NV; ++i) c[i] = add(zero(), c[i]);  // contraction.3
    return true;
  }
  float* const sums = p.sums + (corner.v / kVectorsPerPanel * p.rows + corner.row) * kPanel +
                      corner.v % kVectorsPerPanel * kW;
  num::INVAR_ISA_NS::join_block(
      p.block, c, [&](int i, int sum) __attribute__((always_inline)) {
        int v = i % NV;
        return sums + sum * p.level + (v / kVectorsPerPanel * p.rows + i / NV) * kPanel +
               v % kVectorsPerPanel * kW;
      });
  return p.block.last;
}

template <int MR, int NV, class A, class B, class E>
INVAR_INLINE void compute_tile(const A& a, const B& b, int64_t k, const KBlockOutputWith<E>& p,
                               TileOrigin corner, TilePrefetch& next) {
  const E& f = p.epilogue;
  float* const out = p.out + corner.row * p.n + corner.v * kW;
  const int64_t other_stride = f.other_ld ? f.other_ld : p.n;
  const float* const other = f.other ? f.other + corner.row * other_stride + corner.v * kW : nullptr;
  const bool by_column = A::kByColumn && f.by_column;
  const float* const bias = f.bias ? f.bias + (by_column ? corner.v * kW : corner.row) : nullptr;
  next.wanted = {};
  if (p.block.last)
    next.wanted = {
        out, other, p.n, other_stride, 0, MR, static_cast<int>((MR * kPrefetchPeriod + k - 1) / k)};
  asm("" : "+m"(next.wanted));  // keep it in memory: the registers are for the tile
  F c[MR * NV];
  const bool some = a.template sum<MR, NV>(a, b, k, c, next);
  if (!some && !p.block.opens && !p.block.closes) return;  // the segment sum, which is not -0, stays
  if (!join_chains<MR, NV>(p, corner, c)) return;
  auto at = [&](int i) __attribute__((always_inline)) {
    return i / NV * p.n + i % NV * kW;
  };
  auto by_other = [&](int i) __attribute__((always_inline)) {
    return i / NV * other_stride + i % NV * kW;
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
    if (!is_nontrivial(f))
      return all([&](int i) __attribute__((always_inline)) { return canonicalize(c[i]); });
    const F low = relu_floor(f);
    auto plainly = [&](auto bias_of_it) __attribute__((always_inline)) {
      if (!other)
        return all([&](int i) __attribute__((always_inline)) {
          return apply_epilogue_fast(c[i], bias_of_it(i), low);
        });
      all([&](int i) __attribute__((always_inline)) {
        return apply_epilogue_fast(c[i], bias_of_it(i), load(other + by_other(i)), low);
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
    const int lanes = valid_lanes(columns - i % NV * kW);
    if (lanes > 0)
      store_part(out + at(i),
                 apply_epilogue(f, load(kept + i * kW), bias_at(i), other ? other + by_other(i) - f.other : 0,
                                lanes),
                 lanes);
  }
}

// One row of tiles: MR rows of A from `row` on times `panels` panels of B
// (kernels/cpu/gemm_microkernel.h). Operands are passed by reference: a copy right after a partial
// write would stall on store forwarding.
template <int MR, class A, class B, class E>
[[gnu::noinline]] void macrokernel_row(const A& all, const B& b, int64_t panels, int64_t k,
                                       const KBlockOutputWith<E>& p, int64_t row, TilePrefetch next) {
  constexpr int kWide = tile_vectors(MR, B::kMaxVectors), kNarrow = tile_vectors(MR, kVectorsPerPanel);
  const A a = all.skip(all, row);
  for (int64_t v = 0; v < panels * kVectorsPerPanel;) {
    const auto from = b.skip(b, v);
    if (kWide > kNarrow && v + kWide <= panels * kVectorsPerPanel) {
      compute_tile<MR, kWide>(a, from, k, p, {row, v}, next);
      v += kWide;
    } else {
      compute_tile<MR, kNarrow>(a, from, k, p, {row, v}, next);
      v += kNarrow;
    }
  }
}

// The macro-kernel: `rows` rows, in tiles of nearly equal height.
template <class A, class B, class E>
void macrokernel(const A& a, const B& b, int64_t panels, int64_t k, int64_t rows,
                 const KBlockOutputWith<E>& p, PrefetchRange next) {
  int64_t tiles = (rows + B::kRows - 1) / B::kRows;
  const int64_t share =
      tiles < 4 ? 0 : (next.count * ((next.bytes + 63) / 64) + tiles - 1) / tiles;  // lines a tile
  int64_t offset = 0;
  for (int64_t t = 0, row = 0; t < tiles; ++t) {
    TilePrefetch fetch{next.at + offset, 0};
    if (next.count == 1) {
      const int64_t pieces = panels * ((k + kPrefetchPeriod - 1) / kPrefetchPeriod);
      fetch.lines = offset < next.bytes ? (share + pieces - 1) / pieces : 0;
      offset += share * 64;
    }
    for (int64_t line = 0; line < share && next.count > 1; ++line) {
      __builtin_prefetch(next.at + offset, 0, 2);
      if ((offset += 64) >= next.bytes) offset = 0, next.at += next.hop, --next.count;
    }
    int height = static_cast<int>(rows / tiles + (t < rows % tiles));
    dispatch_tile_rows<B::kRows>(
        height, [&](auto mr) { macrokernel_row<decltype(mr)::value>(a, b, panels, k, p, row, fetch); });
    row += height;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
