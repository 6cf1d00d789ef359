// A matrix product in one of two ways. Rows of the result are rows of weights, columns are places: blocks of both in tiles of
// registers, chain by chain of K (kernels/cpu/gemm_blocking.h); a run of panels of columns is copied for each chain and stays in the second cache. Or
// the other way around (places.h). Thin groups have a loop of their own. Free by conv.4.
#include "ops/conv/cpu/pixel_gemm.h"
#include "ops/conv/cpu/depthwise.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using conv::Cut;
using conv::Phases;
using conv::Plan;

constexpr int64_t kFirst = 6144;  // floats of panels that stay in the first cache beside rows of weights

// What a call is, once per run.
struct Job {
  Plan p;
  Cut c;
  conv::PlaceCut by_place;
  BlockCut thin;              // no floats: not thin
  int64_t most_k, most_taps;  // of any output
};
template <bool kTransposed, bool kByPlace>
Job job_of(const Call& call) {
  Job j{conv::plan_of(call, kTransposed, kByPlace), {}, {}, {}, 1, 1};
  j.c = conv::cut_of(j.p, kPanel, kMaxRows);
  j.by_place = conv::place_cut(j.p, kPanel, kMaxRows);
  if (j.p.thin) j.thin = slide::block_cut(j.p.axis, j.p.images, j.p.groups * j.p.rows);
  for (const Axis& a : j.p.axis) j.most_taps *= slide::taps_of(a, 0);
  j.most_k = j.most_taps * j.p.channels;
  return j;
}

template <bool kTransposed, bool kByPlace = false>
int64_t units(const Call& call, int phase) {
  const Job j = job_of<kTransposed, kByPlace>(call);
  if (kByPlace && !j.p.by_place) return 0;  // no results
  if (j.thin.floats) return phase == 0 ? 0 : slide::block_units(j.p.axis, j.thin, j.p.images);
  const conv::PlaceCut& c = j.by_place;
  return phase == 0     ? conv::copy_cut(j.p).units
         : j.p.by_place ? c.phases * j.p.groups * c.blocks * c.runs
                        : j.c.units(j.c, j.p.groups);
}

template <bool kTransposed, bool kByPlace = false>
size_t shared_bytes(const Call& call) {
  const Job j = job_of<kTransposed, kByPlace>(call);
  if (j.thin.floats || j.p.read || (!j.p.copied && !j.p.by_place)) return 0;
  int64_t group = j.p.by_place ? j.p.pitch : j.p.channels * j.p.channel;
  for (int d = 0; j.p.by_place && d < kAxes; ++d) group *= conv::positions_of(conv::copied_axis(j.p, d));
  return static_cast<size_t>(j.p.images * j.p.groups * group + kSlack) * sizeof(float);
}

struct Work {
  float *a, *b, *sums, *out, *bias, *end;
  int64_t level;  // floats of one of the kept sums
};
Work work_of(const Job& j, float* scratch) {
  Work w;
  const bool strided = j.p.axis[kAxes - 1].transposed && j.c.phases > 1;
  const int64_t block = j.c.run * j.c.rows * kPanel;
  w.level = block;
  w.a = scratch;
  w.b = w.a + j.c.rows * kRow;
  w.b += (16 - (w.b - scratch) % 16) % 16;
  w.sums = w.b + j.c.run * kHop + kSlack;
  w.out = w.sums + (num::contraction_blocks(j.most_k) > 1 ? num::kSumsKept * block : 0);
  w.bias = w.out + (j.c.merged || strided ? block : 0);
  w.end = w.bias + j.c.rows;
  return w;
}
// Thin groups: offsets of taps, a row of weights, contractions, the copy.
struct ThinWork {
  int64_t* offset;
  float *weights, *flat, *spare, *copy, *end;
};
ThinWork thin_work(const Job& j, void* scratch) {
  ThinWork w;
  w.offset = static_cast<int64_t*>(scratch);
  w.weights = static_cast<float*>(scratch) + 2 * j.most_taps;
  w.flat = w.weights + j.most_taps;
  w.spare = w.flat + j.thin.rows * j.thin.pitch + kSlideSlack;
  w.copy = w.spare + j.thin.columns + kW;
  w.end = w.copy + j.thin.floats + 2 * kSlideSlack;
  return w;
}
template <bool kTransposed, bool kByPlace = false>
size_t scratch_bytes(const Call& call) {
  const Job j = job_of<kTransposed, kByPlace>(call);
  const float* end = j.thin.floats  ? thin_work(j, nullptr).end
                     : j.p.by_place ? place_work(j.p, j.by_place, j.most_k, nullptr).end
                                    : work_of(j, nullptr).end;
  return static_cast<size_t>(end - static_cast<float*>(nullptr)) * sizeof(float);
}

template <bool kTransposed>
void block_units(const Call& call, const Job& job, int64_t begin, int64_t end, void* scratch) {
  const Plan& p = job.p;
  const Cut& c = job.c;
  const conv::Weights& weights = p.weights;
  const Work w = work_of(job, static_cast<float*>(scratch));
  const float* x = p.copied ? static_cast<const float*>(call.shared) : call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  const int64_t total = p.groups * p.rows;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t rest = unit;
    const int64_t row_block = rest % c.row_blocks, panel = (rest /= c.row_blocks) % c.runs * c.run;
    const int64_t group = (rest /= c.runs) % p.groups, image = (rest /= p.groups) % c.images;
    const Phases f = conv::phases_at(p, rest / c.images);
    const int64_t columns = c.merged ? f.columns * p.images : f.columns;
    const int64_t panels = num::min_i64(c.run, slide::ceil_div(columns, kPanel) - panel),
                  first = panel * kPanel;
    if (panels <= 0) continue;
    const int64_t row = row_block * c.rows, m = group * p.rows + row,
                  rows = num::min_i64(c.rows, p.rows - row);
    const int64_t present = num::min_i64(panels * kPanel, columns - first);
    const bool direct = !c.merged && f.of[0].step * f.of[1].step * f.of[2].step == 1;
    const float* base = x + (image * p.groups + group) * p.channels * p.channel;
    const float* a = weights.thin || weights.by_place || !call.in[1].packed
                         ? nullptr
                         : packed_class(weights, call.in[1], f);
    const float* bias = widened_bias(call, m, rows, w.bias);
    float* to = direct ? out + (image * total + m) * f.columns + first : w.out;
    const int64_t ld = direct ? f.columns : panels * kPanel;
    Finish last{.bias = bias, .plain = bias && is_plain(bias, rows)};
    if (direct) follow(last, call, to);
    for (int64_t r = 0; f.k == 0 && r < rows; ++r)
      for (int64_t j = 0; j < present; j += kW) {
        const int lanes = within(present - j);
        store_part(to + r * ld + j, finish(last, zero(), bias_of(last, r), r * ld + j, lanes),
                   lanes);  // conv.5
      }
    const int64_t chains = num::contraction_blocks(f.k);
    const int64_t full = !c.merged && in_sequence(p, f) ? present / kPanel : 0;
    for (int64_t b = 0; b < chains; ++b) {
      const num::Range r = num::block_range(b, f.k);
      const float* block = w.a;
      if (a)
        block = a + (b * total + m) * kRow;
      else
        with_format(call.in[1].dtype, [&](auto format) {
          using W = decltype(format);
          const int64_t taps[kAxes] = {f.of[0].first, f.of[1].first, f.of[2].first};
          for (int64_t i = 0; i < rows; ++i)
            if (call.in[1].packed) {
              const float* packed = packed_class(weights, call.in[1], f);
              for (int64_t k = r.begin; k < r.end; ++k)
                w.a[i * kRow + k - r.begin] =
                    packed[weights.thin ? (m + i) * f.k + k : in_panels(weights, f.k, group, row + i, k)];
            } else {
              copy_weights<W, kTransposed>(weights, call.in[1].as<const typename W::T>(), taps, group,
                                           row + i, r.begin, r.end, w.a + i * kRow);
            }
        });
      const bool is_there = chains == 1 && row_block > 0 && unit > begin;  // for the rows before
      if (!is_there) copy_panels(p, f, base + first, full, r.begin, r.end, w.b);
      for (int64_t i = full; i < panels && !is_there; ++i) {
        Piece piece[kPanel];
        const int64_t n = num::min_i64(kPanel, present - i * kPanel);
        const int pieces = pieces_of(p, f, first + i * kPanel, n, piece);
        float* copy = w.b + i * kHop;
        if (n < kPanel)
          for (int64_t e = 0; e < kPanel * (r.end - r.begin); ++e) copy[e] = 0;
        if (p.copied)
          copy_columns<true>(p, f, base, piece, pieces, r.begin, r.end, copy);
        else
          copy_columns<false>(p, f, base, piece, pieces, r.begin, r.end, copy);
      }
      // The rows of the next chain are fetched meanwhile, a part with every panel.
      const int64_t ahead =
          a && b + 1 < chains ? rows * kRow * static_cast<int64_t>(sizeof(float)) / panels : 0;
      // One chain: a tile's rows meet as many panels as stay in the first cache, and results are stored in long pieces.
      const int64_t near = chains == 1 ? kFirst / (f.k * kPanel) : 1;
      const int64_t together = rows < kMaxRows ? panels : near > kTogether ? near : kTogether;
      for (int64_t i = 0; i < panels; i += together) {
        const int64_t count = num::min_i64(together, panels - i);
        Place place{num::block_place(b, f.k),
                    w.sums + i * rows * kPanel,
                    rows,
                    w.level,
                    to + i * kPanel,
                    ld,
                    present - i * kPanel,
                    last};
        if (last.other) place.finish.other += i * kPanel;
        const Ahead next{reinterpret_cast<const char*>(block + total * kRow) + i * ahead, ahead > 0,
                         ahead * count, 0};
        down(Spaced<true>{block, kRow}, Columns<F32, kPer, 0, kPanel>{w.b + i * kHop, kPanel, kHop}, count,
             r.end - r.begin, rows, place, next);
      }
    }
    if (!direct) scatter(call, p, f, image, m, rows, first, present, to, ld);
  }
}

template <bool kTransposed>
void thin_blocks(const Call& call, const Job& job, int64_t begin, int64_t end, void* scratch) {
  const Plan& p = job.p;
  const BlockCut& c = job.thin;
  const ThinWork s = thin_work(job, scratch);
  const int64_t in = p.axis[0].in * p.axis[1].in * p.axis[2].in,
                out = p.axis[0].out * p.axis[1].out * p.axis[2].out;
  const bool biased = call.in.size() > 2;
  int64_t phase = -1, k = 0;
  const float* packed = nullptr;
  for (int64_t unit = begin; unit < end; ++unit) {
    const Block b = slide::block_at(p.axis, c, p.images, p.groups * p.rows, unit);
    if (b.rows <= 0 || b.columns <= 0) continue;
    if (b.phase != phase) {
      const Phases f = conv::phases_at(p, phase = b.phase);
      k = f.k;
      if (k) block_offsets(p.axis, c, b, s.offset);
      if (k && call.in[1].packed) packed = packed_class(p.weights, call.in[1], f);
    }
    Inside inside[kMostPlanes];
    const int planes = k && b.channels > p.rows ? insides_of(p.axis, c, b, s.copy, inside) : 0;
    for (int64_t m = b.channel, copied = -1; m < b.channel + b.channels; ++m) {
      const int64_t group = m / p.rows;
      if (k && group != copied) {
        const int64_t place = b.image * p.groups + group;
        const float* x = call.in[0].as<const float>() + place * in;
        if (planes)
          copy_insides(inside, planes, c.pitch, x, s.copy);
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
      thin_rows(s.copy, s.offset, call.in[1].packed ? packed + m * k : s.weights, k,
                (b.rows - 1) * c.pitch + b.columns, s.flat);
      float bias = 0;
      if (biased)
        with_format(call.in[2].dtype, [&](auto format) {
          using B = decltype(format);
          bias = B::one(call.in[2].as<const typename B::T>()[m]);
        });
      const F added = set1(bias);
      float* channel = call.out[0].as<float>() + (b.image * p.groups * p.rows + m) * out;
      for (int64_t i = 0; i < b.rows; ++i)
        put_row(
            p.axis, b, i, channel, s.spare, [&](int64_t j) __attribute__((always_inline)) {
              const F y = load(s.flat + i * c.pitch + j);
              return biased ? add(canon(y), added) : y;  // conv.3
            });
      if (b.of[1].step == 1 && b.of[2].step == 1)
        finished(call, {channel - call.out[0].as<float>() + row_place(p.axis, b, 0), b.columns, b.rows,
                        p.axis[2].out});
    }
  }
}

template <bool kTransposed, bool kByPlace = false>
void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const Job job = job_of<kTransposed, kByPlace>(call);
  if (phase == 0) {
    const conv::CopyCut c = conv::copy_cut(job.p);
    const auto copy = job.p.by_place ? copy_places : copy_lines;
    copy(job.p, call.in[0].as<const float>(), begin * c.each, num::min_i64(end * c.each, c.lines),
         static_cast<float*>(call.shared));
  } else if (job.p.by_place) {
    place_units(call, job.p, job.by_place, job.most_k, begin, end, scratch);
  } else if constexpr (!kByPlace) {
    const auto blocks = job.thin.floats ? thin_blocks<kTransposed> : block_units<kTransposed>;
    blocks(call, job, begin, end, scratch);
  }
}

extern const Kernel between;
const Kernel* channels_last(const View& weights, const Attrs& attrs, int64_t& pitch) {
  if (!conv::takes_channels_last(weights, attrs)) return nullptr;
  pitch = conv::pitch_of(weights.dim[0]);
  return &between;
}
const Kernel between = {.op = "conv",
                        .isa = INVAR_ISA,
                        .phases = 2,
                        .units = units<false, true>,
                        .run = run<false, true>,
                        .scratch_bytes = scratch_bytes<false, true>,
                        .shared_bytes = shared_bytes<false, true>,
                        .light_epilogue = true,
                        .channels_last = channels_last,
                        .pack_bytes = pack_bytes<false, true>,
                        .pack = pack<false, true>};

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW_OF(conv), INVAR_ROW_OF(conv_transpose);
const Kernel INVAR_ROW_OF(conv) = {.op = "conv",
                                   .isa = INVAR_ISA,
                                   .phases = 2,
                                   .units = INVAR_ISA_NS::units<false>,
                                   .run = INVAR_ISA_NS::run<false>,
                                   .scratch_bytes = INVAR_ISA_NS::scratch_bytes<false>,
                                   .shared_bytes = INVAR_ISA_NS::shared_bytes<false>,
                                   .light_epilogue = true,
                                   .channels_last = INVAR_ISA_NS::channels_last,
                                   .pack_bytes = INVAR_ISA_NS::pack_bytes<false>,
                                   .pack = INVAR_ISA_NS::pack<false>};
const Kernel INVAR_ROW_OF(conv_transpose) = {.op = "conv_transpose",
                                             .isa = INVAR_ISA,
                                             .phases = 2,
                                             .units = INVAR_ISA_NS::units<true>,
                                             .run = INVAR_ISA_NS::run<true>,
                                             .scratch_bytes = INVAR_ISA_NS::scratch_bytes<true>,
                                             .shared_bytes = INVAR_ISA_NS::shared_bytes<true>,
                                             .pack_bytes = INVAR_ISA_NS::pack_bytes<true>,
                                             .pack = INVAR_ISA_NS::pack<true>};

}  // namespace invar::ops
