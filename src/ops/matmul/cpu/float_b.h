// b of floats: read where it lies if it was packed at load, else copied chain by chain. Compiled once per instruction set.
#pragma once
#include "ops/matmul/packed_b.h"
#include "ops/matmul/cpu/blocked_product.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <class W>
struct Dense {
  using T = typename W::T;
  using P = Packed<W>;
  const Shape& s;
  const Cut& c;
  bool packed;
  const T* matrix;
  float* chain;  // of `together` panels

  // Whether a block of so many rows reads its columns where they lie.
  bool widens(int64_t rows) const { return packed && sizeof(T) != 4 && rows >= kWidenRows; }
  bool in_place(int64_t rows) const { return packed && !widens(rows); }

  Ahead ahead(int64_t panel, int64_t k) const {
    const int64_t j = panel * kPanel, size = static_cast<int64_t>(sizeof(T));
    const int64_t depth = num::min_i64(kChain, s.k - k);
    auto from = [&](int64_t i) { return reinterpret_cast<const char*>(matrix + i); };
    if (packed) {
      const PanelPlace p = place_of(panel, c.panels, s.k);
      return {from(p.at + k * p.row), depth, num::min_i64(c.together * kPanel, p.row) * size, p.row * size};
    }
    if (s.trans_b) return {from(j * s.k + k), c.together * kPanel, depth * size, s.k * size};
    return {from(k * s.n + j), depth, c.together * kPanel * size, s.n * size};
  }

  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t rows, Go go) const {
    // Few rows read a row-major b in place.
    const bool direct = !packed && !s.trans_b && sizeof(T) == 4 && rows <= 2 * kMaxRows;
    const int64_t column = panel * kPanel, k = r.end - r.begin;
    if (in_place(rows)) {
      go(Stream<typename P::Read>{matrix, panel, c.panels, s.k, r.begin});
    } else if (direct && column + count * kPanel <= s.n) {
      go(Columns<F32, kPer>{reinterpret_cast<const float*>(matrix) + r.begin * s.n + column, s.n, kPanel});
    } else {
      const int64_t hop = kPanel * num::min_i64(kChain, s.k);
      for (int64_t p = 0; p < count; ++p) {
        float* to = chain + p * hop;
        const int64_t j = column + p * kPanel;
        if (widens(rows)) {
          const PanelPlace place = place_of(panel + p, c.panels, s.k);
          widen<typename P::Read>(matrix + place.at + r.begin * place.row, place.row, k, to);
        } else {
          copy_panel<Widen<W>>(s.trans_b ? matrix + j * s.k + r.begin : matrix + r.begin * s.n + j,
                               s.trans_b ? s.k : s.n, s.trans_b, k, num::min_i64(kPanel, s.n - j), to);
        }
      }
      go(Columns<F32, kPer>{chain, kPanel, hop});
    }
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
