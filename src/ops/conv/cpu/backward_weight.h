// The gradient of weights on a CPU: for each segment of K (contraction.3), K blocks of grad are
// packed as rows of A and those of x as panels of B (kernels/cpu/gemm_blocking.h). Phase 0 sums
// segments, phase 1 joins them. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_blocking.h"
#include "ops/conv/backward_weight.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using conv::BackwardPartition;
using conv::BackwardWeight;
using conv::kAxes;

constexpr int64_t kBackwardStride = kPanel * num::kChain + 16;  // from panel to panel: avoids bank conflicts

BackwardPartition backward_partition(const BackwardWeight& p) {
  return conv::backward_partition(p, kPanel, kMaxRows);
}
int64_t backward_weight_units(const Call& call, int phase) {
  const BackwardWeight p = conv::backward_weight(call);
  if (phase == 1) return chunk_units(call, phase);
  const BackwardPartition c = backward_partition(p);
  return c.units(c, p.groups);
}
size_t backward_weight_shared(const Call& call) {
  const BackwardWeight p = conv::backward_weight(call);
  return static_cast<size_t>(backward_partition(p).segments * p.outputs(p)) * sizeof(float);
}
struct BackwardScratch {
  float *a, *b, *sums;
  int64_t level;
};
BackwardScratch backward_scratch(const BackwardPartition& c, float* scratch) {
  BackwardScratch w;
  w.a = scratch;
  w.b = w.a + (c.rows * kPackedRow + 15) / 16 * 16;
  w.sums = w.b + c.run * kBackwardStride;
  w.level = c.run * c.rows * kPanel;
  return w;
}
size_t backward_weight_scratch(const Call& call) {
  const BackwardPartition c = backward_partition(conv::backward_weight(call));
  const BackwardScratch w = backward_scratch(c, nullptr);
  return static_cast<size_t>(w.sums + w.level - static_cast<float*>(nullptr)) * sizeof(float);
}

// K block r of `rows` channels of grad from `row` on, as rows of A.
void pack_grad(const BackwardWeight& p, const float* grad, int64_t group, int64_t row, int64_t rows,
               num::Range r, float* to) {
  for (int64_t k = r.begin, n; k < r.end; k += n) {
    const int64_t image = k / p.pixels, o = k % p.pixels;
    n = num::min_i64(r.end - k, p.pixels - o);
    const float* from = grad + ((image * p.groups + group) * p.rows + row) * p.pixels + o;
    for (int64_t i = 0; i < rows; ++i, from += p.pixels)
      for (int64_t j = 0; j < n; ++j) to[i * kPackedRow + k - r.begin + j] = from[j];
  }
}

// The pixels of a K block that share their image and all indices but the last: count of them from
// `at` in the block, the first at o.
struct PixelRun {
  int64_t at, count, image, o[kAxes];
};
INVAR_INLINE PixelRun pixel_run_at(const BackwardWeight& p, int64_t k, num::Range r) {
  PixelRun run{k - r.begin, 0, k / p.pixels, {}};
  int64_t rest = k % p.pixels;
  for (int d = kAxes - 1; d >= 0; --d) run.o[d] = rest % p.axis[d].out, rest /= p.axis[d].out;
  run.count = num::min_i64(r.end - k, p.axis[kAxes - 1].out - run.o[kAxes - 1]);
  return run;
}
// A column of B reads this in a run: elements [lo, hi) lie inside of x, from `from` on and
// `stride` apart.
struct ColumnPart {
  int64_t lo, hi;
  const float* from;
};
// A column of B: its channel's offset in an image, and its tap's in each axis, without pixels.
struct Column {
  int64_t channel, shift[kAxes];
};
INVAR_INLINE Column column_at(const BackwardWeight& p, int64_t group, int64_t column) {
  Column c{group * p.channels + column / p.taps, {}};
  int64_t tap = column % p.taps;
  for (int d = kAxes - 1; d >= 0; --d) {
    const auto& a = p.axis[d];
    c.shift[d] = tap % a.kernel * a.dilation - a.pad, tap /= a.kernel;
  }
  return c;
}
INVAR_INLINE ColumnPart column_part(const BackwardWeight& p, const float* x, const PixelRun& run,
                                    const Column& column) {
  const ColumnPart none{run.count, run.count, x};
  int64_t place = run.image * p.groups * p.channels + column.channel;
  for (int d = 0; d + 1 < kAxes; ++d) {
    const auto& a = p.axis[d];
    const int64_t i = run.o[d] * a.stride + column.shift[d];
    if (i < 0 || i >= a.in) return none;
    place = place * a.in + i;
  }
  const auto& a = p.axis[kAxes - 1];
  const int64_t first = run.o[kAxes - 1] * a.stride + column.shift[kAxes - 1];
  if (first >= a.in) return none;
  ColumnPart part = none;
  part.lo = first < 0 ? num::min_i64(slide::ceil_div(-first, a.stride), run.count) : 0;
  const int64_t end = num::min_i64((a.in - 1 - first) / a.stride + 1, run.count);
  part.hi = end > part.lo ? end : part.lo;
  part.from = x + place * a.in + first;
  return part;
}
// Packs a run of pixels for kW columns, of which `n` exist; the others become 0. at: of the first
// pixel; pixels are kPanel apart.
INVAR_INLINE void pack_run(const PixelRun& run, int64_t stride, const ColumnPart (&part)[kW], int64_t n,
                           float* at) {
  int64_t lo = 0, hi = run.count;  // where all columns are inside
  for (int64_t j = 0; j < n; ++j) {
    lo = part[j].lo > lo ? part[j].lo : lo;
    hi = part[j].hi < hi ? part[j].hi : hi;
  }
  if (stride != 1 || hi < lo) hi = lo;
  for (int64_t i = lo; i < hi; i += kW) {  // by squares of kW pixels x kW columns
    const int64_t pixels = num::min_i64(kW, hi - i);
    F square[kW];
    for (int64_t j = 0; j < kW; ++j)
      square[j] = j < n ? load_part(part[j].from + i, static_cast<int>(pixels)) : zero();
    transpose(square);
    for (int64_t j = 0; j < pixels; ++j) store(at + (i + j) * kPanel, square[j]);
  }
  for (int64_t j = 0; j < kW; ++j) {
    auto copy = [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
      for (int64_t i = begin; i < end; ++i)
        at[i * kPanel + j] = j < n && i >= part[j].lo && i < part[j].hi ? part[j].from[i * stride] : 0.0f;
    };
    copy(0, lo), copy(hi, run.count);
  }
}
// K block r of one panel of `n` columns of x from `column` on.
void pack_patches(const BackwardWeight& p, const float* x, int64_t group, int64_t column, int64_t n,
                  num::Range r, float* to) {
  Column columns[kPanel];
  for (int64_t j = 0; j < n; ++j) columns[j] = column_at(p, group, column + j);
  PixelRun run;
  for (int64_t k = r.begin; k < r.end; k += run.count) {
    run = pixel_run_at(p, k, r);
    float* const at = to + run.at * kPanel;
    for (int64_t v = 0; v < kPanel; v += kW) {
      if (v >= n) {
        for (int64_t i = 0; i < run.count; ++i) store(at + i * kPanel + v, zero());
        continue;
      }
      ColumnPart part[kW];
      const int64_t exist = num::min_i64(kW, n - v);
      for (int64_t j = 0; j < exist; ++j) part[j] = column_part(p, x, run, columns[v + j]);
      pack_run(run, p.axis[kAxes - 1].stride, part, exist, at + v);
    }
  }
}

// Phase 0: the sums of one segment for a block of rows and a run of panels.
void sum_segments(const Call& call, const BackwardWeight& p, int64_t begin, int64_t end, float* scratch) {
  const BackwardPartition c = backward_partition(p);
  const BackwardScratch w = backward_scratch(c, scratch);
  const float *grad = call.in[0].as<const float>(), *x = call.in[1].as<const float>();
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t rest = unit;
    const int64_t first = rest % c.runs * c.run, row = (rest /= c.runs) % c.row_blocks * c.rows;
    const int64_t segment = (rest /= c.row_blocks) % c.segments, group = rest / c.segments;
    const int64_t panels = num::min_i64(c.run, c.panels - first), rows = num::min_i64(c.rows, p.rows - row);
    const num::Range blocks = num::segment_blocks(static_cast<int>(segment), p.k);
    float* const to = static_cast<float*>(call.shared) + segment * p.outputs(p) +
                      (group * p.rows + row) * p.columns + first * kPanel;
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      const num::Range r = num::block_range(b, p.k);
      pack_grad(p, grad, group, row, rows, r, w.a);
      for (int64_t i = 0; i < panels; ++i) {
        const int64_t column = (first + i) * kPanel;
        pack_patches(p, x, group, column, num::min_i64(kPanel, p.columns - column), r,
                     w.b + i * kBackwardStride);
      }
      const bool last = b + 1 == blocks.end;
      // The segment alone: its sum is not joined with others here.
      const KBlockOutput output{.block = {0, b == blocks.begin, last, last},
                                .sums = w.sums,
                                .rows = c.rows,
                                .level = w.level,
                                .out = to,
                                .n = p.columns,
                                .columns = p.columns - first * kPanel,
                                .epilogue = {.raw = true}};
      macrokernel(DirectA<true>{w.a, kPackedRow},
                  PanelsOfB<F32, kVectorsPerPanel, 0, kPanel>{w.b, kPanel, kBackwardStride}, panels,
                  r.end - r.begin, rows, output, PrefetchRange{});
    }
  }
}

void backward_weight(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const BackwardWeight p = conv::backward_weight(call);
  if (phase == 0) return sum_segments(call, p, begin, end, static_cast<float*>(scratch));
  const int64_t n = p.outputs(p), segments = num::segments_in_use(p.k), from = begin * kChunk,
                count = num::min_i64(end * kChunk, n) - from;
  const float* const sums = static_cast<const float*>(call.shared) + from;
  strip(
      call.out[0].as<float>() + from, count, [&](int64_t i, int lanes) __attribute__((always_inline)) {
        F s[num::kSegments];
        for (int64_t g = 0; g < num::kSegments; ++g)
          s[g] = g < segments ? load_part(sums + g * n + i, lanes) : zero();
        return num::join_segments(s);  // contraction.4
      });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
