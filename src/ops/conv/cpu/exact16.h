// conv_exact16: rows of A are the weights of output channels, a panel of B is the patches of
// adjacent pixels, rounded where it is packed. Sums are exact, so their order is free. Compiled
// once per instruction set.
#pragma once
#include "kernels/cpu/exact16/products.h"
#include "ops/conv/cpu/im2col.h"
#include "ops/conv/cpu/packed_weights.h"
#include "ops/conv/cpu/store.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The pixels of all images are one sequence of columns; a panel has kExactColumns of them.
struct ExactConv {
  conv::ConvGeometry p;
  ExactRows weights;
  int64_t pixels;  // of an image
  int64_t panels, parts, part_rows;
  int64_t panel() const { return (exact_pairs(weights.k) + 1) * kExactColumns; }  // int32
  int64_t copy() const {                                                          // floats of the padded copy
    return p.padded_copy ? p.images * p.groups * p.channels * p.channel + kSlack : 0;
  }
};
ExactRows exact_rows_of(const View& w, const Attributes& attrs) {
  int64_t k = 1;
  for (int i = 1; i < w.rank; ++i) k *= w.dim[i];
  return {k, w.dim[0] / ConvAttributes(attrs).groups};
}
ExactConv exact_conv(const Call& call) {
  constexpr int64_t kUnits = 48;  // enough for load balance
  ExactConv c{conv::geometry_of(call, false), exact_rows_of(call.in[1], *call.attrs), 1, 0, 0, 0};
  c.p.pixel_major = c.p.indirect = c.p.skips_padding = false;
  for (const Axis& a : c.p.axis) c.pixels *= a.out;
  c.panels = slide::ceil_div(c.p.images * c.pixels, kExactColumns);
  // Each part of the rows packs the panel again, unless one thread does them one after another.
  const int64_t blocks = slide::ceil_div(c.p.rows, c.weights.block()), units = c.panels * c.p.groups;
  c.parts = units == 0 ? 1 : num::min_i64(blocks, slide::ceil_div(kUnits, units));
  c.part_rows = c.parts < 1 ? 0 : slide::ceil_div(blocks, c.parts) * c.weights.block();
  return c;
}

size_t pack_bytes_exact16(const View& v, int i, const Attributes& attrs) {
  return i == 1 ? static_cast<size_t>(v.dim[0] * exact_rows_of(v, attrs).row()) * sizeof(int32_t) : 0;
}
// The order is (tap, channel).
void pack_exact16_row(const View& v, const Attributes& attrs, const ExactRows& rows, int64_t m, int32_t* to) {
  const conv::WeightLayout layout = conv::weight_layout(v, attrs, false);
  with_format(v.dtype, [&](auto format) {
    using W = decltype(format);
    const auto* w = v.as<const typename W::T>();
    const int32_t e = to[rows.words()] = scale_of_row(W{}, w + m * rows.k, rows.k);
    for (int64_t begin = 0; begin < rows.k; begin += kWideStep) {
      const int64_t n = num::min_i64(kWideStep, rows.k - begin), first[kAxes] = {};
      float x[kWideStep];
      copy_weights<W, false>(layout, w, first, m / layout.rows, m % layout.rows, begin, begin + n, x);
      for_each_part(
          F32{}, x, n, e, [&](const int32_t* q, int64_t, int64_t) __attribute__((always_inline)) {
            write_exact_row(rows, q, begin, n, to);
          });
    }
  });
}
void pack_exact16(const View& v, int, const Attributes& attrs, void* packed) {
  const ExactRows rows = exact_rows_of(v, attrs);
  for (int64_t m = 0; m < v.dim[0]; ++m)
    pack_exact16_row(v, attrs, rows, m, static_cast<int32_t*>(packed) + m * rows.row());
}

// The padded copy, then weights that are not packed.
size_t shared_bytes_exact16(const Call& call) {
  const ExactConv c = exact_conv(call);
  return static_cast<size_t>(c.copy()) * sizeof(float) +
         (call.in[1].packed ? 0 : pack_bytes_exact16(call.in[1], 1, *call.attrs));
}
// The sums of a block and what wide products keep; the bias; a row of results; the panel.
size_t scratch_bytes_exact16(const Call& call) {
  return kExactTallest * kExactColumns * sizeof(double) + wide_scratch_bytes() +
         (kExactTallest + kExactColumns + static_cast<size_t>(exact_conv(call).panel())) * sizeof(float);
}
// Phase 0: lines of the copy, then rows of weights that are not packed; phase 1: parts of the rows
// of panels of groups.
int64_t units_exact16(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  const ExactConv c = exact_conv(call);
  if (phase == 1) return c.p.groups * c.panels * c.parts;
  return conv::copy_partition(c.p).units + (call.in[1].packed ? 0 : call.in[1].dim[0]);
}

// Columns [begin, begin + n) as runs that are contiguous in memory, at most one vector each.
struct PixelRuns {
  struct Run {
    int at, count;
    int64_t from;  // of tap 0 of channel 0 of the group
  } run[kExactColumns];
  int count = 0;
};
PixelRuns pixel_runs(const ExactConv& c, const conv::ConvPhase& f, int64_t begin, int64_t n) {
  PixelRuns r;
  const int64_t image = c.p.groups * c.p.channels * c.p.channel;
  const int64_t wide = f.of[2].count, high = f.of[1].count, lines = f.of[0].count * high;
  const bool contiguous = has_contiguous_columns(c.p, f);
  for (int64_t done = 0; done < n;) {
    const int64_t column = begin + done, line = column / wide, j = column % wide;
    const int64_t of_line = c.p.axis[1].length * (line % lines / high) + line % high;
    const int64_t left = contiguous ? c.pixels - column % c.pixels : wide - j;
    const int64_t count = num::min_i64(num::min_i64(left, n - done), kW - done % kW);
    r.run[r.count++] = {static_cast<int>(done), static_cast<int>(count),
                        line / lines * image + of_line * c.p.axis[2].length + j};
    done += count;
  }
  return r;
}

// Values of a panel's columns, k by k: they are copied some k ahead of the vectors that read them,
// so that no load waits for the stores of a part of it.
constexpr int64_t kPatchDepth = 32;
using PatchRows = float[kPatchDepth * kExactColumns + kW];  // a copy may write a vector too far

// f(k, n, values) for each kPatchDepth k of the columns, in the order (tap, channel).
template <class Fn>
INVAR_INLINE void for_each_patch_block(const ExactConv& c, const conv::ConvPhase& f, const PixelRuns& r,
                                       const float* x, Fn fn) {
  alignas(64) PatchRows values;
  for (float& v : values) v = 0;
  TapCursor w{{0, 0, 0}, 0};
  int64_t filled = 0;
  for (int64_t tap = 0; tap < f.taps; ++tap, next_tap(f, w)) {
    const float* from = x + tap_offset(c.p, f, w.t);
    for (int64_t channel = 0; channel < c.p.channels; ++channel, from += c.p.channel) {
      float* const to = values + filled * kExactColumns;
      for (int i = 0; i < r.count; ++i) {
        const auto& run = r.run[i];
        store(to + run.at, c.p.padded_copy || run.count == kW ? load(from + run.from)
                                                              : load_n(from + run.from, run.count));
      }
      if (++filled < kPatchDepth) continue;
      fn(tap * c.p.channels + channel + 1 - filled, filled, values);
      filled = 0;
    }
  }
  if (filled) fn(c.weights.k - filled, filled, values);
}

// Rounds the patches of a panel's columns (exact16.1, exact16.2).
void pack_patches(const ExactConv& c, const conv::ConvPhase& f, const PixelRuns& r, const float* x,
                  int32_t* panel) {
  constexpr int kV = kExactColumns / kW;
  I most[kV];
  for (I& m : most) m = set1_i(0);
  for_each_patch_block(
      c, f, r, x, [&](int64_t, int64_t n, const PatchRows& values) __attribute__((always_inline)) {
        for (int64_t k = 0; k < n; ++k)
#pragma GCC unroll 32
          for (int i = 0; i < kV; ++i) {
            const I u = magnitude_bits(load(values + k * kExactColumns + i * kW));
            most[i] = select(gt(u, most[i]), u, most[i]);
          }
      });
  int32_t* const e = panel + exact_pairs(c.weights.k) * kExactColumns;
  alignas(64) float first[kExactColumns], second[kExactColumns];
  for (int i = 0; i < kV; ++i) store_i(e + i * kW, most[i]);
  for (int64_t i = 0; i < kExactColumns; ++i) {
    e[i] = num::exact16_scale(static_cast<uint32_t>(e[i]));
    const bool none = e[i] == num::kExact16NoIntegers;
    const num::Exact16Factors by = num::exact16_factors(none ? 0 : e[i]);
    first[i] = none ? 0.0f : by.first, second[i] = by.second;
  }
  for_each_patch_block(
      c, f, r, x, [&](int64_t begin, int64_t n, const PatchRows& values) __attribute__((always_inline)) {
        for (int i = 0; i < kV; ++i) {
          const F f0 = load(first + i * kW), f1 = load(second + i * kW);
          const float* from = values + i * kW;
          int32_t* to = panel + begin / 2 * kExactColumns + i * kW;
          for (int64_t k = 0; k < n; k += 2, from += 2 * kExactColumns, to += kExactColumns) {
            const I q0 = exact_integers(load(from), f0, f1);
            const I q1 = k + 1 < n ? exact_integers(load(from + kExactColumns), f0, f1) : set1_i(0);
            store_i(to, bit_or(bit_and(q0, set1_i(0xffff)), shift_left<16>(q1)));
          }
        }
      });
}

// Stores the results of `rows` channels from m on for columns [begin, begin + n).
void store_exact(const Call& call, const ExactConv& c, int64_t m, int64_t rows, int64_t begin, int64_t n,
                 const int32_t* left, const ExactScales& scales, const double* sum, float* bias,
                 float* line) {
  const float* const b = widened_bias(call, m, rows, bias);
  const int64_t image = begin / c.pixels, first = begin % c.pixels, total = c.p.groups * c.p.rows;
  const bool direct = first + n <= c.pixels;
  float* const out = call.out[0].as<float>();
  for (int64_t r = 0; r < rows; ++r) {
    float* const to = direct ? out + (image * total + m + r) * c.pixels + first : line;
    for_each_exact_result(
        sum + r * kExactColumns, left[r * c.weights.row() + c.weights.words()], scales,
        n, [&](int64_t j, F y) __attribute__((always_inline)) {
          if (b) y = canonicalize(add(y, set1(b[r])));
          store_part(to + j, y, static_cast<int>(num::min_i64(kW, n - j)));
        });
    for (int64_t j = 0; !direct && j < n; ++j)
      out[((begin + j) / c.pixels * total + m + r) * c.pixels + (begin + j) % c.pixels] = line[j];
  }
  for (int64_t j = 0; j < n;) {
    const int64_t at = (begin + j) % c.pixels, count = num::min_i64(c.pixels - at, n - j);
    notify_epilogue(call, {((begin + j) / c.pixels * total + m) * c.pixels + at, count, rows, c.pixels});
    j += count;
  }
}

void multiply_patches(const Call& call, const ExactConv& c, const float* x, const int32_t* weights,
                      int64_t begin, int64_t end, void* scratch) {
  auto* sum = static_cast<double*>(scratch);
  auto* kept = reinterpret_cast<char*>(sum + kExactTallest * kExactColumns);
  auto* panel = reinterpret_cast<int32_t*>(kept + wide_scratch_bytes());
  auto* bias = reinterpret_cast<float*>(panel + c.panel());
  const conv::ConvPhase f = conv::phase_at(c.p, 0);
  const int64_t pairs = exact_pairs(c.weights.k);
  int64_t packed = -1;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t part = u % c.parts, column = u / c.parts % c.panels * kExactColumns;
    const int64_t group = u / c.parts / c.panels;
    const int64_t n = num::min_i64(kExactColumns, c.p.images * c.pixels - column);
    if (packed != u / c.parts)
      pack_patches(c, f, pixel_runs(c, f, column, n), x + group * c.p.channels * c.p.channel, panel);
    packed = u / c.parts;
    const ExactScales scales(panel + pairs * kExactColumns, n);
    const int64_t last = num::min_i64(c.p.rows, (part + 1) * c.part_rows);
    for (int64_t row = part * c.part_rows; row < last; row += c.weights.block()) {
      const int64_t rows = num::min_i64(c.weights.block(), last - row), m = group * c.p.rows + row;
      const int32_t* const left = weights + m * c.weights.row();
      sum_exact(c.weights, left, panel, c.weights.k, rows, n, sum, kept);
      store_exact(call, c, m, rows, column, n, left, scales, sum, bias, bias + kExactTallest);
    }
  }
}

void run_exact16(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const ExactConv c = exact_conv(call);
  auto* const copy = static_cast<float*>(call.shared);
  auto* const unpacked = reinterpret_cast<int32_t*>(copy + c.copy());
  if (phase == 1)
    return multiply_patches(call, c, c.p.padded_copy ? copy : call.in[0].as<const float>(),
                            call.in[1].packed ? call.in[1].as<const int32_t>() : unpacked, begin, end,
                            scratch);
  const conv::CopyPartition lines = conv::copy_partition(c.p);
  if (begin < lines.units)
    copy_lines(c.p, call.in[0].as<const float>(), begin * lines.each,
               num::min_i64(num::min_i64(end, lines.units) * lines.each, lines.lines), copy);
  for (int64_t m = begin > lines.units ? begin - lines.units : 0; m < end - lines.units; ++m)
    pack_exact16_row(call.in[1], *call.attrs, c.weights, m, unpacked + m * c.weights.row());
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
