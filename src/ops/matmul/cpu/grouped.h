// grouped_matmul: a unit is a run of panels of one matrix, for all rows that choose it. Its rows of
// a are gathered one K block at a time. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/coded/blocks_b.h"
#include "ops/matmul/cpu/float_b.h"
#include "ops/matmul/cpu/group_rows.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kGroupRows = 8 * kMaxRows;  // rows that are computed together
constexpr int64_t kGroupPanels = 8;           // panels of a unit

struct GroupedScratch {
  float *a, *b, *more, *sums, *out;
  int64_t* rows;
  int64_t level;  // floats per level of kept partial sums
};
GroupedScratch grouped_scratch(void* scratch) {
  GroupedScratch w{};
  w.level = kGroupPanels * kGroupRows * kPanel;
  w.a = static_cast<float*>(scratch);
  w.b = w.a + (kGroupRows * kPackedRow + 15) / 16 * 16;
  constexpr int64_t kWidest =
      tile_vectors(1, 8) > kVectorsPerPanel ? tile_vectors(1, 8) / kVectorsPerPanel : 1;
  w.more = w.b + kWidest * kPanel * kChain;
  w.sums = w.more + (coded_floats(kWidest) + 15) / 16 * 16;
  w.out = w.sums + num::kSumsKept * w.level;
  w.rows = reinterpret_cast<int64_t*>(w.out + w.level);
  return w;
}
size_t scratch_bytes_grouped(const Call&) {
  return static_cast<size_t>(reinterpret_cast<char*>(grouped_scratch(nullptr).rows + kGroupRows) -
                             static_cast<char*>(nullptr));
}

int64_t panel_runs(const GroupedShape& s) {
  return ((s.n + kPanel - 1) / kPanel + kGroupPanels - 1) / kGroupPanels;
}
// Runs change slowest: which matrices are chosen is not known, and workers take neighbouring units.
int64_t units_grouped(const Call& c, int) {
  const GroupedShape s = matmul::grouped_shape(c);
  return panel_runs(s) * s.groups;
}

// `count` rows, listed in w.rows, of a times panels [first, first + panels) of one matrix, to
// w.out.
template <class B>
void compute_group(const Call& call, const GroupedShape& s, const WorkPartition& c, const B& b, int64_t count,
                   int64_t first, int64_t panels, const GroupedScratch& w) {
  const int64_t blocks = num::contraction_blocks(s.k);
  for (int64_t kb = 0; kb < blocks; ++kb) {
    const num::Range r = num::block_range(kb, s.k);
    for (int64_t i = 0; i < count; ++i)
      pack_rows<PackWidened<F32>>(call.in[0].as<const float>() + w.rows[i] / s.share * s.k + r.begin, s.k, 1,
                                  r.end - r.begin, w.a + i * kPackedRow, kPackedRow);
    for (int64_t panel = 0; panel < panels; panel += c.tile_panels) {
      const int64_t tile = num::min_i64(c.tile_panels, panels - panel);
      const StoredKBlock output{num::block_position(kb, s.k),
                                w.sums + panel * count * kPanel,
                                count,
                                w.level,
                                w.out + panel * kPanel,
                                kGroupPanels * kPanel,
                                s.n - (first + panel) * kPanel};
      PrefetchRange next;
      if (panel + tile < panels)
        next = b.next_range(first + panel + tile, r.begin);
      else if (kb + 1 < blocks)
        next = b.next_range(first, r.end);
      b.columns(first + panel, tile, r, count, [&](auto columns) {
        // Of few rows the stride costs nothing, and each type of A is a product more to compile.
        macrokernel(DirectA<!decltype(columns)::kUnpackedA>{w.a, kPackedRow}, columns, tile, r.end - r.begin,
                    count, output, next);
      });
    }
  }
}

void run_grouped(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const GroupedShape g = matmul::grouped_shape(call);
  const GroupedScratch w = grouped_scratch(scratch);
  Shape s{};
  s.k = g.k, s.n = g.n, s.trans_b = g.trans_b;
  auto* const out = call.out[0].as<float>();
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t group = unit % g.groups, column = unit / g.groups * kGroupPanels * kPanel;
    const int64_t columns = num::min_i64(kGroupPanels * kPanel, g.n - column);
    auto fill = [&](int64_t count, float x) {
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < columns; ++j) out[w.rows[i] * g.n + column + j] = x;
    };
    if (group == 0)  // no matrix: grouped_matmul.1
      for_each_rows<kGroupRows>(call, g, -1, w.rows,
                                [&](int64_t count) { fill(count, num::f32_from_bits(0x7fc00000)); });
    const View& b = call.in[kFirstMatrix + (g.stacked ? 0 : static_cast<size_t>(group))];
    for_each_rows<kGroupRows>(call, g, group, w.rows, [&](int64_t count) {
      if (g.k == 0) return fill(count, 0);
      WorkPartition c{};
      c.panels = (g.n + kPanel - 1) / kPanel;
      const int64_t tiles = (count + kMaxRows - 1) / kMaxRows;
      c.tile_panels = wide<PanelsOfB<F32, kVectorsPerPanel>>(static_cast<int>(count / tiles));
      const int64_t elements = (b.packed ? c.panels * kPanel : g.n) * g.k;  // of a matrix
      const int64_t first = column / kPanel, panels = (columns + kPanel - 1) / kPanel;
      if (blocks_of(b))
        with_blocks(b, g.stacked ? group : 0, s, c, w.b, w.more,
                    [&](const auto& matrix) { compute_group(call, g, c, matrix, count, first, panels, w); });
      else
        with_format(b.dtype, [&](auto format) {
          using W = decltype(format);
          const auto* matrix = floats_of<typename W::T>(b) + (g.stacked ? group * elements : 0);
          compute_group(call, g, c, FloatB<W>{s, c, b.packed, matrix, w.b}, count, first, panels, w);
        });
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < columns; ++j)
          out[w.rows[i] * g.n + column + j] = w.out[i * kGroupPanels * kPanel + j];
    });
  }
}

size_t pack_bytes_grouped(const View& b, int i, const Attributes& attrs) {
  return i >= kFirstMatrix ? pack_bytes(b, 1, attrs) : 0;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
