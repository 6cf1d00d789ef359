// The packed format of a constant B in its own dtype: panels, with zeros in columns beyond N, in
// groups of kGroup (the last may be smaller): [matrices][groups][K][panels of the group][kPanel]. A
// single row of A, whose tile is as wide as a group, reads one contiguous stream. Compiled once per
// instruction set.
#pragma once
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/gemm_packing.h"
#include "num/contract/lanes.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGroup = tile_vectors(1, 8) > kVectorsPerPanel ? tile_vectors(1, 8) / kVectorsPerPanel : 1;

// Offset of panel `p` of a matrix of `panels` panels, and the stride of its rows of k, in elements.
struct PanelOffset {
  int64_t at, row;
};
INVAR_INLINE PanelOffset panel_offset(int64_t p, int64_t panels, int64_t k) {
  const int64_t first = p / kGroup * kGroup, width = num::min_i64(kGroup, panels - first);
  return {(first * k + p - first) * kPanel, width * kPanel};
}

// Packed panels of a matrix, from panel `first` and row `begin` of k on. A tile reads from one
// group only (WorkPartition::tile_panels). One of several rows prefetches kPrefetchBytes ahead
// (kPrefetchTileRows).
constexpr int kPrefetchBytes = 2048;
template <class R>
struct PackedPanels {
  static constexpr int kRows = kMaxRows, kMaxVectors = 8;
  static constexpr bool kUnpackedA = false;
  const typename R::T* matrix;
  int64_t first, panels, k, begin;
  INVAR_INLINE PanelsOfB<R, kVectorsPerPanel, kPrefetchBytes> skip(const PackedPanels& s, int64_t v) {
    const PanelOffset p = panel_offset(s.first + v / kVectorsPerPanel, s.panels, s.k);
    return {s.matrix + p.at + s.begin * p.row + v % kVectorsPerPanel * kW, p.row, kPanel};
  }
};

// Reads a packed dtype in tiles (Read), and packs it (Keep).
template <class W>
struct PackedFormat {
  using Read = W;
  using Keep = PackWidened<W>;
};
template <>
struct PackedFormat<Bf16> {
  using Read = ReadBf16Pairs;
  using Keep = PackBf16Pairs;
};
template <>
struct PackedFormat<F16> {
  using Read = F16;
  using Keep = PackF16;
};

// Widens k rows of a packed panel to floats.
template <class R>
void widen(const typename R::T* from, int64_t row, int64_t k, float* to) {
  for (int64_t i = 0; i < k; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kPanel; j += 2 * kW) {
      F x[2];
      load_vectors<2>(
          R{}, x, [&](int v) __attribute__((always_inline)) { return from + i * row + j + v * kW; });
      store(to + i * kPanel + j, x[0]), store(to + i * kPanel + j + kW, x[1]);
    }
}

struct MatricesOfB {
  int64_t count, k, n;
  bool trans;
};
MatricesOfB matrices(const View& b, const Attributes& attrs) {
  const bool trans = MatmulAttributes(attrs).trans_b != 0;
  MatricesOfB m{1, b.dim[b.rank - (trans ? 1 : 2)], b.dim[b.rank - (trans ? 2 : 1)], trans};
  for (int d = 0; d + 2 < b.rank; ++d) m.count *= b.dim[d];
  return m;
}

size_t float_pack_bytes(const View& b, int i, const Attributes& attrs) {
  if (i != 1 || b.dtype == DType::f64) return 0;
  const MatricesOfB m = matrices(b, attrs);
  return static_cast<size_t>(m.count * ((m.n + kPanel - 1) / kPanel) * kPanel * m.k) * size_of(b.dtype);
}

void pack_floats(const View& b, const Attributes& attrs, void* packed) {
  const MatricesOfB m = matrices(b, attrs);
  with_format(b.dtype, [&](auto format) {
    using T = typename decltype(format)::T;
    const int64_t panels = (m.n + kPanel - 1) / kPanel;
    T* to = static_cast<T*>(packed);
    for (int64_t i = 0; i < m.count; ++i)
      for (int64_t p = 0; p < panels; ++p) {
        const int64_t j = p * kPanel;
        const PanelOffset place = panel_offset(p, panels, m.k);
        pack_panel<typename PackedFormat<decltype(format)>::Keep>(
            b.as<const T>() + i * m.k * m.n + (m.trans ? j * m.k : j), m.trans ? m.k : m.n, m.trans, m.k,
            num::min_i64(m.n - j, kPanel), to + i * panels * kPanel * m.k + place.at, place.row);
      }
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
