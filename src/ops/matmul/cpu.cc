// Tiles of rows x columns held in registers over whole chains (matmul.2); b is read once per tile row group, widened
// in registers. One row, the decode step, takes several panels at a time so that enough chains are in flight.
#include "num/contract/lanes.h"
#include "ops/matmul/matmul.h"
#include "ops/tile.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using matmul::kGroup;
using matmul::kPanel;
using matmul::Shape;

constexpr int kPer = kPanel / kW;  // vectors of a panel
static_assert(kGroup % kMaxRows == 0);

// Columns [column, column + NV * kW) of `out`, of which n - column exist.
template <int MR, int NV, class W>
void tile(const Shape& s, const float* a, Columns<W, kPer> b, float* out, int64_t column) {
  F y[MR * NV];
  num::INVAR_ISA_NS::contract(
      s.k,
      [&](int64_t begin, int64_t end, F(&c)[MR * NV])
          __attribute__((always_inline)) { chains<MR, NV>(a, s.k, b, begin, end, c); },
      y);
  for (int r = 0; r < MR; ++r)
    for (int v = 0; v < NV; ++v) {
      int64_t j = column + v * kW, left = s.n - j;
      if (left >= kW)
        put(out + r * s.n + j, y[r * NV + v]);
      else if (left > 0)
        put_n(out + r * s.n + j, y[r * NV + v], static_cast<int>(left));
    }
}

// MR rows times one panel.
template <int MR, class W>
void panel_rows(const Shape& s, const float* a, Columns<W, kPer> b, float* out, int64_t column) {
  constexpr int NV = tile_vectors(MR, kPer);
  for (int v = 0; v < kPer && column + v * kW < s.n; v += NV) {
    Columns<W, kPer> from = b;
    from.data += v * kW;
    tile<MR, NV>(s, a, from, out, column + v * kW);
  }
}

void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Shape s = matmul::shape(call);
  const View& b = call.in[1];
  const float* a = call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  constexpr int kTogether = kPer < 8 ? 8 / kPer : 1;  // panels of a one-row tile
  with_format(b.dtype, [&](auto format) {
    using W = decltype(format);
    using T = typename W::T;
    int64_t packed_panel = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t panel = unit / s.groups, row = unit % s.groups * kGroup, column = panel * kPanel;
      const T* data = static_cast<const T*>(scratch);
      if (b.packed) {
        data = b.as<const T>() + panel * s.k * kPanel;
      } else if (packed_panel != panel) {
        matmul::pack_panel(b, s.trans_b, panel, scratch);
        packed_panel = panel;
      }
      Columns<W, kPer> columns{data, kPanel, s.k * kPanel};
      if (kTogether > 1 && s.m == 1 && b.packed && unit + kTogether <= end) {
        tile<1, kTogether * kPer>(s, a, columns, out, column);
        unit += kTogether - 1;
        continue;
      }
      int64_t stop = row + kGroup < s.m ? row + kGroup : s.m;
      for (; row < stop; row += kMaxRows) {
        int rows = stop - row < kMaxRows ? static_cast<int>(stop - row) : kMaxRows;
        with_rows(rows, [&](auto r) {
          panel_rows<decltype(r)::value, W>(s, a + row * s.k, columns, out + row * s.n, column);
        });
      }
    }
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "matmul",
                          .isa = INVAR_ISA,
                          .units = matmul::units,
                          .run = INVAR_ISA_NS::run,
                          .scratch_bytes = matmul::scratch_bytes,
                          .pack_bytes = matmul::pack_bytes,
                          .pack = matmul::pack};

}  // namespace invar::ops
