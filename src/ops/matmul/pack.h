// The format of a constant b: panels [matrices][ceil(N / kPanel)][K][kPanel] in its own dtype, columns beyond N being
// zero. Compiled once per instruction set.
#pragma once
#include "ops/panel.h"
#include "ops/tile.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

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

// A chain of packed panels as floats.
template <class R>
void widen(const typename R::T* from, int64_t elements, float* to) {
  for (int64_t i = 0; i < elements; i += 2 * kW) {
    F x[2];
    get_all<2>(
        R{}, x, [&](int v) __attribute__((always_inline)) { return from + i + v * kW; });
    store(to + i, x[0]), store(to + i + kW, x[1]);
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
  if (i != 1) return 0;
  const Matrices m = matrices(b, attrs);
  return static_cast<size_t>(m.count * ((m.n + kPanel - 1) / kPanel) * kPanel * m.k) * size_of(b.dtype);
}

void pack(const View& b, int, const Attrs& attrs, void* packed) {
  const Matrices m = matrices(b, attrs);
  with_format(b.dtype, [&](auto format) {
    using T = typename decltype(format)::T;
    T* panel = static_cast<T*>(packed);
    for (int64_t i = 0; i < m.count; ++i)
      for (int64_t j = 0; j < m.n; j += kPanel, panel += m.k * kPanel)
        copy_panel<typename Packed<decltype(format)>::Keep>(
            b.as<const T>() + i * m.k * m.n + (m.trans ? j * m.k : j), m.trans ? m.k : m.n, m.trans, m.k,
            m.n - j < kPanel ? m.n - j : kPanel, panel);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
