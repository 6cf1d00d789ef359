// Convolution as GEMM, in one of two orientations. (1) Rows are output channels, columns are
// pixels: im2col panels are packed per K block and stay in the L2 cache
// (kernels/cpu/gemm_blocking.h). (2) Rows are pixels, columns are output channels (pixel_gemm.h).
// Depthwise groups have their own loop. The choice is free by conv.4.
#include "ops/conv/cpu/backward_weight.h"
#include "ops/conv/cpu/depthwise.h"
#include "ops/conv/cpu/extension_rows.h"
#include "ops/conv/cpu/pixel_gemm.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using conv::ConvGeometry;
using conv::ConvPhase;
using conv::GemmPartition;

constexpr int64_t kL1Floats = 6144;  // floats of B panels that stay in the L1 cache beside rows of A

// The geometry of a call, computed once per run.
struct CallGeometry {
  ConvGeometry p;
  GemmPartition c;
  conv::PixelPartition pixels;
  BlockTiling depthwise;      // no floats: not depthwise
  int64_t most_k, most_taps;  // maxima over outputs
};
template <bool kTransposed, bool kPixelMajor>
CallGeometry call_geometry(const Call& call) {
  CallGeometry j{conv::geometry_of(call, kTransposed, kPixelMajor), {}, {}, {}, 1, 1};
  j.c = conv::gemm_partition(j.p, kPanel, kMaxRows);
  j.pixels = conv::pixel_partition(j.p, kPanel, kMaxRows);
  if (j.p.depthwise) j.depthwise = slide::block_tiling(j.p.axis, j.p.images, j.p.groups * j.p.rows);
  for (const Axis& a : j.p.axis) j.most_taps *= slide::taps_of(a, 0);
  j.most_k = j.most_taps * j.p.channels;
  return j;
}

template <bool kTransposed, bool kPixelMajor = false>
int64_t units(const Call& call, int phase) {
  const CallGeometry j = call_geometry<kTransposed, kPixelMajor>(call);
  if (kPixelMajor && !j.p.pixel_major) return 0;  // no results
  if (j.depthwise.floats) return phase == 0 ? 0 : slide::block_units(j.p.axis, j.depthwise, j.p.images);
  const conv::PixelPartition& c = j.pixels;
  return phase == 0        ? conv::copy_partition(j.p).units
         : j.p.pixel_major ? c.phases * j.p.groups * c.blocks * c.runs
                           : j.c.units(j.c, j.p.groups);
}

template <bool kTransposed, bool kPixelMajor = false>
size_t shared_bytes(const Call& call) {
  const CallGeometry j = call_geometry<kTransposed, kPixelMajor>(call);
  if (j.depthwise.floats || j.p.nhwc_operand || (!j.p.padded_copy && !j.p.pixel_major)) return 0;
  int64_t group = j.p.pixel_major ? j.p.pitch : j.p.channels * j.p.channel;
  for (int d = 0; j.p.pixel_major && d < kAxes; ++d) group *= conv::positions_of(conv::copied_axis(j.p, d));
  return static_cast<size_t>(j.p.images * j.p.groups * group + kSlack) * sizeof(float);
}

struct GemmScratch {
  float *a, *b, *sums, *out, *bias, *end;
  int64_t level;  // floats per level of kept partial sums
};
GemmScratch gemm_scratch(const CallGeometry& j, float* scratch) {
  GemmScratch w;
  const bool strided = j.p.axis[kAxes - 1].transposed && j.c.phases > 1;
  const int64_t block = j.c.run * j.c.rows * kPanel;
  w.level = block;
  w.a = scratch;
  w.b = w.a + j.c.rows * kPackedRow;
  w.b += (16 - (w.b - scratch) % 16) % 16;
  w.sums = w.b + j.c.run * kPanelStride + kSlack;
  w.out = w.sums + (num::contraction_blocks(j.most_k) > 1 ? num::kSumsKept * block : 0);
  w.bias = w.out + (j.c.merged || strided ? block : 0);
  w.end = w.bias + j.c.rows;
  return w;
}
// Scratch of depthwise groups: tap offsets, a row of weights, contractions, the padded copy.
struct DepthwiseScratch {
  int64_t* offset;
  float *weights, *flat, *spare, *copy, *end;
};
DepthwiseScratch depthwise_scratch(const CallGeometry& j, void* scratch) {
  DepthwiseScratch w;
  w.offset = static_cast<int64_t*>(scratch);
  w.weights = static_cast<float*>(scratch) + 2 * j.most_taps;
  w.flat = w.weights + j.most_taps;
  w.spare = w.flat + j.depthwise.rows * j.depthwise.pitch + kSlideSlack;
  w.copy = w.spare + j.depthwise.columns + kW;
  w.end = w.copy + j.depthwise.floats + 2 * kSlideSlack;
  return w;
}
template <bool kTransposed, bool kPixelMajor = false>
size_t scratch_bytes(const Call& call) {
  const CallGeometry j = call_geometry<kTransposed, kPixelMajor>(call);
  const float* end = j.depthwise.floats ? depthwise_scratch(j, nullptr).end
                     : j.p.pixel_major  ? pixel_scratch(j.p, j.pixels, j.most_k, nullptr).end
                                        : gemm_scratch(j, nullptr).end;
  return static_cast<size_t>(end - static_cast<float*>(nullptr)) * sizeof(float);
}

// Packs K block r of `rows` rows of weights from `row` on as rows of A.
template <bool kTransposed>
void pack_rows_of_a(const Call& call, const ConvGeometry& p, const ConvPhase& f, int64_t group, int64_t row,
                    int64_t rows, num::Range r, float* to) {
  const conv::WeightLayout& weights = p.weights;
  const int64_t m = group * p.rows + row;
  with_format(call.in[1].dtype, [&](auto format) {
    using W = decltype(format);
    const int64_t taps[kAxes] = {f.of[0].first, f.of[1].first, f.of[2].first};
    for (int64_t i = 0; i < rows; ++i)
      if (call.in[1].packed) {
        const float* packed = packed_class(weights, call.in[1], f);
        for (int64_t k = r.begin; k < r.end; ++k)
          to[i * kPackedRow + k - r.begin] =
              packed[weights.depthwise ? (m + i) * f.k + k : panel_index(weights, f.k, group, row + i, k)];
      } else {
        copy_weights<W, kTransposed>(weights, call.in[1].as<const typename W::T>(), taps, group, row + i,
                                     r.begin, r.end, to + i * kPackedRow);
      }
  });
}
// Packs K block r of `panels` panels of columns from column `first` on. Of them `present` columns
// exist, and the first `full` panels are contiguous in memory.
void pack_panels_of_b(const ConvGeometry& p, const ConvPhase& f, const float* x, int64_t first,
                      int64_t present, int64_t full, int64_t panels, num::Range r, float* to) {
  copy_panels(p, f, x + first, full, r.begin, r.end, to);
  for (int64_t i = full; i < panels; ++i) {
    ColumnRun piece[kPanel];
    const int64_t n = num::min_i64(kPanel, present - i * kPanel);
    const int pieces = column_runs_of(p, f, first + i * kPanel, n, piece);
    float* copy = to + i * kPanelStride;
    if (n < kPanel)
      for (int64_t e = 0; e < kPanel * (r.end - r.begin); ++e) copy[e] = 0;
    if (p.padded_copy)
      copy_columns<true>(p, f, x, piece, pieces, r.begin, r.end, copy);
    else
      copy_columns<false>(p, f, x, piece, pieces, r.begin, r.end, copy);
  }
}

// Units of (row block, run of column panels): C = A B per K block.
template <bool kTransposed>
void block_units(const Call& call, const CallGeometry& job, int64_t begin, int64_t end, void* scratch) {
  const ConvGeometry& p = job.p;
  const GemmPartition& c = job.c;
  const conv::WeightLayout& weights = p.weights;
  const GemmScratch w = gemm_scratch(job, static_cast<float*>(scratch));
  const float* x = p.padded_copy ? static_cast<const float*>(call.shared) : call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  const int64_t total = p.groups * p.rows;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t rest = unit;
    const int64_t row_block = rest % c.row_blocks, panel = (rest /= c.row_blocks) % c.runs * c.run;
    const int64_t group = (rest /= c.runs) % p.groups, image = (rest /= p.groups) % c.images;
    const ConvPhase f = conv::phase_at(p, rest / c.images);
    const int64_t columns = c.merged ? f.columns * p.images : f.columns;
    const int64_t panels = num::min_i64(c.run, slide::ceil_div(columns, kPanel) - panel),
                  first = panel * kPanel;
    if (panels <= 0) continue;
    const int64_t row = row_block * c.rows, m = group * p.rows + row,
                  rows = num::min_i64(c.rows, p.rows - row);
    const int64_t present = num::min_i64(panels * kPanel, columns - first);
    const bool direct = !c.merged && f.of[0].step * f.of[1].step * f.of[2].step == 1;
    const float* base = x + (image * p.groups + group) * p.channels * p.channel;
    const float* a = weights.depthwise || weights.pixel_major || !call.in[1].packed
                         ? nullptr
                         : packed_class(weights, call.in[1], f);
    const float* bias = widened_bias(call, m, rows, w.bias);
    float* to = direct ? out + (image * total + m) * f.columns + first : w.out;
    const int64_t ld = direct ? f.columns : panels * kPanel;
    GemmEpilogue last{.bias = bias, .plain = bias && has_no_small_bias(bias, rows)};
    if (direct) fuse_add_relu(last, call, to);
    for (int64_t r = 0; f.k == 0 && r < rows; ++r)
      for (int64_t j = 0; j < present; j += kW) {
        const int lanes = valid_lanes(present - j);
        store_part(to + r * ld + j, apply_epilogue(last, zero(), bias_vector(last, r), r * ld + j, lanes),
                   lanes);  // conv.5
      }
    const int64_t chains = num::contraction_blocks(f.k);
    const int64_t full = !c.merged && has_contiguous_columns(p, f) ? present / kPanel : 0;
    for (int64_t b = 0; b < chains; ++b) {
      const num::Range r = num::block_range(b, f.k);
      const float* block = w.a;
      if (a)
        block = a + (b * total + m) * kPackedRow;
      else
        pack_rows_of_a<kTransposed>(call, p, f, group, row, rows, r, w.a);
      const bool is_packed = chains == 1 && row_block > 0 && unit > begin;  // copied for the rows before
      if (!is_packed) pack_panels_of_b(p, f, base, first, present, full, panels, r, w.b);
      // The A rows of the next K block are prefetched meanwhile, a part per panel.
      const int64_t ahead =
          a && b + 1 < chains ? rows * kPackedRow * static_cast<int64_t>(sizeof(float)) / panels : 0;
      // With one K block, a tile's rows meet as many panels as stay in the L1 cache, so results are
      // stored in long runs.
      const int64_t l1_panels = chains == 1 ? kL1Floats / (f.k * kPanel) : 1;
      const int64_t tile_panels = rows < kMaxRows              ? panels
                                  : l1_panels > kPanelsPerTile ? l1_panels
                                                               : kPanelsPerTile;
      for (int64_t i = 0; i < panels; i += tile_panels) {
        const int64_t count = num::min_i64(tile_panels, panels - i);
        KBlockOutput output{num::block_position(b, f.k),
                            w.sums + i * rows * kPanel,
                            rows,
                            w.level,
                            to + i * kPanel,
                            ld,
                            present - i * kPanel,
                            last};
        if (last.other) output.epilogue.other += i * kPanel;
        const PrefetchRange next{reinterpret_cast<const char*>(block + total * kPackedRow) + i * ahead,
                                 ahead > 0, ahead * count, 0};
        macrokernel(DirectA<true>{block, kPackedRow},
                    PanelsOfB<F32, kVectorsPerPanel, 0, kPanel>{w.b + i * kPanelStride, kPanel, kPanelStride},
                    count, r.end - r.begin, rows, output, next);
      }
    }
    if (!direct)
      scatter(call, p, f, image, m, rows, first, present, to, ld);
    else if (call.cpu.epilogue && !call.cpu.epilogue->add_relu)
      notify_block(call, {to - out, present, rows, f.columns});
  }
}

template <bool kTransposed>
void depthwise_units(const Call& call, const CallGeometry& job, int64_t begin, int64_t end, void* scratch) {
  const ConvGeometry& p = job.p;
  const BlockTiling& c = job.depthwise;
  const DepthwiseScratch s = depthwise_scratch(job, scratch);
  const int64_t in = p.axis[0].in * p.axis[1].in * p.axis[2].in,
                out = p.axis[0].out * p.axis[1].out * p.axis[2].out;
  int64_t phase = -1, k = 0;
  const float* packed = nullptr;
  InteriorLines inside[kMostPlanes];
  int planes = 0;
  Block before{};
  before.phase = -1;
  for (int64_t unit = begin; unit < end; ++unit) {
    const Block b = slide::block_at(p.axis, c, p.images, p.groups * p.rows, unit);
    if (b.rows <= 0 || b.columns <= 0) continue;
    if (b.phase != phase) {
      const ConvPhase f = conv::phase_at(p, phase = b.phase);
      k = f.k;
      if (k) block_offsets(p.axis, c, b, s.offset);
      if (k && call.in[1].packed) packed = packed_class(p.weights, call.in[1], f);
    }
    // Units of one place of the image follow one another, and their copies differ inside alone.
    if (b.phase != before.phase || b.deep != before.deep || b.row != before.row || b.column != before.column)
      planes = k ? interior_of(p.axis, c, b, s.copy, inside) : 0;
    before = b;
    const bool one_chain = planes && k <= kChain && b.of[1].step * b.of[2].step == 1;
    const SquareTaps taps(p.axis, c.pitch, s.offset);
    float* const image = call.out[0].as<float>() + b.image * p.groups * p.rows * out;
    for (int64_t m = b.channel, copied = -1; m < b.channel + b.channels; ++m) {
      const int64_t group = m / p.rows;
      if (k && group != copied) {
        const int64_t place = b.image * p.groups + group;
        const float* x = call.in[0].as<const float>() + place * in;
        if (planes)
          copy_interior(inside, planes, c.pitch, x, s.copy);
        else
          copy_block(p.axis, c, b, x, (p.images * p.groups - place) * in, 0, s.copy);
        copied = group;
      }
      if (!call.in[1].packed)
        with_format(call.in[1].dtype, [&](auto format) {
          using W = decltype(format);
          const int64_t first[kAxes] = {b.of[0].first, b.of[1].first, b.of[2].first};
          copy_weights<W, kTransposed>(p.weights, call.in[1].as<const typename W::T>(), first, group,
                                       m % p.rows, 0, k, s.weights);
        });
      const float* const w = call.in[1].packed ? packed + m * k : s.weights;
      float bias_of_it;
      const ChannelEnd last(widened_bias(call, m, 1, &bias_of_it));
      float* const channel = image + m * out;
      if (one_chain && square_tile(s.copy, taps, w, b.rows, b.columns, last,
                                   channel + row_offset(p.axis, b, 0), p.axis[2].out))
        continue;
      if (one_chain) {
        depthwise_tile(s.copy, c.pitch, s.offset, w, k, b.rows, b.columns, last,
                       channel + row_offset(p.axis, b, 0), p.axis[2].out);
        continue;
      }
      depthwise_rows(s.copy, s.offset, w, k, (b.rows - 1) * c.pitch + b.columns, s.flat);
      for (int64_t i = 0; i < b.rows; ++i)
        store_row(
            p.axis, b, i, channel, s.spare, [&](int64_t j) __attribute__((always_inline)) {
              const F y = load(s.flat + i * c.pitch + j);
              return last.biased ? add(canonicalize(y), last.bias) : y;  // conv.3
            });
    }
    if (b.of[1].step != 1 || b.of[2].step != 1 || !call.cpu.epilogue) continue;
    const int64_t at = image + b.channel * out - call.out[0].as<float>();
    if (b.rows * b.columns == out)
      notify_epilogue(call, {at, b.channels * out, 1, 0});
    else
      for (int64_t m = 0; m < b.channels; ++m)
        notify_block(call, {at + m * out + row_offset(p.axis, b, 0), b.columns, b.rows, p.axis[2].out});
  }
}

template <bool kTransposed, bool kPixelMajor = false>
void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const CallGeometry job = call_geometry<kTransposed, kPixelMajor>(call);
  if (phase == 0) {
    const conv::CopyPartition c = conv::copy_partition(job.p);
    const auto copy = job.p.pixel_major ? copy_pixels : copy_lines;
    copy(job.p, call.in[0].as<const float>(), begin * c.each, num::min_i64(end * c.each, c.lines),
         static_cast<float*>(call.shared));
  } else if (job.p.pixel_major) {
    pixel_units(call, job.p, job.pixels, job.most_k, begin, end, scratch);
  } else if constexpr (!kPixelMajor) {
    const auto blocks = job.depthwise.floats ? depthwise_units<kTransposed> : block_units<kTransposed>;
    blocks(call, job, begin, end, scratch);
  }
}

extern const CpuKernel nhwc_row;
const CpuKernel* channels_last(const View& weights, const Attributes& attrs, int64_t& pitch) {
  if (!conv::takes_channels_last(weights, attrs)) return nullptr;
  pitch = conv::pitch_of(weights.dim[0]);
  return &nhwc_row;
}
const CpuKernel nhwc_row = {.op = "conv",
                            .isa = INVAR_ISA,
                            .phases = 2,
                            .units = units<false, true>,
                            .run = run<false, true>,
                            .scratch_bytes = scratch_bytes<false, true>,
                            .shared_bytes = shared_bytes<false, true>,
                            .epilogue = true,
                            .add_relu_epilogue = true,
                            .channels_last = channels_last,
                            .pack_bytes = pack_bytes<false, true>,
                            .pack = pack<false, true>};

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(conv), INVAR_ROW_OF(conv_transpose), INVAR_ROW_OF(conv_backward_weight);
const CpuKernel INVAR_ROW_OF(conv) = {.op = "conv",
                                      .isa = INVAR_ISA,
                                      .phases = 2,
                                      .units = INVAR_ISA_NS::units<false>,
                                      .run = INVAR_ISA_NS::run<false>,
                                      .scratch_bytes = INVAR_ISA_NS::scratch_bytes<false>,
                                      .shared_bytes = INVAR_ISA_NS::shared_bytes<false>,
                                      .epilogue = true,
                                      .add_relu_epilogue = true,
                                      .channels_last = INVAR_ISA_NS::channels_last,
                                      .pack_bytes = INVAR_ISA_NS::pack_bytes<false>,
                                      .pack = INVAR_ISA_NS::pack<false>};
const CpuKernel INVAR_ROW_OF(conv_transpose) = {.op = "conv_transpose",
                                                .isa = INVAR_ISA,
                                                .phases = 2,
                                                .units = INVAR_ISA_NS::units<true>,
                                                .run = INVAR_ISA_NS::run<true>,
                                                .scratch_bytes = INVAR_ISA_NS::scratch_bytes<true>,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes<true>,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes<true>,
                                                .pack = INVAR_ISA_NS::pack<true>};
const CpuKernel INVAR_ROW_OF(conv_backward_weight) = {.op = "conv_backward_weight",
                                                      .isa = INVAR_ISA,
                                                      .phases = 2,
                                                      .units = INVAR_ISA_NS::backward_weight_units,
                                                      .run = INVAR_ISA_NS::backward_weight,
                                                      .scratch_bytes = INVAR_ISA_NS::backward_weight_scratch,
                                                      .shared_bytes = INVAR_ISA_NS::backward_weight_shared};

}  // namespace invar::ops
