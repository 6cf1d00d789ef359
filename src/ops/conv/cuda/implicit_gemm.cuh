// Convolution as an implicit GEMM: rows are output channels, columns are pixels, and K runs over
// taps and channels (conv.2). A thread block makes a tile of both through a circular pipeline in
// shared memory; it gathers the operand's elements where the taps point (+0 outside). Also: direct
// convolution, a thread for each output.
#pragma once
#include <cuda_pipeline.h>

#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "num/contract/lanes.h"
#include "ops/conv/conv.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using conv::ConvGeometry;
using conv::ConvPhase;
using conv::kAxes;
using slide::Axis;

// The outputs of one phase. Output j of an axis reads element j * step + tap * hop + base for each
// tap.
struct ConvOutputs {
  struct {
    FastDivmod count, taps;
    int64_t in, step, hop, base;
    int64_t start, stride, out;  // output j is element start + j * stride of `out` in the result
  } axis[kAxes];
  FastDivmod channels;
  int64_t groups, rows, row_pitch;  // output channels per group; with the padding of packed weights
  int64_t pixels, k;
  int64_t plane, result;  // elements per channel of the operand, of the result
};
ConvOutputs conv_outputs(const ConvGeometry& p, const ConvPhase& f, int64_t row_pitch) {
  ConvOutputs o{.channels = FastDivmod(p.channels),
                .groups = p.groups,
                .rows = p.rows,
                .row_pitch = row_pitch,
                .pixels = p.images * f.columns,
                .k = f.k,
                .plane = 1,
                .result = 1};
  for (int d = 0; d < kAxes; ++d) {
    const Axis& a = p.axis[d];
    const slide::AxisPhase& phase = f.of[d];
    o.axis[d] = {.count = FastDivmod(phase.count),
                 .taps = FastDivmod(phase.taps),
                 .in = a.in,
                 .step = conv::position_of(a, 1),
                 .hop = a.transposed ? phase.shift_hop : a.dilation,
                 .base = a.low + phase.shift,
                 .start = phase.start,
                 .stride = phase.step,
                 .out = a.out};
    o.plane *= a.in, o.result *= a.out;
  }
  return o;
}

// A pixel of the result: its image, the indices that tap 0 reads, and its index in a channel of the
// result, in integers of type I.
template <class I>
struct Pixel {
  I image, from[kAxes], to;
};
template <class I>
__device__ Pixel<I> pixel_of(const ConvOutputs& o, I pixel) {
  Pixel<I> c;
  I step = 1;
  c.to = 0;
#pragma unroll
  for (int d = kAxes - 1; d >= 0; --d) {
    const auto& a = o.axis[d];
    const I j = a.count.remainder(pixel);
    c.from[d] = j * static_cast<I>(a.step) + static_cast<I>(a.base);
    c.to += (static_cast<I>(a.start) + j * static_cast<I>(a.stride)) * step;
    step *= static_cast<I>(a.out);
  }
  c.image = pixel;
  return c;
}
template <class I>
struct TapOffset {
  I at[kAxes];
};
template <class I>
__device__ TapOffset<I> tap_of(const ConvOutputs& o, I tap) {
  TapOffset<I> t;
#pragma unroll
  for (int d = kAxes - 1; d >= 0; --d) t.at[d] = o.axis[d].taps.remainder(tap);
  return t;
}
// The element of a channel that a tap reads, or -1 outside.
template <class I>
__device__ I element_at(const ConvOutputs& o, const Pixel<I>& c, const TapOffset<I>& t) {
  I at = 0;
  bool inside = true;
#pragma unroll
  for (int d = 0; d < kAxes; ++d) {
    const I in = static_cast<I>(o.axis[d].in), i = c.from[d] + t.at[d] * static_cast<I>(o.axis[d].hop);
    inside &= i >= 0 && i < in;
    at = at * in + i;
  }
  return inside ? at : -1;
}

// The epilogue: stores a contraction, with a bias by conv.3.
struct Bias {
  const void* p;  // null: none
  DType stored;
};
__device__ void store_result(float* out, F y, const Bias& bias, int64_t m) {
  y = canonicalize(y);
  if (bias.p) {
    float b;
    if (bias.stored == DType::bf16)
      b = Bf16::one(static_cast<const uint16_t*>(bias.p)[m]);
    else if (bias.stored == DType::f16)
      b = F16::one(static_cast<const uint16_t*>(bias.p)[m]);
    else
      b = static_cast<const float*>(bias.p)[m];
    y = add(y, F{b});  // conv.3
  }
  store_canonical(out, y);
}

constexpr int kGemmThreads = 128, kDepth = 16, kStages = 3;  // kDepth divides a chain
// The tiles of implicit_gemm_kernel: 8 x 16 threads of kThreadRows x kThreadColumns results.
template <int kThreadRows, int kThreadColumns>
struct ConvTile {
  static constexpr int kRows = 8 * kThreadRows, kColumns = 16 * kThreadColumns;
  static constexpr int kRowVec = kThreadRows < 4 ? kThreadRows : 4,
                       kColumnVec = kThreadColumns < 4 ? kThreadColumns : 4;
  static constexpr int kRun =
      kDepth * kColumns / kGemmThreads;  // k of one pixel that a thread copies in a stage
  static constexpr int kSums = kThreadRows * kThreadColumns;
};

// y += the products of a stage (contraction.2).
template <int kThreadRows, int kThreadColumns, int kRowPitch, int kColumnPitch,
          class T = ConvTile<kThreadRows, kThreadColumns>>
__device__ __forceinline__ void multiply_stage(const float (&w_stage)[kDepth][kRowPitch],
                                               const float (&x_stage)[kDepth][kColumnPitch], int tx, int ty,
                                               F (&y)[T::kSums]) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    Pack<float, T::kRowVec> a[kThreadRows / T::kRowVec];
    Pack<float, T::kColumnVec> b[kThreadColumns / T::kColumnVec];
#pragma unroll
    for (int i = 0; i < kThreadRows / T::kRowVec; ++i)
      a[i] = load_pack<T::kRowVec>(&w_stage[k][(i * 8 + ty) * T::kRowVec]);
#pragma unroll
    for (int i = 0; i < kThreadColumns / T::kColumnVec; ++i)
      b[i] = load_pack<T::kColumnVec>(&x_stage[k][(i * 16 + tx) * T::kColumnVec]);
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i)
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        F& v = y[i * kThreadColumns + j];  // contraction.2
        v = fma(F{a[i / T::kRowVec].v[i % T::kRowVec]}, F{b[j / T::kColumnVec].v[j % T::kColumnVec]}, v);
      }
  }
}

template <int kThreadRows, int kThreadColumns, class T = ConvTile<kThreadRows, kThreadColumns>>
__device__ __forceinline__ void store_tile(const ConvOutputs& o, int64_t group, int64_t m0, int64_t n0,
                                           int tx, int ty, const Bias& bias, const F (&y)[T::kSums],
                                           float* out) {
#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j) {
    const int64_t n = n0 + (j / T::kColumnVec * 16 + tx) * T::kColumnVec + j % T::kColumnVec;
    if (n >= o.pixels) continue;
    const Pixel<int64_t> to = pixel_of(o, n);
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const int64_t row = m0 + (i / T::kRowVec * 8 + ty) * T::kRowVec + i % T::kRowVec,
                    m = group * o.rows + row;
      if (row < o.rows)
        store_result(out + (to.image * o.groups * o.rows + m) * o.result + to.to, y[i * kThreadColumns + j],
                     bias, m);
    }
  }
}

template <int kThreadRows, int kThreadColumns>
__global__ void __launch_bounds__(kGemmThreads, 3)
    implicit_gemm_kernel(ConvOutputs o, FastDivmod row_tiles, FastDivmod column_tiles, const float* x,
                         const float* weights, Bias bias, float* out) {
  using T = ConvTile<kThreadRows, kThreadColumns>;
  __shared__ alignas(16) float w_tile[kStages][kDepth][T::kRows], x_tile[kStages][kDepth][T::kColumns];
  int64_t tile = blockIdx.x;
  const int64_t m0 = row_tiles.remainder(tile) * T::kRows, n0 = column_tiles.remainder(tile) * T::kColumns,
                group = tile;
  const float* w = weights + group * o.k * o.row_pitch + m0;

  // What this thread copies of a stage: 16 bytes of the weights at a time, and kRun neighbours in K
  // of one pixel. As a class of its own this spilled with nvcc 13, and 3x3 took 5 % longer on an
  // H100.
  constexpr int kRun = T::kRun;
  const int own = threadIdx.x % T::kColumns, first = threadIdx.x / T::kColumns * kRun;
  const bool has_pixel = n0 + own < o.pixels;
  const Pixel<int64_t> c = pixel_of(o, has_pixel ? n0 + own : int64_t{0});
  const int64_t channels = o.channels.divisor();
  const bool one_tap = channels % kRun == 0;  // for all of a run
  const float* image = x + (c.image * o.groups + group) * channels * o.plane;
  auto load_stage = [&](int64_t k0, int stage) {
    constexpr int kPacks = kDepth * T::kRows / 4;
#pragma unroll
    for (int i = 0; i < (kPacks + kGemmThreads - 1) / kGemmThreads; ++i) {
      const int pack = i * kGemmThreads + threadIdx.x, k = pack / (T::kRows / 4),
                m = pack % (T::kRows / 4) * 4;
      if (kPacks % kGemmThreads && pack >= kPacks) break;
      const bool in_bounds = k0 + k < o.k && m0 + m < o.row_pitch;
      __pipeline_memcpy_async(&w_tile[stage][k][m], in_bounds ? w + (k0 + k) * o.row_pitch + m : weights, 16,
                              in_bounds ? 0 : 16);
    }
    int64_t tap = k0 + first, channel = o.channels.remainder(tap);
    int64_t at = has_pixel && k0 + first < o.k ? element_at(o, c, tap_of(o, tap)) : -1;
    const float* from = image + channel * o.plane + at;
    float* to = &x_tile[stage][first][own];
    if (one_tap) {
      const size_t none = at < 0 ? 4 : 0, step = at < 0 ? 0 : o.plane;
      if (at < 0) from = x;
#pragma unroll  // conv.2: from channel to channel
      for (int i = 0; i < kRun; ++i, from += step)
        __pipeline_memcpy_async(to + i * T::kColumns, from, 4, none);
      return;
    }
#pragma unroll 1  // conv.2: and from tap to tap
    for (int i = 0; i < kRun; ++i, from += o.plane) {
      const bool in_bounds = at >= 0 && k0 + first + i < o.k;
      __pipeline_memcpy_async(to + i * T::kColumns, in_bounds ? from : x, 4, in_bounds ? 0 : 4);
      if (++channel < channels || i + 1 == kRun) continue;
      channel = 0, at = has_pixel ? element_at(o, c, tap_of(o, ++tap)) : -1;
      from = image + at - o.plane;
    }
  };

  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  F y[T::kSums];
  float kept[num::kSumsKept][T::kSums];
#pragma unroll
  for (F& v : y) v = zero();
  const int64_t steps = ceil_div(o.k, kDepth);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) load_stage(s * kDepth, s);
    __pipeline_commit();
  }
  int stage = 0, next = kStages - 1;
  for (int64_t step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    if (step + kStages - 1 < steps) load_stage((step + kStages - 1) * kDepth, next);
    __pipeline_commit();
    multiply_stage<kThreadRows, kThreadColumns>(w_tile[stage], x_tile[stage], tx, ty, y);
    stage = stage + 1 == kStages ? 0 : stage + 1, next = next + 1 == kStages ? 0 : next + 1;
    const int64_t done = (step + 1) * kDepth;
    if (done % num::kChain != 0 && step + 1 < steps) continue;
    const num::BlockPosition position = num::block_position((done - 1) / num::kChain, o.k);
    num::INVAR_ISA_NS::join_block(position, y, [&](int i, int sum) { return &kept[sum][i]; });
    if (position.last) break;
#pragma unroll
    for (F& v : y) v = zero();
  }
  store_tile<kThreadRows, kThreadColumns>(o, group, m0, n0, tx, ty, bias, y, out);
}

// Depthwise convolution, and others with few channels per group. A thread computes one output. I is
// an integer type that holds every index.
template <class I>
void launch_direct_conv(const ConvOutputs& outputs, const float* x, const float* weights, Bias bias,
                        float* out, Stream stream) {
  const ConvOutputs o = outputs;
  const FastDivmod pixels(o.pixels), rows(o.rows);
  launch_for_each(stream, o.groups * o.rows * o.pixels, [=] __device__(int64_t unit) {
    I group = static_cast<I>(unit);
    const I n = pixels.remainder(group), row = rows.remainder(group),
            m = group * static_cast<I>(o.rows) + row;
    const Pixel<I> c = pixel_of(o, n);
    const I channels = static_cast<I>(o.channels.divisor()), groups = static_cast<I>(o.groups);
    const float* image = x + (c.image * groups + group) * channels * static_cast<I>(o.plane);
    const float* w = weights + group * o.k * o.row_pitch + row;
    F y[1];
    num::INVAR_ISA_NS::contract<1>(
        o.k,
        [&](int64_t begin, int64_t end, F(&chain)[1]) {
          chain[0] = zero();
          I tap = static_cast<I>(begin), channel = o.channels.remainder(tap);
          TapOffset<I> t = tap_of(o, tap);
          I at = element_at(o, c, t);
          for (int64_t k = begin; k < end; ++k) {
            const F v = at < 0 ? zero() : load(image + channel * static_cast<I>(o.plane) + at);
            chain[0] = fma(load(w + k * o.row_pitch), v, chain[0]);
            if (++channel < channels) continue;
            channel = 0;
#pragma unroll
            for (int d = kAxes - 1; d >= 0; --d) {
              if (++t.at[d] < o.axis[d].taps.divisor()) break;
              t.at[d] = 0;
            }
            at = element_at(o, c, t);
          }
        },
        y);
    const I index = (c.image * groups * static_cast<I>(o.rows) + m) * static_cast<I>(o.result) + c.to;
    store_result(out + index, y[0], bias, m);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
