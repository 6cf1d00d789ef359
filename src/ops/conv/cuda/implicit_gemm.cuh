// Convolutions as products: rows are channels of the result, columns are places, and K runs over taps and channels
// (conv.2). A block of threads makes a tile of both; what it multiplies comes through shared memory, weights as they are packed,
// the operand from where its taps point (+0 outside).
#pragma once
#include <cuda_pipeline.h>

#include "num/contract/lanes.h"
#include "ops/conv/conv.h"
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using conv::kAxes;
using conv::Phases;
using conv::Plan;
using slide::Axis;

// The outputs of one phase. Output j of an axis reads element j * step + tap * hop + base at its taps.
struct Outputs {
  struct {
    Divisor count, taps;
    int64_t in, step, hop, base;
    int64_t start, stride, out;  // where output j lies in the result
  } axis[kAxes];
  Divisor channels;
  int64_t groups, rows, row_pitch;  // channels of the result in a group; and as the weights are packed
  int64_t places, k;
  int64_t plane, result;  // elements of a channel of the operand, of the result
};
Outputs outputs_of(const Plan& p, const Phases& f, int64_t row_pitch) {
  Outputs o{.channels = Divisor(p.channels),
            .groups = p.groups,
            .rows = p.rows,
            .row_pitch = row_pitch,
            .places = p.images * f.columns,
            .k = f.k,
            .plane = 1,
            .result = 1};
  for (int d = 0; d < kAxes; ++d) {
    const Axis& a = p.axis[d];
    const slide::Phase& phase = f.of[d];
    o.axis[d] = {.count = Divisor(phase.count),
                 .taps = Divisor(phase.taps),
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

// A place: its image, the elements that tap 0 reads, and where it lies in a channel of the result. In integers of type I.
template <class I>
struct Column {
  I image, from[kAxes], to;
};
template <class I>
__device__ Column<I> column_of(const Outputs& o, I place) {
  Column<I> c;
  I step = 1;
  c.to = 0;
#pragma unroll
  for (int d = kAxes - 1; d >= 0; --d) {
    const auto& a = o.axis[d];
    const I j = a.count.remainder(place);
    c.from[d] = j * static_cast<I>(a.step) + static_cast<I>(a.base);
    c.to += (static_cast<I>(a.start) + j * static_cast<I>(a.stride)) * step;
    step *= static_cast<I>(a.out);
  }
  c.image = place;
  return c;
}
template <class I>
struct Tap {
  I at[kAxes];
};
template <class I>
__device__ Tap<I> tap_of(const Outputs& o, I tap) {
  Tap<I> t;
#pragma unroll
  for (int d = kAxes - 1; d >= 0; --d) t.at[d] = o.axis[d].taps.remainder(tap);
  return t;
}
// The element of a channel that a tap reads; -1 outside.
template <class I>
__device__ I element_at(const Outputs& o, const Column<I>& c, const Tap<I>& t) {
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

// Stores a contraction, with a bias by conv.3.
struct Bias {
  const void* p;  // null: none
  DType stored;
};
__device__ void put_result(float* out, F y, const Bias& bias, int64_t m) {
  y = canon(y);
  if (bias.p) {
    float b;
    if (bias.stored == DType::bf16)
      b = Bf16::one(static_cast<const uint16_t*>(bias.p)[m]);
    else if (bias.stored == DType::f16)
      b = F16::one(static_cast<const uint16_t*>(bias.p)[m]);
    else
      b = static_cast<const float*>(bias.p)[m];
    y = add(y, F{b});
  }
  put(out, y);
}

constexpr int kProductThreads = 128, kDepth = 16, kStages = 3;  // kDepth divides a chain
// Tiles of 8 threads x 16 threads of kHigh x kWide results.
template <int kHigh, int kWide>
__global__ void __launch_bounds__(kProductThreads, 3)
    product_kernel(Outputs o, Divisor row_tiles, Divisor column_tiles, const float* x, const float* weights,
                   Bias bias, float* out) {
  constexpr int kRows = 8 * kHigh, kColumns = 16 * kWide;
  constexpr int kVec = kHigh < 4 ? kHigh : 4, kWideVec = kWide < 4 ? kWide : 4;
  __shared__ alignas(16) float w_tile[kStages][kDepth][kRows], x_tile[kStages][kDepth][kColumns];
  int64_t tile = blockIdx.x;
  const int64_t m0 = row_tiles.remainder(tile) * kRows, n0 = column_tiles.remainder(tile) * kColumns,
                group = tile;
  const float* w = weights + group * o.k * o.row_pitch + m0;

  // What this thread copies of a stage: kRun neighbours in K of one place.
  constexpr int kRun = kDepth * kColumns / kProductThreads;
  const int own = threadIdx.x % kColumns, first = threadIdx.x / kColumns * kRun;
  const bool has_place = n0 + own < o.places;
  const Column<int64_t> c = column_of(o, has_place ? n0 + own : int64_t{0});
  const int64_t channels = o.channels.divisor();
  const bool one_tap = channels % kRun == 0;  // for all of a run
  const float* image = x + (c.image * o.groups + group) * channels * o.plane;
  auto copy_stage = [&](int64_t k0, int stage) {
    constexpr int kPacks = kDepth * kRows / 4;
#pragma unroll
    for (int i = 0; i < (kPacks + kProductThreads - 1) / kProductThreads; ++i) {
      const int pack = i * kProductThreads + threadIdx.x, k = pack / (kRows / 4), m = pack % (kRows / 4) * 4;
      if (kPacks % kProductThreads && pack >= kPacks) break;
      const bool there = k0 + k < o.k && m0 + m < o.row_pitch;
      __pipeline_memcpy_async(&w_tile[stage][k][m], there ? w + (k0 + k) * o.row_pitch + m : weights, 16,
                              there ? 0 : 16);
    }
    int64_t tap = k0 + first, channel = o.channels.remainder(tap);
    int64_t at = has_place && k0 + first < o.k ? element_at(o, c, tap_of(o, tap)) : -1;
    const float* from = image + channel * o.plane + at;
    float* to = &x_tile[stage][first][own];
    if (one_tap) {
      const size_t none = at < 0 ? 4 : 0, step = at < 0 ? 0 : o.plane;
      if (at < 0) from = x;
#pragma unroll  // conv.2: from channel to channel
      for (int i = 0; i < kRun; ++i, from += step) __pipeline_memcpy_async(to + i * kColumns, from, 4, none);
      return;
    }
#pragma unroll 1  // conv.2: and from tap to tap
    for (int i = 0; i < kRun; ++i, from += o.plane) {
      const bool there = at >= 0 && k0 + first + i < o.k;
      __pipeline_memcpy_async(to + i * kColumns, there ? from : x, 4, there ? 0 : 4);
      if (++channel < channels || i + 1 == kRun) continue;
      channel = 0, at = has_place ? element_at(o, c, tap_of(o, ++tap)) : -1;
      from = image + at - o.plane;
    }
  };

  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  F y[kHigh * kWide];
  float kept[num::kSumsKept][kHigh * kWide];
#pragma unroll
  for (F& v : y) v = zero();
  const int64_t steps = ceil_div(o.k, kDepth);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) copy_stage(s * kDepth, s);
    __pipeline_commit();
  }
  int stage = 0, next = kStages - 1;
  for (int64_t step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    if (step + kStages - 1 < steps) copy_stage((step + kStages - 1) * kDepth, next);
    __pipeline_commit();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      Pack<float, kVec> a[kHigh / kVec];
      Pack<float, kWideVec> b[kWide / kWideVec];
#pragma unroll
      for (int i = 0; i < kHigh / kVec; ++i) a[i] = load_pack<kVec>(&w_tile[stage][k][(i * 8 + ty) * kVec]);
#pragma unroll
      for (int i = 0; i < kWide / kWideVec; ++i)
        b[i] = load_pack<kWideVec>(&x_tile[stage][k][(i * 16 + tx) * kWideVec]);
#pragma unroll
      for (int i = 0; i < kHigh; ++i)
#pragma unroll
        for (int j = 0; j < kWide; ++j) {
          F& v = y[i * kWide + j];
          v = fma(F{a[i / kVec].v[i % kVec]}, F{b[j / kWideVec].v[j % kWideVec]}, v);
        }
    }
    stage = stage + 1 == kStages ? 0 : stage + 1, next = next + 1 == kStages ? 0 : next + 1;
    const int64_t done = (step + 1) * kDepth;
    if (done % num::kChain != 0 && step + 1 < steps) continue;
    const num::BlockPlace place = num::block_place((done - 1) / num::kChain, o.k);
    num::INVAR_ISA_NS::join_block(place, y, [&](int i, int sum) { return &kept[sum][i]; });
    if (place.last) break;
#pragma unroll
    for (F& v : y) v = zero();
  }

#pragma unroll
  for (int j = 0; j < kWide; ++j) {
    const int64_t n = n0 + (j / kWideVec * 16 + tx) * kWideVec + j % kWideVec;
    if (n >= o.places) continue;
    const Column<int64_t> to = column_of(o, n);
#pragma unroll
    for (int i = 0; i < kHigh; ++i) {
      const int64_t row = m0 + (i / kVec * 8 + ty) * kVec + i % kVec, m = group * o.rows + row;
      if (row < o.rows)
        put_result(out + (to.image * o.groups * o.rows + m) * o.result + to.to, y[i * kWide + j], bias, m);
    }
  }
}

// Thin groups: a thread per output. I: integers that hold every element's place.
template <class I>
void each_output(const Outputs& outputs, const float* x, const float* weights, Bias bias, float* out,
                 Stream stream) {
  const Outputs o = outputs;
  const Divisor places(o.places), rows(o.rows);
  each(stream, o.groups * o.rows * o.places, [=] __device__(int64_t unit) {
    I group = static_cast<I>(unit);
    const I n = places.remainder(group), row = rows.remainder(group),
            m = group * static_cast<I>(o.rows) + row;
    const Column<I> c = column_of(o, n);
    const I channels = static_cast<I>(o.channels.divisor()), groups = static_cast<I>(o.groups);
    const float* image = x + (c.image * groups + group) * channels * static_cast<I>(o.plane);
    const float* w = weights + group * o.k * o.row_pitch + row;
    F y[1];
    num::INVAR_ISA_NS::contract<1>(
        o.k,
        [&](int64_t begin, int64_t end, F(&chain)[1]) {
          chain[0] = zero();
          I tap = static_cast<I>(begin), channel = o.channels.remainder(tap);
          Tap<I> t = tap_of(o, tap);
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
    const I place = (c.image * groups * static_cast<I>(o.rows) + m) * static_cast<I>(o.result) + c.to;
    put_result(out + place, y[0], bias, m);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
