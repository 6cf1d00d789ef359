// Rows of the result are rows of weights, columns are places: blocks of both in tiles of registers, chain by chain of K
// (ops/tiles.h). Weights are packed as rows of one chain [class of taps][chain][M][kRow] in f32; a run of panels of columns is
// copied for each chain and stays in the second cache. Thin groups have a loop of their own. Free by conv.4.
#include "ops/conv/columns.h"
#include "ops/conv/conv.h"
#include "ops/conv/thin.h"
#include "ops/tiles.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using conv::Cut;
using conv::Phases;
using conv::Plan;
using conv::ThinCut;
using conv::Weights;

constexpr int64_t kSlack = 64;  // floats behind copies that may be read or written

// Floats between packed rows: thin groups keep whole rows of K, others pieces of one chain.
int64_t packed_size(const Weights& w, int64_t k) {
  return w.groups * w.rows * (w.thin ? k : num::contraction_blocks(k) * kRow);
}

// fn(first taps, K, floats before) for every class of taps.
template <class Fn>
INVAR_INLINE void each_class(const Weights& w, Fn fn) {
  int64_t at = 0;
  for (int64_t i = 0; i < w.axis[0].classes; ++i)
    for (int64_t j = 0; j < w.axis[1].classes; ++j)
      for (int64_t l = 0; l < w.axis[2].classes; ++l) {
        const int64_t first[kAxes] = {i, j, l};
        const int64_t k = w.channels * conv::taps_of(w.axis[0], i) * conv::taps_of(w.axis[1], j) *
                          conv::taps_of(w.axis[2], l);
        fn(first, k, at);
        at += packed_size(w, k);
      }
}

// The elements k in [begin, end) of one row of a class, widened.
template <class W, bool kTransposed>
INVAR_INLINE void copy_weights(const Weights& w, const typename W::T* from, const int64_t (&first)[kAxes],
                               int64_t group, int64_t row, int64_t begin, int64_t end, float* to) {
  if (begin == end) return;
  int64_t taps[kAxes], t[kAxes], rest = begin / w.channels, c = begin % w.channels;
  for (int d = kAxes - 1; d >= 0; --d) {
    taps[d] = conv::taps_of(w.axis[d], first[d]);
    t[d] = rest % taps[d], rest /= taps[d];
  }
  for (int64_t k = begin; k < end; c = 0) {
    int64_t tap = 0;
    for (int d = 0; d < kAxes; ++d) tap = tap * w.axis[d].kernel + first[d] + t[d] * w.axis[d].hop;
    for (; c < w.channels && k < end; ++c, ++k)
      to[k - begin] = W::one(from[conv::weight_at(w, kTransposed, group, row, c, tap)]);
    for (int d = kAxes - 1; d >= 0 && ++t[d] == taps[d]; --d) t[d] = 0;
  }
}

template <bool kTransposed>
size_t pack_bytes(const View& v, int i, const Attrs& attrs) {
  if (i != 1) return 0;
  int64_t floats = 0;
  const Weights w = conv::weights_of(v, attrs, kTransposed);
  each_class(w, [&](const int64_t(&)[kAxes], int64_t k, int64_t at) { floats = at + packed_size(w, k); });
  return static_cast<size_t>(floats) * sizeof(float);
}

template <bool kTransposed>
void pack(const View& v, int, const Attrs& attrs, void* packed) {
  const Weights w = conv::weights_of(v, attrs, kTransposed);
  with_format(v.dtype, [&](auto format) {
    using W = decltype(format);
    const auto* from = v.as<const typename W::T>();
    each_class(w, [&](const int64_t(&first)[kAxes], int64_t k, int64_t at) {
      float* to = static_cast<float*>(packed) + at;
      const int64_t chains = num::contraction_blocks(k), rows = w.groups * w.rows;
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t b = 0; b < chains; ++b) {
          const num::Range r = num::block_range(b, k);
          copy_weights<W, kTransposed>(w, from, first, m / w.rows, m % w.rows, r.begin, r.end,
                                       w.thin ? to + m * k + r.begin : to + (b * rows + m) * kRow);
        }
    });
  });
}

// The class of a phase in packed weights.
float* packed_class(const Weights& w, const View& v, const Phases& f) {
  float* found = nullptr;
  each_class(w, [&](const int64_t(&first)[kAxes], int64_t, int64_t at) {
    if (first[0] == f.of[0].first && first[1] == f.of[1].first && first[2] == f.of[2].first)
      found = v.as<float>() + at;
  });
  return found;
}

// What a call is, once per run.
struct Job {
  Plan p;
  Cut c;
  ThinCut thin;
  int64_t most_k, most_taps;  // of any output
};
template <bool kTransposed>
Job job_of(const Call& call) {
  Job j{conv::plan_of(call, kTransposed), {}, {}, 1, 1};
  j.c = conv::cut_of(j.p, kPanel, kMaxRows);
  j.thin = conv::thin_cut(j.p);
  for (const Axis& a : j.p.axis) j.most_taps *= conv::taps_of(a, 0);
  j.most_k = j.most_taps * j.p.channels;
  return j;
}

// Units of thin groups: [phase][image][row][place on the first axis][row block][column block].
int64_t thin_units(const Job& j) {
  const int64_t deep = j.c.phases ? conv::phase_of(j.p.axis[0], 0).count : 0;
  return j.c.phases * j.p.images * j.p.groups * j.p.rows * deep * j.thin.row_blocks * j.thin.column_blocks;
}

template <bool kTransposed>
int64_t units(const Call& call, int phase) {
  const Job j = job_of<kTransposed>(call);
  if (j.thin.floats) return phase == 0 ? 0 : thin_units(j);
  return phase == 0 ? conv::copy_cut(j.p).units : j.c.units(j.c, j.p.groups);
}

template <bool kTransposed>
size_t shared_bytes(const Call& call) {
  const Job j = job_of<kTransposed>(call);
  if (j.thin.floats || !j.p.copied) return 0;
  return static_cast<size_t>(j.p.images * j.p.groups * j.p.channels * j.p.channel + kSlack) * sizeof(float);
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
  w.sums = w.b + j.c.run * kPanel * kChain + kSlack;
  w.out = w.sums + (num::contraction_blocks(j.most_k) > 1 ? num::kSumsKept * block : 0);
  w.bias = w.out + (j.c.merged || strided ? block : 0);
  w.end = w.bias + j.c.rows;
  return w;
}
// Thin groups: offsets of taps, a row of weights, the copy, contractions.
int64_t thin_floats(const Job& j) {
  return 3 * j.most_taps + j.thin.floats + j.thin.rows * j.thin.pitch + 4 * kThinSlack;
}
template <bool kTransposed>
size_t scratch_bytes(const Call& call) {
  const Job j = job_of<kTransposed>(call);
  return static_cast<size_t>(j.thin.floats ? thin_floats(j)
                                           : work_of(j, nullptr).end - static_cast<float*>(nullptr)) *
         sizeof(float);
}

// Columns [begin, begin + n) of a phase, as rows of `ld` at `from`, to where they belong: row r of the block is channel m + r.
void scatter(const Plan& p, const Phases& f, int64_t image, int64_t m, int64_t rows, int64_t begin, int64_t n,
             const float* from, int64_t ld, float* out) {
  const int64_t wide = f.of[2].count, high = f.of[1].count, total = p.groups * p.rows;
  const int64_t size[kAxes] = {p.axis[0].out, p.axis[1].out, p.axis[2].out}, step = f.of[2].step;
  int64_t line = begin / wide, j = begin % wide;
  const int64_t channel = size[0] * size[1] * size[2];
  for (int64_t done = 0; done < n; ++line, j = 0) {
    const int64_t in_image = f.of[0].count * high, i = line % in_image;
    const int64_t length = num::min_i64(wide - j, n - done);
    const int64_t d = f.of[0].start + i / high * f.of[0].step, h = f.of[1].start + i % high * f.of[1].step;
    const int64_t place = ((image + line / in_image) * total + m) * channel + (d * size[1] + h) * size[2] +
                          f.of[2].start + j * step;
    for (int64_t r = 0; r < rows; ++r) {
      const float* y = from + r * ld + done;
      float* to = out + place + r * channel;
      if (step == 1)
        for (int64_t q = 0; q < length; ++q) to[q] = y[q];
      else
        for (int64_t q = 0; q < length; ++q) to[q * step] = y[q];
    }
    done += length;
  }
}

template <bool kTransposed>
void block_units(const Call& call, const Job& job, int64_t begin, int64_t end, void* scratch) {
  const Plan& p = job.p;
  const Cut& c = job.c;
  const Weights& weights = p.weights;
  const Work w = work_of(job, static_cast<float*>(scratch));
  const float* x = p.copied ? static_cast<const float*>(call.shared) : call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  const int64_t total = p.groups * p.rows;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t rest = unit;
    const int64_t panel = rest % c.runs * c.run, row_block = (rest /= c.runs) % c.row_blocks;
    const int64_t group = (rest /= c.row_blocks) % p.groups, image = (rest /= p.groups) % c.images;
    const Phases f = conv::phases_at(p, rest / c.images);
    const int64_t columns = c.merged ? f.columns * p.images : f.columns;
    const int64_t panels = num::min_i64(c.run, conv::ceil_div(columns, kPanel) - panel),
                  first = panel * kPanel;
    if (panels <= 0) continue;
    const int64_t row = row_block * c.rows, m = group * p.rows + row,
                  rows = num::min_i64(c.rows, p.rows - row);
    const int64_t present = num::min_i64(panels * kPanel, columns - first);
    const bool direct = !c.merged && f.of[0].step * f.of[1].step * f.of[2].step == 1;
    const float* base = x + (image * p.groups + group) * p.channels * p.channel;
    const float* a = weights.thin || !call.in[1].packed ? nullptr : packed_class(weights, call.in[1], f);
    const float* bias = nullptr;
    if (call.in.size() > 2) {
      with_format(call.in[2].dtype, [&](auto format) {
        using B = decltype(format);
        for (int64_t r = 0; r < rows; ++r) w.bias[r] = B::one(call.in[2].as<const typename B::T>()[m + r]);
      });
      bias = w.bias;
    }
    float* to = direct ? out + (image * total + m) * f.columns + first : w.out;
    const int64_t ld = direct ? f.columns : panels * kPanel;
    if (f.k == 0)
      for (int64_t r = 0; r < rows; ++r)
        strip(
            to + r * ld, present, [&](int64_t, int) __attribute__((always_inline)) {
              return bias ? add(zero(), set1(bias[r])) : zero();  // conv.5
            });
    const int64_t chains = num::contraction_blocks(f.k);
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
              const float* thin = packed_class(weights, call.in[1], f) + (m + i) * f.k;
              for (int64_t k = r.begin; k < r.end; ++k) w.a[i * kRow + k - r.begin] = thin[k];
            } else {
              copy_weights<W, kTransposed>(weights, call.in[1].as<const typename W::T>(), taps, group,
                                           row + i, r.begin, r.end, w.a + i * kRow);
            }
        });
      for (int64_t i = 0; i < panels; ++i) {
        Piece piece[kPanel];
        const int64_t n = num::min_i64(kPanel, present - i * kPanel);
        const int pieces = pieces_of(p, f, first + i * kPanel, n, piece);
        float* copy = w.b + i * kPanel * kChain;
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
      constexpr int kTogether = tile_vectors(kMaxRows, 8) > kPer ? tile_vectors(kMaxRows, 8) / kPer : 1;
      const int64_t together = rows < kMaxRows ? panels : kTogether;
      for (int64_t i = 0; i < panels; i += together) {
        const int64_t count = num::min_i64(together, panels - i);
        const Place place{num::block_place(b, f.k),
                          w.sums + i * rows * kPanel,
                          rows,
                          w.level,
                          to + i * kPanel,
                          ld,
                          present - i * kPanel,
                          bias};
        const Ahead next{reinterpret_cast<const char*>(block + total * kRow) + i * ahead, ahead > 0,
                         ahead * count, 0};
        down<F32, true>(block, kRow, Columns<F32, kPer>{w.b + i * kPanel * kChain, kPanel, kPanel * kChain},
                        count, r.end - r.begin, rows, place, next);
      }
    }
    if (!direct) scatter(p, f, image, m, rows, first, present, to, ld, out);
  }
}

template <bool kTransposed>
void thin_blocks(const Call& call, const Job& job, int64_t begin, int64_t end, void* scratch) {
  const Plan& p = job.p;
  const ThinCut& c = job.thin;
  const Weights& weights = p.weights;
  int64_t* offset = static_cast<int64_t*>(scratch);
  float* own = static_cast<float*>(scratch) + 2 * job.most_taps;
  float* flat = own + (job.most_taps + 15) / 16 * 16;
  float* copy = flat + c.rows * c.pitch + kThinSlack;
  int64_t copied = -1, laid = -1;
  const int64_t size[kAxes] = {p.axis[0].out, p.axis[1].out, p.axis[2].out};
  const int64_t deep = conv::phase_of(p.axis[0], 0).count;
  for (int64_t unit = begin; unit < end; ++unit) {
    // [phase][image][group][place][row block][column block][row]: the rows of a group read the same copy.
    int64_t rest = unit;
    const int64_t row = rest % p.rows, place = rest /= p.rows;
    const int64_t column_block = rest % c.column_blocks, row_block = (rest /= c.column_blocks) % c.row_blocks;
    const int64_t d = (rest /= c.row_blocks) % deep, group = (rest /= deep) % p.groups;
    const int64_t image = (rest /= p.groups) % p.images, phase = rest / p.images;
    const Phases f = conv::phases_at(p, phase);
    Block b{d, row_block * c.rows, 0, column_block * c.columns, 0};
    b.rows = num::min_i64(c.rows, f.of[1].count - b.row);
    b.columns = num::min_i64(c.columns, f.of[2].count - b.column);
    if (d >= f.of[0].count || b.rows <= 0 || b.columns <= 0) continue;
    const int64_t m = group * p.rows + row;
    if (f.k && laid != phase) thin_offsets(p, f, c, offset), laid = phase;
    if (f.k && copied != place) {
      copy_block(p, f, c,
                 call.in[0].as<const float>() +
                     (image * p.groups + group) * p.axis[0].in * p.axis[1].in * p.axis[2].in,
                 b, copy);
      copied = place;
    }
    const float* w = own;
    if (f.k && call.in[1].packed)
      w = packed_class(weights, call.in[1], f) + m * f.k;
    else
      with_format(call.in[1].dtype, [&](auto format) {
        using W = decltype(format);
        const int64_t taps[kAxes] = {f.of[0].first, f.of[1].first, f.of[2].first};
        copy_weights<W, kTransposed>(weights, call.in[1].as<const typename W::T>(), taps, group, row, 0, f.k,
                                     own);
      });
    thin_rows(copy, offset, w, f.k, (b.rows - 1) * c.pitch + b.columns, flat);
    float bias = 0;
    const bool biased = call.in.size() > 2;
    if (biased)
      with_format(call.in[2].dtype, [&](auto format) {
        using B = decltype(format);
        bias = B::one(call.in[2].as<const typename B::T>()[m]);
      });
    for (int64_t i = 0; i < b.rows; ++i) {
      const float* y = flat + i * c.pitch;
      const int64_t h = f.of[1].start + (b.row + i) * f.of[1].step;
      float* to =
          call.out[0].as<float>() +
          (((image * p.groups * p.rows + m) * size[0] + f.of[0].start + d * f.of[0].step) * size[1] + h) *
              size[2] +
          f.of[2].start + b.column * f.of[2].step;
      auto value = [&](int64_t j, int lanes) __attribute__((always_inline)) {
        F v = lanes == kW ? load(y + j) : load_n(y + j, lanes);
        return biased ? add(canon(v), set1(bias)) : v;  // conv.3
      };
      if (f.of[2].step == 1) {
        strip(to, b.columns, value);
        continue;
      }
      strip(flat + i * c.pitch, b.columns, value);
      for (int64_t j = 0; j < b.columns; ++j) to[j * f.of[2].step] = y[j];
    }
  }
}

template <bool kTransposed>
void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const Job job = job_of<kTransposed>(call);
  if (phase == 0) {
    const conv::CopyCut c = conv::copy_cut(job.p);
    copy_lines(job.p, call.in[0].as<const float>(), begin * c.each, num::min_i64(end * c.each, c.lines),
               static_cast<float*>(call.shared));
  } else if (job.thin.floats) {
    thin_blocks<kTransposed>(call, job, begin, end, scratch);
  } else {
    block_units<kTransposed>(call, job, begin, end, scratch);
  }
}

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
