// grouped_matmul_exact16: a unit is a run of panels of one matrix, for all rows that choose it,
// which are gathered after they have been rounded once. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/exact16.h"
#include "ops/matmul/cpu/group_rows.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kGroupExactPanels = 8;  // panels of a unit

ExactProduct exact_product_grouped(const GroupedShape& g) {
  const ExactRows rows(g.k, g.groups ? g.rows / g.groups : 0);  // those of a matrix, on average
  return {{}, rows, exact_pairs(g.k), (g.n + kExactColumns - 1) / kExactColumns, 0};
}
bool all_packed(const Call& call) {
  for (const View& b : call.in.subspan(kFirstMatrix))
    if (!b.packed) return false;
  return true;
}

struct GroupedExactScratch {
  void* product;  // of multiply_exact16
  int64_t* rows;
  float* out;
  int32_t* a;  // the gathered rows
};
GroupedExactScratch grouped_exact_scratch(void* scratch) {
  GroupedExactScratch w{};
  w.product = scratch;
  w.rows = reinterpret_cast<int64_t*>(static_cast<char*>(scratch) + kExactScratch);
  w.out = reinterpret_cast<float*>(w.rows + kExactRows);
  w.a = reinterpret_cast<int32_t*>(w.out + kExactRows * kExactColumns);
  return w;
}
size_t scratch_bytes_grouped_exact16(const Call& call) {
  const ExactProduct p = exact_product_grouped(matmul::grouped_shape(call));
  return static_cast<size_t>(
      reinterpret_cast<char*>(grouped_exact_scratch(nullptr).a + kExactRows * p.row()) -
      static_cast<char*>(nullptr));
}
size_t shared_bytes_grouped_exact16(const Call& call) {
  const GroupedShape g = matmul::grouped_shape(call);
  const ExactProduct p = exact_product_grouped(g);
  return static_cast<size_t>(row_count(call.in[0]) * p.row() +
                             (all_packed(call) ? 0 : g.groups * p.panels * p.panel())) *
         sizeof(int32_t);
}
size_t pack_bytes_grouped_exact16(const View& b, int i, const Attributes& attrs) {
  return i >= kFirstMatrix ? pack_bytes_exact16(b, 1, attrs) : 0;
}

// Phase 0: rows of a, then panels of matrices that are not packed; phase 1: runs of panels, in
// which the matrices change fastest, as in grouped.h.
int64_t units_grouped_exact16(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  const GroupedShape g = matmul::grouped_shape(call);
  const ExactProduct p = exact_product_grouped(g);
  if (phase == 0) return row_count(call.in[0]) + (all_packed(call) ? 0 : g.groups * p.panels);
  return (p.panels + kGroupExactPanels - 1) / kGroupExactPanels * g.groups;
}

void quantize_grouped_exact16(const Call& call, const GroupedShape& g, const ExactProduct& p, int64_t begin,
                              int64_t end) {
  const int64_t rows = row_count(call.in[0]);
  auto* to = static_cast<int32_t*>(call.shared);
  for (int64_t u = begin; u < end; ++u) {
    if (u < rows) {
      quantize_row(call.in[0].as<const float>() + u * g.k, p.rows, to + u * p.row());
      continue;
    }
    const int64_t panel = u - rows, matrix = panel / p.panels, j = panel % p.panels * kExactColumns;
    const View& b = call.in[static_cast<size_t>(kFirstMatrix + (g.stacked ? 0 : matrix))];
    if (b.packed) continue;
    const int64_t at = (g.stacked ? matrix * g.k * g.n : 0) + (g.trans_b ? j * g.k : j);
    pack_exact_panel(b, g.trans_b, at, g.k, g.n, num::min_i64(kExactColumns, g.n - j),
                     to + rows * p.row() + panel * p.panel());
  }
}

void run_grouped_exact16(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const GroupedShape g = matmul::grouped_shape(call);
  const ExactProduct p = exact_product_grouped(g);
  if (phase == 0) return quantize_grouped_exact16(call, g, p, begin, end);
  const GroupedExactScratch w = grouped_exact_scratch(scratch);
  const auto* a = static_cast<const int32_t*>(call.shared);
  const int32_t* unpacked = a + row_count(call.in[0]) * p.row();
  auto* const out = call.out[0].as<float>();
  const int64_t panels = p.panels;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t group = unit % g.groups, first = unit / g.groups * kGroupExactPanels;
    const int64_t last = num::min_i64(first + kGroupExactPanels, panels);
    if (group == 0)  // no matrix: grouped_matmul.1
      for_each_rows<kExactRows>(call, g, -1, w.rows, [&](int64_t count) {
        for (int64_t i = 0; i < count; ++i)
          for (int64_t j = first * kExactColumns; j < num::min_i64(last * kExactColumns, g.n); ++j)
            out[w.rows[i] * g.n + j] = num::f32_from_bits(0x7fc00000);
      });
    const View& b = call.in[static_cast<size_t>(kFirstMatrix + (g.stacked ? 0 : group))];
    const int32_t* matrix = b.packed ? b.as<const int32_t>() + (g.stacked ? group * panels * p.panel() : 0)
                                     : unpacked + group * panels * p.panel();
    for_each_rows<kExactRows>(call, g, group, w.rows, [&](int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        __builtin_memcpy(w.a + i * p.row(), a + w.rows[i] / g.share * p.row(),
                         static_cast<size_t>(p.row()) * sizeof(int32_t));
      for (int64_t panel = first; panel < last; ++panel) {
        const int64_t j = panel * kExactColumns, columns = num::min_i64(kExactColumns, g.n - j);
        multiply_exact16(p.rows, w.a, matrix + panel * p.panel(), count, columns, w.out, kExactColumns,
                         w.product);
        for (int64_t i = 0; i < count; ++i)
          for (int64_t c = 0; c < columns; ++c) out[w.rows[i] * g.n + j + c] = w.out[i * kExactColumns + c];
      }
    });
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
