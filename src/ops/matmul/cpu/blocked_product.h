// A block of outputs, generic in the format of B: the 256 x kPanel panel of one K block stays in
// the L1 cache for all rows of the block; partial sums are in scratch between K blocks
// (join_block). Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_blocking.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::Shape;
using matmul::WorkPartition;

template <class B>
int wide(int rows) {  // panels per tile
  int v = tile_vectors(rows, B::kMaxVectors);
  return v > kVectorsPerPanel ? v / kVectorsPerPanel : 1;
}

// From this many rows on a packed K block is widened once per block, not once per tile.
constexpr int kWidenRows = 4 * kMaxRows;

// MR rows of A by NV vectors of B whose numbers are made in registers: make(sink) calls sink(k, w),
// k ascending.
template <int MR, int NV, class Make>
INVAR_INLINE void multiply_made(const float* a, int64_t lda, F (&c)[MR * NV], Make make) {
  F acc[MR * NV];
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) acc[i] = zero();
  make([&](int64_t k, F(&w)[NV]) __attribute__((always_inline)) {
#pragma GCC unroll 32
    for (int r = 0; r < MR; ++r) {
      const F x = set1(a[r * lda + k]);
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v)  // contraction.2
        acc[r * NV + v] = fma(x, w[v], acc[r * NV + v]);
    }
  });
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) c[i] = acc[i];
}

// Scratch: packed rows of A, K blocks of B as floats, format-specific data of B, and partial sums.
struct ProductScratch {
  float *a, *b, *more, *sums;
  int64_t level;  // floats per level of kept partial sums
};
ProductScratch product_scratch(const WorkPartition& c, int64_t more, void* scratch) {
  int64_t kept = c.chains * kPackedRow;
  ProductScratch w;
  w.a = static_cast<float*>(scratch);
  w.b = w.a + (c.copies_a ? (c.rows * kept + 15) / 16 * 16 : 0);
  w.more = w.b + c.tile_panels * kPanel * kChain;
  w.sums = w.more + (more + 15) / 16 * 16;
  w.level = c.sum_panels * c.rows * kPanel;
  return w;
}
size_t product_scratch_bytes(const WorkPartition& c, int64_t more) {
  ProductScratch w = product_scratch(c, more, nullptr);
  return static_cast<size_t>(w.sums - static_cast<float*>(nullptr) + num::kSumsKept * w.level) *
         sizeof(float);
}

struct OutputBlock {
  const Call& call;
  const float* a;
  int64_t lda;  // stride of A
  float* out;
  int64_t rows, first, panels;
};

// Reports that columns [from, to) of the block's rows are written.
INVAR_INLINE void notify_epilogue(const Shape& s, const OutputBlock& u, int64_t from, int64_t to) {
  ops::notify_epilogue(u.call, {u.out - u.call.out[0].as<float>() + from, to - from, u.rows, s.n});
}
// The minimum per callback: as many as a K block has rows, so that the callback costs little.
constexpr int64_t kEpilogueColumns = 256;

// b.tile_panels(rows) panels, at most those of the partition, meet a tile of so many rows;
// b.columns(panel, count, K block, rows, go) calls go(columns) with `count` panels as a PanelsOfB;
// b.next_range(panel, k) is the range to prefetch; b.in_place(rows) says whether panels are read
// without a copy.
template <class B>
void compute_block(const Shape& s, const WorkPartition& c, const B& b, const OutputBlock& u,
                   const ProductScratch& w, bool a_is_packed) {
  const int64_t blocks = num::contraction_blocks(s.k);
  // Panels that need no copy meet the only row tile one after another, all of them.
  const int64_t tile_panels =
      blocks == 1 && u.rows <= kMaxRows && b.in_place(u.rows) ? u.panels : b.tile_panels(u.rows);
  for (int64_t from = 0; from < blocks; from += c.chains) {
    const int64_t to = num::min_i64(from + c.chains, blocks);
    for (int64_t kb = from; c.copies_a && !a_is_packed && kb < to; ++kb) {
      num::Range r = num::block_range(kb, s.k);
      float* copy = w.a + (kb - from) * c.rows * kPackedRow;
      if (s.trans_a)
        pack_transposed<PackWidened<F32>>(u.a + r.begin * u.lda, u.lda, u.rows, r.end - r.begin, copy,
                                          kPackedRow);
      else
        pack_rows<PackWidened<F32>>(u.a + r.begin, u.lda, u.rows, r.end - r.begin, copy, kPackedRow);
    }
    int64_t reported = u.first * kPanel;
    for (int64_t panel = 0; panel < u.panels; panel += tile_panels) {
      const int64_t count = num::min_i64(tile_panels, u.panels - panel), column = (u.first + panel) * kPanel;
      for (int64_t kb = from; kb < to; ++kb) {
        const num::Range r = num::block_range(kb, s.k);
        const StoredKBlock output{num::block_position(kb, s.k),
                                  w.sums + (c.chains < blocks ? panel : 0) * c.rows * kPanel,
                                  c.rows,
                                  w.level,
                                  u.out + column,
                                  s.n,
                                  s.n - column};
        // Next comes the next K block of these panels, else the first of the next panels.
        const bool deeper = kb + 1 < to;
        const int64_t next_panel = panel + (deeper ? 0 : tile_panels);
        PrefetchRange next;
        if (next_panel < u.panels)
          next = b.next_range(u.first + next_panel, (deeper ? kb + 1 : from) * kChain);
        b.columns(u.first + panel, count, r, u.rows, [&](auto columns) {
          using C = decltype(columns);
          const int64_t k = r.end - r.begin;
          if constexpr (!C::kUnpackedA)
            if (c.copies_a)
              return macrokernel(DirectA<true>{w.a + (kb - from) * c.rows * kPackedRow, kPackedRow}, columns,
                                 count, k, u.rows, output, next);
          macrokernel(DirectA<false>{u.a + r.begin, u.lda}, columns, count, k, u.rows, output, next);
        });
      }
      if (to < blocks) continue;
      const int64_t end = num::min_i64(s.n, column + count * kPanel);
      if (panel + count < u.panels && end - reported < kEpilogueColumns) continue;
      notify_epilogue(s, u, reported, end);
      reported = end;
    }
  }
}

// Computes units [begin, end) of a call. make(offsets, go) provides the B of a product.
template <class Make>
INVAR_INLINE void for_each_unit(const Call& call, const Shape& s, const WorkPartition& c,
                                const ProductScratch& w, int64_t begin, int64_t end, Make make) {
  int64_t copied = -1;  // the row block whose A is packed in scratch
  const bool whole = c.chains >= num::contraction_blocks(s.k);
  for (int64_t unit = begin, runs; unit < end; unit += runs) {
    const int64_t row_block = unit / c.runs, batch = row_block / c.row_blocks,
                  row = row_block % c.row_blocks * c.rows;
    // Runs of panels of the same rows are merged: all of them if K is one piece and no sums are
    // kept between panels.
    runs = num::min_i64(end, (row_block + 1) * c.runs) - unit;
    if (!whole) {
      const int64_t parts = (runs * c.run + c.sum_panels - 1) / c.sum_panels;
      runs = (runs + parts - 1) / parts;
    }
    const matmul::Offsets at = matmul::offsets(s, batch);
    OutputBlock u{call, nullptr, 0, nullptr, 0, 0, 0};
    u.lda = s.trans_a ? s.m : s.k;
    u.a = call.in[0].as<const float>() + at.a + (s.trans_a ? row : row * s.k);
    u.out = call.out[0].as<float>() + (batch * s.m + row) * s.n;
    u.rows = num::min_i64(c.rows, s.m - row);
    u.first = unit % c.runs * c.run;
    u.panels = num::min_i64(runs * c.run, c.panels - u.first);
    if (s.k == 0) {  // matmul.4
      for (int64_t r = 0; r < u.rows; ++r)
        for (int64_t j = u.first * kPanel; j < num::min_i64(s.n, (u.first + u.panels) * kPanel); ++j)
          u.out[r * s.n + j] = 0;
      notify_epilogue(s, u, u.first * kPanel, num::min_i64(s.n, (u.first + u.panels) * kPanel));
      continue;
    }
    make(at, [&](const auto& b) { compute_block(s, c, b, u, w, copied == row_block); });
    if (whole) copied = row_block;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
