// B as floats: read in place if packed at load time, else packed one K block at a time. Compiled
// once per instruction set.
#pragma once
#include "ops/matmul/cpu/blocked_product.h"
#include "ops/matmul/packed_b.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <class W>
struct FloatB {
  using T = typename W::T;
  using P = PackedFormat<W>;
  const Shape& s;
  const WorkPartition& c;
  bool packed;
  const T* matrix;
  float* chain;  // of `tile_panels` panels

  // Tells whether a block with this many rows widens a packed K block first, or reads it in place.
  bool widens(int64_t rows) const { return packed && sizeof(T) != 4 && rows >= kWidenRows; }
  bool in_place(int64_t rows) const { return packed && !widens(rows); }

  int64_t tile_panels(int64_t) const { return c.tile_panels; }
  PrefetchRange next_range(int64_t panel, int64_t k) const {
    const int64_t j = panel * kPanel, size = static_cast<int64_t>(sizeof(T));
    const int64_t depth = num::min_i64(kChain, s.k - k);
    auto from = [&](int64_t i) { return reinterpret_cast<const char*>(matrix + i); };
    if (packed) {
      const PanelOffset p = panel_offset(panel, c.panels, s.k);
      return {from(p.at + k * p.row), depth, num::min_i64(c.tile_panels * kPanel, p.row) * size,
              p.row * size};
    }
    if (s.trans_b) return {from(j * s.k + k), c.tile_panels * kPanel, depth * size, s.k * size};
    return {from(k * s.n + j), depth, c.tile_panels * kPanel * size, s.n * size};
  }

  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t rows, Go go) const {
    // A few rows read a row-major B in place.
    const bool direct = !packed && !s.trans_b && sizeof(T) == 4 && rows <= 2 * kMaxRows;
    const int64_t column = panel * kPanel, k = r.end - r.begin;
    if (in_place(rows)) {
      go(PackedPanels<typename P::Read>{matrix, panel, c.panels, s.k, r.begin});
    } else if (direct && column + count * kPanel <= s.n) {
      go(PanelsOfB<F32, kVectorsPerPanel>{reinterpret_cast<const float*>(matrix) + r.begin * s.n + column,
                                          s.n, kPanel});
    } else {
      const int64_t hop = kPanel * num::min_i64(kChain, s.k);
      for (int64_t p = 0; p < count; ++p) {
        float* to = chain + p * hop;
        const int64_t j = column + p * kPanel;
        if (widens(rows)) {
          const PanelOffset place = panel_offset(panel + p, c.panels, s.k);
          widen<typename P::Read>(matrix + place.at + r.begin * place.row, place.row, k, to);
        } else {
          pack_panel<PackWidened<W>>(s.trans_b ? matrix + j * s.k + r.begin : matrix + r.begin * s.n + j,
                                     s.trans_b ? s.k : s.n, s.trans_b, k, num::min_i64(kPanel, s.n - j), to);
        }
      }
      go(PanelsOfB<F32, kVectorsPerPanel>{chain, kPanel, hop});
    }
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
