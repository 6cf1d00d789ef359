// CPU pooling. A tile of a channel is copied with its padding (kernels/cpu/window_copies.h); each
// tap is then a vector of adjacent outputs. Most maxima need no copy (line_maxima.h). Windows too
// large for a copy, or mostly padding, are computed per output from the elements inside.
#include "kernels/cpu/window_copies.h"
#include "num/contract/lanes.h"
#include "num/reduce/extreme.h"
#include "ops/pool/cpu/line_maxima.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using num::INVAR_ISA_NS::Largest;
using pool::PoolGeometry;

constexpr int kExtremeVectors = 4;  // three registers each

// The window of output `o` of a channel, from its first tap inside the operand on.
struct Window {
  int64_t at[kAxes], from[kAxes], taps[kAxes];
};
Window window_of(const PoolGeometry& p, int64_t o) {
  Window w;
  for (int d = kAxes - 1; d >= 0; --d) {
    w.at[d] = o % p.axis[d].out, o /= p.axis[d].out;
    w.from[d] = pool::first_tap_inside(p.axis[d], w.at[d]),
    w.taps[d] = pool::taps_inside(p.axis[d], w.at[d], false);
  }
  return w;
}
// Counts the taps that count.
int64_t count_of(const PoolGeometry& p, const Window& w, bool padded) {
  int64_t count = 1;
  for (int d = 0; d < kAxes; ++d) count *= pool::taps_inside(p.axis[d], w.at[d], padded);
  return count;
}
// Calls fn(first tap, its element) for each line of w.taps[2] taps inside.
template <class Fn>
INVAR_INLINE void each_line(const PoolGeometry& p, const Window& w, Fn fn) {
  auto element = [&](int d, int64_t t) {
    return w.at[d] * p.axis[d].stride + t * p.axis[d].dilation - p.axis[d].pad;
  };
  for (int64_t i = w.from[0]; w.taps[2] > 0 && i < w.from[0] + w.taps[0]; ++i)
    for (int64_t j = w.from[1]; j < w.from[1] + w.taps[1]; ++j)
      fn((i * p.axis[1].kernel + j) * p.axis[2].kernel + w.from[2],
         (element(0, i) * p.axis[1].in + element(1, j)) * p.axis[2].in + element(2, w.from[2]));
}
// Calls fn(element) for each tap inside.
template <class Fn>
INVAR_INLINE void each_inside(const PoolGeometry& p, const Window& w, Fn fn) {
  each_line(p, w, [&](int64_t, int64_t e) {
    for (int64_t k = 0; k < w.taps[2]; ++k) fn(e + k * p.axis[2].dilation);
  });
}

// n outputs and up to kSlideSlack more, each over taps offset[0 ... k); or, in every lane, the
// window of one output of the channel at x.
struct MaxReduction {
  static constexpr float kFill = -__builtin_inff();
  static constexpr bool kByLines = true;
  INVAR_INLINE void rows(const float* x, const int64_t* offset, int64_t k, int64_t n, float* to) {
    for (int64_t j = 0; j < n; j += kExtremeVectors * kW) {
      Largest e[kExtremeVectors];
      for (Largest& v : e) v = Largest::of(set1(kFill));
      for (int64_t t = 0; t < k; t += 2) {
        const float *a = x + j + offset[t], *b = x + j + offset[t + 1 < k ? t + 1 : t];
        for (int v = 0; v < kExtremeVectors; ++v) Largest::take(e[v], load(a + v * kW), load(b + v * kW));
      }
      for (int v = 0; v < kExtremeVectors; ++v) store(to + j + v * kW, Largest::lanes_of(e[v]));
    }
  }
  INVAR_INLINE F window(const PoolGeometry& p, const Window& w, const float* x) {
    const int64_t hop = p.axis[2].dilation;
    const int64_t n = w.taps[2];
    Largest most = Largest::of(set1(kFill));
    each_line(p, w, [&](int64_t, int64_t e) {
      const float* const line = x + e;
      if (hop == 1 && n >= kW) {  // order-free, so the last two vectors may overlap earlier ones
        for (int64_t k = 0; k < n; k += 2 * kW)
          Largest::take(most, load(line + num::min_i64(k, n - kW)),
                        load(line + num::min_i64(k + kW, n - kW)));
        return;
      }
      for (int64_t k = 0; k < n; k += 2)
        Largest::take(most, set1(line[k * hop]), set1(line[num::min_i64(k + 1, n - 1) * hop]));
    });
    return set1(Largest::within(most));
  }
};

// Sums of step(element), on the schedule of a contraction with ones (or, if step is fma, with
// itself).
template <class Step>
struct SumReduction {
  static constexpr float kFill = 0;
  static constexpr bool kByLines = false;
  INVAR_INLINE void rows(const float* x, const int64_t* offset, int64_t k, int64_t n, float* to) {
    sum_taps(
        x, offset, k, n, to,
        [](F sum, F v, int64_t) __attribute__((always_inline)) { return Step::step(sum, v); });
  }
  // A tap in the padding is a term +0.
  INVAR_INLINE F window(const PoolGeometry& p, const Window& w, const float* x) {
    const int64_t hop = p.axis[2].dilation;
    return num::INVAR_ISA_NS::contract_some(
        p.taps, [&](auto run) __attribute__((always_inline)) {
          each_line(p, w, [&](int64_t t, int64_t e) {
            run(
                t, w.taps[2], [&](F c, int64_t k) __attribute__((always_inline)) {
                  return Step::step(c, set1(x[e + k * hop]));
                });
          });
        });
  }
};
struct AddTerm {
  INVAR_INLINE F step(F c, F x) { return add(c, x); }
};
struct AddMagnitude {
  INVAR_INLINE F step(F c, F x) { return add(c, num::INVAR_ISA_NS::abs(x)); }
};
struct AddSquare {
  INVAR_INLINE F step(F c, F x) { return fma(x, x, c); }
};

// The operations: how a window is reduced, and how the result is finished. kCounts: finish() uses
// the number of taps that count.
struct MaxOp {
  static constexpr const char* kName = "max_pool";
  using Reduce = MaxReduction;
  static constexpr bool kCounts = false;
  INVAR_INLINE F finish(F y, F) { return y; }
};
struct AverageOp {
  static constexpr const char* kName = "average_pool";
  using Reduce = SumReduction<AddTerm>;
  static constexpr bool kCounts = true;
  INVAR_INLINE F finish(F y, F count) { return div(y, count); }
};
struct NormOp {
  using Reduce = SumReduction<AddSquare>;
  static constexpr bool kCounts = false;
  INVAR_INLINE F finish(F y, F) { return sqrt(y); }
};
struct AbsoluteOp {
  using Reduce = SumReduction<AddMagnitude>;
  static constexpr bool kCounts = false;
  INVAR_INLINE F finish(F y, F) { return y; }
};

// Scratch of a tile: tap offsets, results, counts per column, the padded copy, a line of maxima.
struct TileScratch {
  int64_t* offset;
  float *flat, *counts, *copy, *line, *end;
};
TileScratch tile_scratch(const PoolGeometry& p, void* scratch) {
  TileScratch w;
  w.offset = static_cast<int64_t*>(scratch);
  w.flat = static_cast<float*>(scratch) + 2 * p.taps;
  w.counts = w.flat + p.tiling.rows * p.tiling.pitch + kSlideSlack;
  w.copy = w.counts + p.tiling.columns + kW;
  w.line = w.copy + p.tiling.floats + 2 * kSlideSlack;
  w.end = w.line + MaximaLine(p).floats(p.axis[2]);
  return w;
}

size_t scratch_bytes(const Call& call) {
  const PoolGeometry p = pool::geometry_of(call);
  if (!p.tiling.floats) return 0;
  return static_cast<size_t>(tile_scratch(p, nullptr).end - static_cast<float*>(nullptr)) * sizeof(float);
}

int64_t units(const Call& call, int) {
  const PoolGeometry p = pool::geometry_of(call);
  return p.tiling.floats ? slide::block_units(p.axis, p.tiling, p.images) : call.out[0].elements();
}

int64_t size_in(const PoolGeometry& p) {
  return p.axis[0].in * p.axis[1].in * p.axis[2].in;
}

template <class Op>
void run_tiles(const Call& call, const PoolGeometry& p, int64_t begin, int64_t end, void* scratch) {
  const TileScratch w = tile_scratch(p, scratch);
  const int64_t in = size_in(p), out = p.axis[0].out * p.axis[1].out * p.axis[2].out;
  const bool padded = Op::kCounts && AveragePoolAttributes(call).count_include_pad != 0;
  const MaximaLine line(p);
  for (int64_t i = 0; Op::Reduce::kByLines && i < line.floats(p.axis[2]); ++i) w.line[i] = Op::Reduce::kFill;
  bool ready = false;
  for (int64_t unit = begin; unit < end; ++unit) {
    const slide::Block b = slide::block_at(p.axis, p.tiling, p.images, p.channels, unit);
    if (!ready) block_offsets(p.axis, p.tiling, b, w.offset), ready = true;
    for (int64_t j = 0; Op::kCounts && j < b.columns; ++j)
      w.counts[j] = static_cast<float>(pool::taps_inside(p.axis[2], b.column + j, padded));
    const int64_t deep = Op::kCounts ? pool::taps_inside(p.axis[0], b.deep, padded) : 0;
    for (int64_t c = b.channel; c < b.channel + b.channels; ++c) {
      const int64_t place = b.image * p.channels + c;
      const float* const x = call.in[0].as<const float>() + place * in;
      if constexpr (Op::Reduce::kByLines)
        if (line.takes && maxima_of_lines(p, line, b, x, w.line,
                                          call.out[0].as<float>() + place * out + row_offset(p.axis, b, 0)))
          continue;
      copy_block(p.axis, p.tiling, b, x, (p.images * p.channels - place) * in, Op::Reduce::kFill, w.copy);
      Op::Reduce::rows(w.copy, w.offset, p.taps, (b.rows - 1) * p.tiling.pitch + b.columns, w.flat);
      for (int64_t i = 0; i < b.rows; ++i) {
        const F count = Op::kCounts
                            ? set1(static_cast<float>(deep * pool::taps_inside(p.axis[1], b.row + i, padded)))
                            : zero();
        store_row(
            p.axis, b, i, call.out[0].as<float>() + place * out,
            w.flat, [&](int64_t j) __attribute__((always_inline)) {
              return Op::finish(load(w.flat + i * p.tiling.pitch + j),
                                Op::kCounts ? mul(count, load(w.counts + j)) : zero());
            });
      }
    }
  }
}

template <class Op>
void per_output(const Call& call, const PoolGeometry& p, int64_t begin, int64_t end) {
  const int64_t in = size_in(p), out = p.axis[0].out * p.axis[1].out * p.axis[2].out;
  const bool padded = Op::kCounts && AveragePoolAttributes(call).count_include_pad != 0;
  for (int64_t i = begin; i < end; ++i) {
    const Window window = window_of(p, i % out);
    const F y = Op::Reduce::window(p, window, call.in[0].as<const float>() + i / out * in);
    const F count = Op::kCounts ? set1(static_cast<float>(count_of(p, window, padded))) : zero();
    store_canonical_n(call.out[0].as<float>() + i, Op::finish(y, count), 1);
  }
}

// NHWC: the taps of a window are runs of channels. Taps inside are read in place if the excess of a
// vector read stays in the operand; taps in the padding change nothing (pool.2, contraction.5).
constexpr int64_t kChannels = 64;

struct NhwcScratch {
  int64_t *offset, *gathered;
  float *flat, *copy, *end;
};
NhwcScratch nhwc_scratch(const PoolGeometry& p, void* scratch) {
  NhwcScratch w;
  w.offset = static_cast<int64_t*>(scratch);
  w.gathered = w.offset + p.taps;
  w.flat = static_cast<float*>(scratch) + 4 * p.taps;
  w.copy = w.flat + kChannels + kSlideSlack;
  w.end = w.copy + p.taps * kChannels + kSlideSlack;
  return w;
}
size_t nhwc_scratch_bytes(const Call& call) {
  return static_cast<size_t>(nhwc_scratch(pool::geometry_of(call), nullptr).end -
                             static_cast<float*>(nullptr)) *
         sizeof(float);
}
int64_t nhwc_units(const Call& call, int) {
  const PoolGeometry p = pool::geometry_of(call);
  return p.channels ? call.out[0].elements() / p.channels : 0;
}

template <class Op>
void run_nhwc(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const PoolGeometry p = pool::geometry_of(call);
  const NhwcScratch w = nhwc_scratch(p, scratch);
  const int64_t in = size_in(p), out = p.axis[0].out * p.axis[1].out * p.axis[2].out;
  const int64_t pitch = call.in[0].pitch, all = p.images * in * pitch;
  const bool padded = Op::kCounts && AveragePoolAttributes(call).count_include_pad != 0;
  for (int64_t t = 0; t < p.taps; ++t) w.gathered[t] = t * kChannels;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t image = i / out * in * pitch;
    const float* const x = call.in[0].as<const float>() + image;
    float* const to = call.out[0].as<float>() + i * call.out[0].pitch;
    const Window window = window_of(p, i % out);
    const F count = set1(static_cast<float>(count_of(p, window, padded)));
    int64_t inside = 0;
    each_inside(p, window, [&](int64_t e) { w.offset[inside++] = e * pitch; });
    const int64_t farthest = inside ? w.offset[inside - 1] : 0;
    for (int64_t c = 0; c < p.channels; c += kChannels) {
      const int64_t n = num::min_i64(kChannels, p.channels - c);
      const bool in_place = image + farthest + c + n + kSlideSlack <= all;
      if (!in_place) {
        for (int64_t t = 0; t < inside; ++t)
          for (int64_t j = 0; j < n; ++j) w.copy[t * kChannels + j] = x[w.offset[t] + c + j];
        for (int64_t j = 0; j < kSlideSlack; ++j) w.copy[inside * kChannels + j] = Op::Reduce::kFill;
      }
      Op::Reduce::rows(in_place ? x + c : w.copy, in_place ? w.offset : w.gathered, inside, n, w.flat);
      for (int64_t j = 0; j < n; j += kW)
        store_canonical_n(to + c + j, Op::finish(load(w.flat + j), count),
                          static_cast<int>(num::min_i64(kW, n - j)));
    }
  }
}

template <class Op>
const CpuKernel* channels_last(const View&, const Attributes& attrs, int64_t&) {
  static constexpr CpuKernel row = {.op = Op::kName,
                                    .isa = INVAR_ISA,
                                    .units = nhwc_units,
                                    .run = run_nhwc<Op>,
                                    .scratch_bytes = nhwc_scratch_bytes};
  return pool::takes_channels_last(attrs) ? &row : nullptr;
}

template <class Op>
void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const PoolGeometry p = pool::geometry_of(call);
  if (p.tiling.floats)
    run_tiles<Op>(call, p, begin, end, scratch);
  else
    per_output<Op>(call, p, begin, end);
}

void lp(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  if (LpPoolAttributes(call).p == 1)
    run<AbsoluteOp>(call, phase, begin, end, scratch);
  else
    run<NormOp>(call, phase, begin, end, scratch);
}

// pool.4
void indices(const Call& call, int, int64_t begin, int64_t end, void*) {
  const PoolGeometry p = pool::geometry_of(call);
  const View& view = call.in[0];
  const bool by_columns = MaxPoolIndicesAttributes(call).column_major != 0;
  const int64_t in = size_in(p), out = p.axis[0].out * p.axis[1].out * p.axis[2].out,
                n = call.out[0].elements();
  const int64_t wide = last_dim(view), high = view.rank > 3 ? view.dim[view.rank - 2] : 1;
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) {
    const float* x = view.as<const float>() + i / out * in;
    int64_t best = -1;
    each_inside(p, window_of(p, i % out), [&](int64_t e) {
      if (best < 0 || x[e] > x[best] || (x[e] != x[e] && x[best] == x[best])) best = e;
    });
    if (best >= 0 && by_columns)
      best = (best % wide * high + best / wide % high) * (in / (high * wide)) + best / (high * wide);
    call.out[0].as<int64_t>()[i] = best < 0 ? -1 : i / out * in + best;
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(max_pool), INVAR_ROW_OF(max_pool_indices), INVAR_ROW_OF(average_pool),
    INVAR_ROW_OF(lp_pool);
const CpuKernel INVAR_ROW_OF(max_pool) = {.op = "max_pool",
                                          .isa = INVAR_ISA,
                                          .units = INVAR_ISA_NS::units,
                                          .run = INVAR_ISA_NS::run<INVAR_ISA_NS::MaxOp>,
                                          .scratch_bytes = INVAR_ISA_NS::scratch_bytes,
                                          .channels_last = INVAR_ISA_NS::channels_last<INVAR_ISA_NS::MaxOp>};
const CpuKernel INVAR_ROW_OF(max_pool_indices) = {
    .op = "max_pool_indices", .isa = INVAR_ISA, .units = chunk_units, .run = INVAR_ISA_NS::indices};
const CpuKernel INVAR_ROW_OF(average_pool) = {
    .op = "average_pool",
    .isa = INVAR_ISA,
    .units = INVAR_ISA_NS::units,
    .run = INVAR_ISA_NS::run<INVAR_ISA_NS::AverageOp>,
    .scratch_bytes = INVAR_ISA_NS::scratch_bytes,
    .channels_last = INVAR_ISA_NS::channels_last<INVAR_ISA_NS::AverageOp>};
const CpuKernel INVAR_ROW_OF(lp_pool) = {.op = "lp_pool",
                                         .isa = INVAR_ISA,
                                         .units = INVAR_ISA_NS::units,
                                         .run = INVAR_ISA_NS::lp,
                                         .scratch_bytes = INVAR_ISA_NS::scratch_bytes};

}  // namespace invar::ops
