// Packed weights in f32, by tap class: rows of A per K block [class][K block][M][kPackedRow];
// panels of B [class][group][panel][K][kPanel] for pixel-major GEMM; whole rows [class][M][K] for
// depthwise groups. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_blocking.h"
#include "ops/conv/conv.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Floats of one tap class. Depthwise groups keep whole rows of K; others one K block at a time, or
// panels.
int64_t packed_size(const conv::WeightLayout& w, int64_t k) {
  if (w.pixel_major) return w.groups * slide::ceil_div(w.rows, kPanel) * kPanel * k;
  return w.groups * w.rows * (w.depthwise ? k : num::contraction_blocks(k) * kPackedRow);
}

// Calls fn(first taps, K, float offset) for every tap class.
template <class Fn>
INVAR_INLINE void each_class(const conv::WeightLayout& w, Fn fn) {
  int64_t at = 0;
  for (int64_t i = 0; i < w.axis[0].classes; ++i)
    for (int64_t j = 0; j < w.axis[1].classes; ++j)
      for (int64_t l = 0; l < w.axis[2].classes; ++l) {
        const int64_t first[kAxes] = {i, j, l};
        const int64_t k = w.channels * slide::taps_of(w.axis[0], i) * slide::taps_of(w.axis[1], j) *
                          slide::taps_of(w.axis[2], l);
        fn(first, k, at);
        at += packed_size(w, k);
      }
}

// Widens elements [begin, end) of K of one row of a class.
template <class W, bool kTransposed>
INVAR_INLINE void copy_weights(const conv::WeightLayout& w, const typename W::T* from,
                               const int64_t (&first)[kAxes], int64_t group, int64_t row, int64_t begin,
                               int64_t end, float* to) {
  if (begin == end) return;
  int64_t taps[kAxes], t[kAxes], rest = begin / w.channels, c = begin % w.channels;
  for (int d = kAxes - 1; d >= 0; --d) {
    taps[d] = slide::taps_of(w.axis[d], first[d]);
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

// Index of element i of K of a row in a class that is packed as panels.
INVAR_INLINE int64_t panel_index(const conv::WeightLayout& w, int64_t k, int64_t group, int64_t row,
                                 int64_t i) {
  return ((group * slide::ceil_div(w.rows, kPanel) + row / kPanel) * k + i) * kPanel + row % kPanel;
}

// A flag after the packed panels: 1 if all weights are finite, else 0.
float& all_finite(const conv::WeightLayout& w, void* packed) {
  int64_t floats = 0;
  each_class(w, [&](const int64_t(&)[kAxes], int64_t k, int64_t at) { floats = at + packed_size(w, k); });
  return static_cast<float*>(packed)[floats];
}

template <bool kTransposed, bool kPixelMajor = false>
size_t pack_bytes(const View& v, int i, const Attributes& attrs) {
  if (i != 1) return 0;
  int64_t floats = 0;
  const conv::WeightLayout w = conv::weight_layout(v, attrs, kTransposed, kPixelMajor);
  each_class(w, [&](const int64_t(&)[kAxes], int64_t k, int64_t at) { floats = at + packed_size(w, k); });
  if (w.pixel_major) ++floats;  // all_finite()
  return static_cast<size_t>(floats) * sizeof(float);
}

template <bool kTransposed, bool kPixelMajor = false>
void pack(const View& v, int, const Attributes& attrs, void* packed) {
  const conv::WeightLayout w = conv::weight_layout(v, attrs, kTransposed, kPixelMajor);
  with_format(v.dtype, [&](auto format) {
    using W = decltype(format);
    const auto* from = v.as<const typename W::T>();
    each_class(w, [&](const int64_t(&first)[kAxes], int64_t k, int64_t at) {
      float* to = static_cast<float*>(packed) + at;
      const int64_t chains = num::contraction_blocks(k), rows = w.groups * w.rows;
      for (int64_t i = 0; w.pixel_major && i < packed_size(w, k); ++i) to[i] = 0;
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t b = 0; b < chains; ++b) {
          const num::Range r = num::block_range(b, k);
          const int64_t group = m / w.rows, row = m % w.rows;
          float piece[kChain];
          copy_weights<W, kTransposed>(w, from, first, group, row, r.begin, r.end,
                                       w.pixel_major ? piece
                                       : w.depthwise ? to + m * k + r.begin
                                                     : to + (b * rows + m) * kPackedRow);
          for (int64_t i = r.begin; w.pixel_major && i < r.end; ++i)
            to[panel_index(w, k, group, row, i)] = piece[i - r.begin];
        }
    });
  });
  if (!w.pixel_major) return;
  float& finite = all_finite(w, packed);
  finite = 1;
  for (const float* p = static_cast<const float*>(packed); p < &finite; ++p)
    if (!__builtin_isfinite(*p)) finite = 0;
}

// The tap class of a phase in packed weights.
[[maybe_unused]] float* packed_class(const conv::WeightLayout& w, const View& v, const conv::ConvPhase& f) {
  float* found = nullptr;
  each_class(w, [&](const int64_t(&first)[kAxes], int64_t, int64_t at) {
    if (first[0] == f.of[0].first && first[1] == f.of[1].first && first[2] == f.of[2].first)
      found = v.as<float>() + at;
  });
  return found;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
