// The format of a constant b in its own dtype: its panels, columns beyond N being zero, in groups of kGroup or what is
// left, [matrices][groups][K][panels of the group][kPanel]. A single row of a, whose tile is as wide as a group, reads
// them as one stream. Compiled once per instruction set.
#pragma once
#include "num/contract/lanes.h"
#include "kernels/cpu/gemm_packing.h"
#include "kernels/cpu/gemm_microkernel.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGroup = tile_vectors(1, 8) > kPer ? tile_vectors(1, 8) / kPer : 1;

// Where panel `p` of a matrix of `panels` begins, and how far apart its rows of k are, in elements.
struct PanelPlace {
  int64_t at, row;
};
INVAR_INLINE PanelPlace place_of(int64_t p, int64_t panels, int64_t k) {
  const int64_t first = p / kGroup * kGroup, width = num::min_i64(kGroup, panels - first);
  return {(first * k + p - first) * kPanel, width * kPanel};
}

// Packed panels of a matrix from panel `first` and row `begin` of k on. What a tile reads is of one group (Cut::together),
// and asked for kAheadBytes before: more than the processor fetches by itself.
constexpr int kAheadBytes = 2048;
template <class R>
struct Stream {
  static constexpr int kRows = kMaxRows, kWide = 8;
  static constexpr bool kFew = false;
  const typename R::T* matrix;
  int64_t first, panels, k, begin;
  INVAR_INLINE Columns<R, kPer, kAheadBytes> skip(const Stream& s, int64_t v) {
    const PanelPlace p = place_of(s.first + v / kPer, s.panels, s.k);
    return {s.matrix + p.at + s.begin * p.row + v % kPer * kW, p.row, kPanel};
  }
};

// How a packed dtype is read in tiles.
template <class W>
struct Packed {
  using Read = W;
  using Keep = Widen<W>;
};
template <>
struct Packed<Bf16> {
  using Read = Bf16Pairs;
  using Keep = PairBf16;
};
template <>
struct Packed<F16> {
  using Read = F16;
  using Keep = KeepF16;
};

// k rows of a packed panel as floats.
template <class R>
void widen(const typename R::T* from, int64_t row, int64_t k, float* to) {
  for (int64_t i = 0; i < k; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kPanel; j += 2 * kW) {
      F x[2];
      get_all<2>(
          R{}, x, [&](int v) __attribute__((always_inline)) { return from + i * row + j + v * kW; });
      store(to + i * kPanel + j, x[0]), store(to + i * kPanel + j + kW, x[1]);
    }
}

struct Matrices {
  int64_t count, k, n;
  bool trans;
};
Matrices matrices(const View& b, const Attrs& attrs) {
  const bool trans = attr_i(attrs, "trans_b", 0) != 0;
  Matrices m{1, b.dim[b.rank - (trans ? 1 : 2)], b.dim[b.rank - (trans ? 2 : 1)], trans};
  for (int d = 0; d + 2 < b.rank; ++d) m.count *= b.dim[d];
  return m;
}

size_t pack_bytes(const View& b, int i, const Attrs& attrs) {
  if (i != 1 || b.dtype == DType::f64) return 0;
  const Matrices m = matrices(b, attrs);
  return static_cast<size_t>(m.count * ((m.n + kPanel - 1) / kPanel) * kPanel * m.k) * size_of(b.dtype);
}

void pack(const View& b, int, const Attrs& attrs, void* packed) {
  const Matrices m = matrices(b, attrs);
  with_format(b.dtype, [&](auto format) {
    using T = typename decltype(format)::T;
    const int64_t panels = (m.n + kPanel - 1) / kPanel;
    T* to = static_cast<T*>(packed);
    for (int64_t i = 0; i < m.count; ++i)
      for (int64_t p = 0; p < panels; ++p) {
        const int64_t j = p * kPanel;
        const PanelPlace place = place_of(p, panels, m.k);
        copy_panel<typename Packed<decltype(format)>::Keep>(
            b.as<const T>() + i * m.k * m.n + (m.trans ? j * m.k : j), m.trans ? m.k : m.n, m.trans, m.k,
            num::min_i64(m.n - j, kPanel), to + i * panels * kPanel * m.k + place.at, place.row);
      }
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
