// Pixel-major (NHWC) convolution: rows of the GEMM are pixels, columns are output channels. Weights
// are packed as panels of B [tap class][group][panel][K][kPanel]; rows of A are read from a padded
// copy of the operand in which the channels of a pixel are contiguous. Compiled once per
// instruction set.
#pragma once
#include "ops/conv/cpu/im2col.h"
#include "ops/conv/cpu/packed_weights.h"
#include "ops/conv/cpu/store.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Transposes `from`: calls put(to + i * to_ld + j, v, lanes, i) for i < rows and every kW-th j <
// columns, where lane k of v is from[(j + k) * ld + i] and the first `lanes` of them are valid.
template <class Put>
INVAR_INLINE void transpose_to(const float* from, int64_t ld, int64_t rows, int64_t columns, float* to,
                               int64_t to_ld, Put put) {
  for (int64_t i = 0; i < rows; i += kW)
    for (int64_t j = 0; j < columns; j += kW) {
      const int lanes = valid_lanes(columns - j), high = valid_lanes(rows - i);
      F r[kW];
      for (int v = 0; v < kW; ++v) {
        r[v] = v < lanes ? load_part(from + (j + v) * ld + i, high) : zero();
        __builtin_prefetch(from + (j + kW + v) * ld + i);
      }
      transpose(r);
      for (int v = 0; v < high; ++v) {
        put(to + (i + v) * to_ld + j, r[v], lanes, i + v);
        __builtin_prefetch(to + (i + kW + v) * to_ld + j, 1);
      }
    }
}

// Copies lines [begin, end): [image, group][position][position][block of channels].
void copy_pixels(const conv::ConvGeometry& p, const float* x, int64_t begin, int64_t end, float* copy) {
  const Axis deep = conv::copied_axis(p, 0), high = conv::copied_axis(p, 1), wide = conv::copied_axis(p, 2);
  const conv::CopyPartition cut = conv::copy_partition(p);
  const int64_t n = conv::positions_of(wide), channel = deep.in * high.in * wide.in,
                hop = conv::copied_hop(wide);
  // Positions [before, before + inside) of a line are elements first + i * hop of the operand.
  const int64_t before = num::min_i64(wide.low < 0 ? slide::ceil_div(-wide.low, hop) : 0, n);
  const int64_t first = before * hop + wide.low;
  const int64_t inside =
      first < wide.in ? num::min_i64(slide::ceil_div(wide.in - first, hop), n - before) : 0;
  auto put = [](float* at, F v, int lanes, int64_t) __attribute__((always_inline)) {
    store_part(at, v, lanes);
  };
  for (int64_t l = begin; l < end; ++l) {
    int64_t rest = l / cut.parts;
    const int64_t part = l % cut.parts * cut.channels,
                  channels = num::min_i64(cut.channels, p.channels - part);
    float* to = copy + rest * n * p.pitch + part;
    const int64_t h = rest % conv::positions_of(high) * conv::copied_hop(high) + high.low;
    const int64_t d =
        (rest /= conv::positions_of(high)) % conv::positions_of(deep) * conv::copied_hop(deep) + deep.low;
    const int64_t group = rest / conv::positions_of(deep);
    const bool there = d >= 0 && d < deep.in && h >= 0 && h < high.in && inside > 0;
    const int64_t from = there ? before : n, last = there ? from + inside : n;
    const float* line = x + (group * p.channels + part) * channel + (d * high.in + h) * wide.in + first;
    for (int64_t i = from > 0 ? 0 : last; i < n; i = i + 1 == from ? last : i + 1)
      for (int64_t c = 0; c < channels; ++c) to[i * p.pitch + c] = 0;
    for (int64_t c = 0; there && c < channels; c += kW) {
      const int64_t many = num::min_i64(kW, channels - c);
      float* const at = to + from * p.pitch + c;
      if (hop == 1) {
        transpose_to(line + c * channel, channel, inside, many, at, p.pitch, put);
        continue;
      }
      for (int64_t i = 0; i < inside; i += kW) {
        float near[2 * kW * kW];  // transpose_to() prefetches past the end
        const int64_t count = num::min_i64(kW, inside - i);
        for (int64_t v = 0; v < many; ++v)  // prefetch the next channels, which are far apart
          for (int64_t k = 0; k < count * hop; k += 16)
            __builtin_prefetch(line + (c + kW + v) * channel + i * hop + k);
        for (int64_t v = 0; v < many; ++v)
          copy_strided(line + (c + v) * channel + i * hop, hop, count, near + v * kW);
        transpose_to(near, kW, count, many, at + i * p.pitch, p.pitch, put);
      }
    }
  }
}

// pointers[i]: address in the copy, for its group, of the tap at position 0 of pixel first + i of a
// phase.
INVAR_INLINE void pixel_pointers(const conv::ConvGeometry& p, const conv::ConvPhase& f, const float* copy,
                                 int64_t first, int64_t n, const float** pointers) {
  const int64_t wide = f.of[2].count, high = f.of[1].count, deep = f.of[0].count;
  const int64_t line = conv::positions_of(p.axis[2]), area = line * conv::positions_of(p.axis[1]);
  const int64_t image = p.groups * area * conv::positions_of(p.axis[0]);
  auto position = [&](int d, int64_t j) {
    return conv::position_of(p.axis[d], j) / conv::copied_hop(p.axis[d]);
  };
  int64_t row = first / wide, j = first % wide;
  for (int64_t i = 0; i < n; ++row, j = 0) {
    const int64_t base =
        row / high / deep * image + position(0, row / high % deep) * area + position(1, row % high) * line;
    for (; j < wide && i < n; ++j, ++i) pointers[i] = copy + (base + position(2, j)) * p.pitch;
  }
}

// Fills the indirection buffer (as in indirect convolution) for an operand that is read in place or
// for an unpadded copy, `size` elements per image: `rows` pointers per tap. A tap in the padding
// points to `zeros`.
INVAR_INLINE void tap_pointers(const conv::ConvGeometry& p, const conv::ConvPhase& f, const float* x,
                               int64_t size, int64_t first, int64_t n, const float* zeros, int64_t rows,
                               const float** pointers) {
  const Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  int64_t line = first / f.of[2].count, j = first % f.of[2].count;
  for (int64_t i = 0, length; i < n; i += length, ++line, j = 0) {
    length = num::min_i64(f.of[2].count - j, n - i);
    const int64_t image = line / f.of[1].count / f.of[0].count;
    for (int64_t t = 0; t < deep.kernel; ++t)
      for (int64_t u = 0; u < high.kernel; ++u) {
        const int64_t d = line / f.of[1].count % f.of[0].count * deep.stride - deep.pad + t * deep.dilation;
        const int64_t h = line % f.of[1].count * high.stride - high.pad + u * high.dilation;
        const bool there = d >= 0 && d < deep.in && h >= 0 && h < high.in;
        const float* const from = there ? x + image * size + (d * high.in + h) * wide.in * p.pitch : zeros;
        for (int64_t v = 0; v < wide.kernel; ++v) {
          const float** const to = pointers + ((t * high.kernel + u) * wide.kernel + v) * rows + i;
          int64_t w = j * wide.stride - wide.pad + v * wide.dilation;
          for (int64_t q = 0; q < length; ++q, w += wide.stride)
            to[q] = there && w >= 0 && w < wide.in ? from + w * p.pitch : zeros;
        }
      }
  }
}

// Splits one K block into spans that are contiguous from a pixel on: adjacent taps share one span
// of the copy. With an indirection buffer each tap has its own span and its own `rows` pointers.
INVAR_INLINE void k_spans_of(const conv::ConvGeometry& p, const conv::ConvPhase& f, num::Range r,
                             int64_t group, int64_t rows, KSpan* to) {
  if (p.indirect) {
    const int64_t channel = p.nhwc_operand ? group * p.channels : 0;
    for (int64_t k = r.begin, next; k < r.end; k = next, ++to) {
      const int64_t tap = k / p.channels;
      next = num::min_i64((tap + 1) * p.channels, r.end);
      *to = {channel - tap * p.channels + r.begin, next - r.begin, tap * rows};
    }
    return;
  }
  const int64_t line = conv::positions_of(p.axis[2]), high = conv::positions_of(p.axis[1]);
  auto offset = [&](const TapCursor& w) {
    int64_t at[kAxes];
    for (int d = 0; d < kAxes; ++d) at[d] = conv::shift_of(p.axis[d], f.of[d], w.t[d]);
    return ((at[0] * high + at[1]) * line + at[2]) * p.pitch + w.channel;
  };
  TapCursor w = cursor_at(p, f, r.begin);
  for (int64_t k = 0; k < r.end - r.begin; ++to) {
    const int64_t from = offset(w);
    int64_t n = 0;
    do {
      n += p.channels - w.channel;
      next_tap(f, w);
    } while (k + n < r.end - r.begin && offset(w) == from + n);
    *to = {from - k, num::min_i64(k + n, r.end - r.begin), 0};
    k += n;
  }
}

// Pixel-major scratch: row pointers, the spans of a K block, zeros for padding, sums, and the
// result before and after its transposition.
struct PixelScratch {
  const float** pointers;
  KSpan* spans;
  float *zeros, *sums, *out, *transposed, *bias, *end;
  int64_t level;
};
PixelScratch pixel_scratch(const conv::ConvGeometry& p, const conv::PixelPartition& c, int64_t most_k,
                           void* scratch) {
  PixelScratch w;
  const int64_t taps = p.axis[0].kernel * p.axis[1].kernel * p.axis[2].kernel;
  w.pointers = static_cast<const float**>(scratch);
  w.spans = reinterpret_cast<KSpan*>(w.pointers + c.rows * (p.indirect ? taps : 1));
  w.level = c.rows * c.run * kPanel;
  const int64_t words = (reinterpret_cast<char*>(w.spans + kChain) - static_cast<char*>(scratch)) /
                        static_cast<int64_t>(sizeof(float));
  w.zeros = static_cast<float*>(scratch) + slide::ceil_div(words, 16) * 16;
  w.sums = w.zeros + (p.indirect ? slide::ceil_div(p.pitch, 16) * 16 : 0);
  w.out = w.sums + (num::contraction_blocks(most_k) > 1 ? num::kSumsKept * w.level : 0);
  w.transposed = w.out + w.level;
  w.bias = w.transposed + w.level;
  w.end = w.bias + c.run * kPanel;
  return w;
}

// Transposes the result of a unit, rows of `ld` in w.out, into an NCHW tensor: pixels
// [first, first + rows) of channels [m, m + present). is_final: the epilogue is already applied.
void store_nchw(const Call& call, const conv::ConvGeometry& p, const conv::ConvPhase& f,
                const PixelScratch& w, GemmEpilogue last, bool is_final, int64_t m, int64_t first,
                int64_t rows, int64_t present, int64_t ld) {
  const int64_t image = first / f.columns, at = first % f.columns;
  const bool direct = at + rows <= f.columns && f.of[0].step * f.of[1].step * f.of[2].step == 1;
  float* const out = call.out[0].as<float>();
  float* const to = direct ? out + (image * p.groups * p.rows + m) * f.columns + at : w.transposed;
  if (!is_final && direct) fuse_add_relu(last, call, to);
  transpose_to(
      w.out, ld, present, rows, to,
      direct ? f.columns : rows, [&](float* y, F c, int lanes, int64_t i) __attribute__((always_inline)) {
        store_part(y, apply_epilogue(last, c, bias_vector(last, i), y - to, lanes), lanes);
      });
  if (direct) {
    if (call.cpu.epilogue && !call.cpu.epilogue->add_relu)
      notify_block(call, {to - out, rows, present, f.columns});
    return;
  }
  Call left = call;
  if (is_final) left.cpu.epilogue = nullptr;
  scatter(left, p, f, 0, m, present, first, rows, w.transposed, rows);
}

// Units of (phase, group, block of pixels, run of panels of output channels).
void pixel_units(const Call& call, const conv::ConvGeometry& p, const conv::PixelPartition& c, int64_t most_k,
                 int64_t begin, int64_t end, void* scratch) {
  const PixelScratch w = pixel_scratch(p, c, most_k, scratch);
  const View& y = call.out[0];
  for (int64_t i = 0; p.indirect && i < p.pitch; ++i) w.zeros[i] = 0;
  // NHWC results get their epilogue when they are summed, NCHW results when they are transposed.
  const View* const other = call.cpu.epilogue ? call.cpu.epilogue->other : nullptr;
  const bool at_once = y.pitch || (other && other->pitch);
  int64_t channel = p.pitch;
  for (int d = 0; d < kAxes; ++d) channel *= conv::positions_of(conv::copied_axis(p, d));
  // contraction.5: +0 times a finite weight may be skipped.
  const float* const left_out =
      p.skips_padding && all_finite(p.weights, call.in[1].data) != 0 ? w.zeros : nullptr;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t rest = unit;
    const int64_t panel = rest % c.runs * c.run, first = (rest /= c.runs) % c.blocks * c.rows;
    const int64_t group = (rest /= c.blocks) % p.groups;
    const conv::ConvPhase f = conv::phase_at(p, rest / p.groups);
    const int64_t rows = num::min_i64(c.rows, p.images * f.columns - first),
                  panels = num::min_i64(c.run, c.panels - panel);
    if (rows <= 0 || panels <= 0) continue;
    const int64_t row = panel * kPanel, m = group * p.rows + row, ld = panels * kPanel,
                  present = num::min_i64(ld, p.rows - row);
    const int64_t place = first * y.pitch + m;  // in the result
    GemmEpilogue last{.bias = widened_bias(call, m, present, w.bias)};
    last.plain = last.bias && has_no_small_bias(last.bias, present);
    if (at_once) {
      for (int64_t i = present; i < ld; ++i) w.bias[i] = 0;
      last.by_column = true, last.relu = call.cpu.epilogue && call.cpu.epilogue->relu;
      if (other)
        last.other = other->as<const float>() + first * other->pitch + m, last.other_ld = other->pitch;
    }
    const int64_t chains = num::contraction_blocks(f.k);
    const float* b = chains
                         ? packed_class(p.weights, call.in[1], f) + panel_index(p.weights, f.k, group, row, 0)
                         : nullptr;
    for (int64_t i = 0; chains == 0 && i < rows * ld; ++i) w.out[i] = 0;  // conv.5
    const float* const copy = static_cast<const float*>(call.shared) + group * channel;
    if (p.indirect)
      tap_pointers(p, f, p.nhwc_operand ? call.in[0].as<const float>() : copy,
                   p.nhwc_operand ? channel : p.groups * channel, first, rows, w.zeros, c.rows, w.pointers);
    else
      pixel_pointers(p, f, copy, first, rows, w.pointers);
    for (int64_t kb = 0; kb < chains; ++kb) {
      const num::Range r = num::block_range(kb, f.k);
      k_spans_of(p, f, r, group, c.rows, w.spans);
      const int64_t tile_panels = rows < kMaxRows ? panels : kPanelsPerTile;
      for (int64_t i = 0; i < panels; i += tile_panels) {
        const int64_t count = num::min_i64(tile_panels, panels - i);
        KBlockOutput at{num::block_position(kb, f.k),
                        w.sums + i * rows * kPanel,
                        rows,
                        w.level,
                        (y.pitch ? y.as<float>() + place : w.out) + i * kPanel,
                        y.pitch ? y.pitch : ld,
                        (at_once ? present : ld) - i * kPanel,
                        {.raw = true}};
        if (at_once) {
          at.epilogue = last;
          if (last.bias) at.epilogue.bias += i * kPanel;
          if (other) at.epilogue.other += i * kPanel;
        }
        // Next come the next panels of this K block, else the first ones of the next.
        const bool more = i + count < panels;
        const int64_t k = more ? r.begin : r.end;
        const int64_t floats = kPanel * (num::min_i64(k + kChain, f.k) - k);
        const PrefetchRange next{
            reinterpret_cast<const char*>(b + (more ? i + count : 0) * kPanel * f.k + k * kPanel),
            floats > 0 ? count : 0, floats * static_cast<int64_t>(sizeof(float)),
            kPanel * f.k * static_cast<int64_t>(sizeof(float))};
        macrokernel(IndirectA{w.pointers, w.spans, left_out},
                    PanelsOfB<F32, kVectorsPerPanel, 0, kPanel>{b + (i * f.k + r.begin) * kPanel, kPanel,
                                                                kPanel * f.k},
                    count, r.end - r.begin, rows, at, next);
      }
    }
    if (y.pitch) continue;
    store_nchw(call, p, f, w, at_once ? GemmEpilogue{.raw = true} : last, at_once, m, first, rows, present,
               ld);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
