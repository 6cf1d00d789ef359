// A block of outputs, whatever b is made of: the chains of a panel, 256 x kPanel, stay in the first cache for all rows of
// the block; between chains the sums lie in scratch (join_block). Compiled once per instruction set.
#pragma once
#include "ops/matmul/matmul.h"
#include "kernels/cpu/gemm_blocking.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::Cut;
using matmul::Shape;

constexpr int kWidenRows = 4 * kMaxRows;  // from here on a packed chain is widened once, not by every tile

// Scratch: rows of a, chains of b as floats, what else b needs, and the sums between chains.
struct Work {
  float *a, *b, *more, *sums;
  int64_t level;  // floats of one of the kept sums
};
Work work(const Cut& c, int64_t more, void* scratch) {
  int64_t kept = c.chains * kRow;
  Work w;
  w.a = static_cast<float*>(scratch);
  w.b = w.a + (c.copies_a ? (c.rows * kept + 15) / 16 * 16 : 0);
  w.more = w.b + c.together * kPanel * kChain;
  w.sums = w.more + (more + 15) / 16 * 16;
  w.level = c.kept * c.rows * kPanel;
  return w;
}
size_t work_bytes(const Cut& c, int64_t more) {
  Work w = work(c, more, nullptr);
  return static_cast<size_t>(w.sums - static_cast<float*>(nullptr) + num::kSumsKept * w.level) *
         sizeof(float);
}

struct Unit {
  const Call& call;
  const float* a;
  int64_t lda;  // of a as it lies
  float* out;
  int64_t rows, first, panels;
};

// Columns [from, to) of the unit's rows are written.
INVAR_INLINE void finished(const Shape& s, const Unit& u, int64_t from, int64_t to) {
  ops::finished(u.call, {u.out - u.call.out[0].as<float>() + from, to - from, u.rows, s.n});
}
constexpr int64_t kToldColumns = 256;  // at least, at once: as long as a chain, so that a call counts little

// b.columns(panel, count, block of k, rows, go) calls go(columns) for `count` panels; b.ahead(panel, k) says what to fetch,
// b.in_place(rows) whether columns are read without a copy.
template <class B>
void product(const Shape& s, const Cut& c, const B& b, const Unit& u, const Work& w, bool a_is_there) {
  const int64_t blocks = num::contraction_blocks(s.k);
  // Panels that lie ready meet the only tile of rows one after another, as many as there are.
  const int64_t together = blocks == 1 && u.rows <= kMaxRows && b.in_place(u.rows) ? u.panels : c.together;
  for (int64_t from = 0; from < blocks; from += c.chains) {
    const int64_t to = num::min_i64(from + c.chains, blocks);
    for (int64_t kb = from; c.copies_a && !a_is_there && kb < to; ++kb) {
      num::Range r = num::block_range(kb, s.k);
      float* copy = w.a + (kb - from) * c.rows * kRow;
      if (s.trans_a)
        copy_turned<Widen<F32>>(u.a + r.begin * u.lda, u.lda, u.rows, r.end - r.begin, copy, kRow);
      else
        copy_rows<Widen<F32>>(u.a + r.begin, u.lda, u.rows, r.end - r.begin, copy, kRow);
    }
    int64_t told = u.first * kPanel;
    for (int64_t panel = 0; panel < u.panels; panel += together) {
      const int64_t count = num::min_i64(together, u.panels - panel), column = (u.first + panel) * kPanel;
      for (int64_t kb = from; kb < to; ++kb) {
        const num::Range r = num::block_range(kb, s.k);
        const Place place{num::block_place(kb, s.k),
                          w.sums + (c.chains < blocks ? panel : 0) * c.rows * kPanel,
                          c.rows,
                          w.level,
                          u.out + column,
                          s.n,
                          s.n - column};
        // Next comes the next block of k of these panels, else the first of the next panels.
        const bool deeper = kb + 1 < to;
        const int64_t next_panel = panel + (deeper ? 0 : together);
        Ahead next;
        if (next_panel < u.panels) next = b.ahead(u.first + next_panel, (deeper ? kb + 1 : from) * kChain);
        b.columns(u.first + panel, count, r, u.rows, [&](auto columns) {
          using C = decltype(columns);
          const int64_t k = r.end - r.begin;
          if constexpr (!C::kFew)
            if (c.copies_a)
              return down(Spaced<true>{w.a + (kb - from) * c.rows * kRow, kRow}, columns, count, k, u.rows,
                          place, next);
          down(Spaced<false>{u.a + r.begin, u.lda}, columns, count, k, u.rows, place, next);
        });
      }
      if (to < blocks) continue;
      const int64_t end = num::min_i64(s.n, column + count * kPanel);
      if (panel + count < u.panels && end - told < kToldColumns) continue;
      finished(s, u, told, end);
      told = end;
    }
  }
}

// Units [begin, end) of a call: make(batch) gives the b of a product.
template <class Make>
INVAR_INLINE void each_unit(const Call& call, const Shape& s, const Cut& c, const Work& w, int64_t begin,
                            int64_t end, Make make) {
  int64_t copied = -1;  // the block of rows whose a is in scratch
  const bool whole = c.chains >= num::contraction_blocks(s.k);
  for (int64_t unit = begin, runs; unit < end; unit += runs) {
    const int64_t row_block = unit / c.runs, batch = row_block / c.row_blocks,
                  row = row_block % c.row_blocks * c.rows;
    // Runs of the same rows are one: all where k is taken as a whole, and nothing is kept from panel to panel.
    runs = num::min_i64(end, (row_block + 1) * c.runs) - unit;
    if (!whole) {
      const int64_t parts = (runs * c.run + c.kept - 1) / c.kept;
      runs = (runs + parts - 1) / parts;
    }
    const matmul::Offsets at = matmul::offsets(s, batch);
    Unit u{call, nullptr, 0, nullptr, 0, 0, 0};
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
      finished(s, u, u.first * kPanel, num::min_i64(s.n, (u.first + u.panels) * kPanel));
      continue;
    }
    make(at, [&](const auto& b) { product(s, c, b, u, w, copied == row_block); });
    if (whole) copied = row_block;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
