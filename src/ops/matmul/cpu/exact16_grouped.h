// grouped_matmul_exact16: a unit is a run of panels of one matrix, for all rows that choose it,
// which are gathered after they have been rounded once. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/exact16.h"
#include "ops/matmul/cpu/grouped.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kGroupExactPanels = 8;  // panels of a unit

struct GroupedExact {
  GroupedShape g;
  int64_t pairs, panels;
  // In int32: a panel of a matrix, pairs and the scales of its columns; a row, both planes and its
  // scale.
  int64_t panel() const { return (pairs + 1) * kExactColumns; }
  int64_t row() const { return 2 * pairs + 1; }
};
GroupedExact grouped_exact(const Call& call) {
  const GroupedShape g = matmul::grouped_shape(call);
  return {g, exact_pairs(g.k), (g.n + kExactColumns - 1) / kExactColumns};
}
// f(pair, q[2 pair], q[2 pair + 1]) of a row; behind its end 0. Returns its scale.
template <class Fn>
INVAR_INLINE int32_t for_each_rounded_pair(const float* x, int64_t k, Fn f) {
  constexpr int64_t kPart = 2 * kW;
  alignas(64) int32_t q[kPart];
  const int32_t e = scale_of_row(F32{}, x, k);
  const bool none = e == num::kExact16NoIntegers;
  const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
  const F first = set1(none ? 0.0f : by.first), second = set1(by.second);
  for (int64_t i = 0; i < k; i += kPart) {
    const int64_t n = num::min_i64(kPart, k - i);
    for (int64_t j = 0; j < kPart; j += kW) {
      const int left = static_cast<int>(num::min_i64(kW, n - j));
      store_i(q + j, exact_integers(left > 0 ? get_part<F32>(x + i + j, left) : zero(), first, second));
    }
    for (int64_t j = 0; j < n; j += 2) f((i + j) / 2, q[j], q[j + 1]);
  }
  return e;
}
bool all_packed(const Call& call) {
  for (const View& b : call.in.subspan(kFirstMatrix))
    if (!b.packed) return false;
  return true;
}

struct GroupedExactScratch {
  double *sum, *powers;
  int64_t* rows;
  float* out;
  int32_t* a;  // the gathered rows
};
GroupedExactScratch grouped_exact_scratch(void* scratch) {
  GroupedExactScratch w{};
  w.sum = static_cast<double*>(scratch);
  w.powers = w.sum + kExactRows * kExactColumns;
  w.rows = reinterpret_cast<int64_t*>(w.powers + kExactColumns);
  w.out = reinterpret_cast<float*>(w.rows + kExactRows);
  w.a = reinterpret_cast<int32_t*>(w.out + kExactRows * kExactColumns);
  return w;
}
size_t scratch_bytes_grouped_exact16(const Call& call) {
  const GroupedExact p = grouped_exact(call);
  return static_cast<size_t>(
      reinterpret_cast<char*>(grouped_exact_scratch(nullptr).a + kExactRows * p.row()) -
      static_cast<char*>(nullptr));
}
size_t shared_bytes_grouped_exact16(const Call& call) {
  const GroupedExact p = grouped_exact(call);
  return static_cast<size_t>(row_count(call.in[0]) * p.row() +
                             (all_packed(call) ? 0 : p.g.groups * p.panels * p.panel())) *
         sizeof(int32_t);
}
size_t pack_bytes_grouped_exact16(const View& b, int i, const Attributes& attrs) {
  return i >= kFirstMatrix ? pack_bytes_exact16(b, 1, attrs) : 0;
}

// Phase 0: rows of a, then panels of matrices that are not packed; phase 1: runs of panels, in
// which the matrices change fastest, as in grouped.h.
int64_t units_grouped_exact16(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  const GroupedExact p = grouped_exact(call);
  if (phase == 0) return row_count(call.in[0]) + (all_packed(call) ? 0 : p.g.groups * p.panels);
  return (p.panels + kGroupExactPanels - 1) / kGroupExactPanels * p.g.groups;
}

void quantize_grouped_exact16(const Call& call, const GroupedExact& p, int64_t begin, int64_t end) {
  const GroupedShape& g = p.g;
  const int64_t rows = row_count(call.in[0]);
  auto* to = static_cast<int32_t*>(call.shared);
  for (int64_t u = begin; u < end; ++u) {
    if (u < rows) {
      int32_t *high = to + u * p.row(), *low = high + p.pairs;
      low[p.pairs] = for_each_rounded_pair(call.in[0].as<const float>() + u * g.k, g.k,
                                           [&](int64_t i, int32_t q0, int32_t q1) {
                                             const int32_t h0 = (q0 + 128) >> 8, h1 = (q1 + 128) >> 8;
                                             high[i] = pair_of(h0, h1);
                                             low[i] = pair_of(q0 - h0 * 256, q1 - h1 * 256);
                                           });
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

// The products of `count` gathered rows with one panel, into w.out.
void multiply_grouped_exact16(const GroupedExact& p, const int32_t* panel, int64_t count, int64_t columns,
                              const GroupedExactScratch& w) {
  for (int64_t i = 0; i < count * kExactColumns; ++i) w.sum[i] = 0;
  for (int64_t first = 0; first < p.pairs; first += kExactPairs) {
    const int64_t pairs = num::min_i64(kExactPairs, p.pairs - first);
    for (int64_t r = 0; r < count; r += kExactTileRows) {
      auto tiles = [&](auto tall) __attribute__((always_inline)) {
        for (int64_t c = 0; c < columns; c += kExactVectors * kW)
          exact_tile<decltype(tall)::value>(w.a + r * p.row() + first, p.row(), p.pairs,
                                            panel + first * kExactColumns + c, pairs,
                                            w.sum + r * kExactColumns + c);
      };
      dispatch_tile_rows<kExactTileRows>(static_cast<int>(num::min_i64(kExactTileRows, count - r)), tiles);
    }
  }
  const int32_t* scales = panel + p.pairs * kExactColumns;
  for (int64_t c = 0; c < kExactColumns; ++c) w.powers[c] = exact_power(scales[c]);
  auto wide = [](const double* at) __attribute__((always_inline)) {
    return from_bits(load_l(reinterpret_cast<const int64_t*>(at)));
  };
  for (int64_t r = 0; r < count; ++r) {
    const D power = set1_d(exact_power(w.a[r * p.row() + 2 * p.pairs]));
    for (int64_t c = 0; c < kExactColumns; c += kW)
      store(w.out + r * kExactColumns + c,
            exact_result(wide(w.sum + r * kExactColumns + c), mul(power, wide(w.powers + c))));
  }
}

void run_grouped_exact16(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const GroupedExact p = grouped_exact(call);
  const GroupedShape& g = p.g;
  if (phase == 0) return quantize_grouped_exact16(call, p, begin, end);
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
        multiply_grouped_exact16(p, matrix + panel * p.panel(), count, columns, w);
        for (int64_t i = 0; i < count; ++i)
          for (int64_t c = 0; c < columns; ++c) out[w.rows[i] * g.n + j + c] = w.out[i * kExactColumns + c];
      }
    });
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
