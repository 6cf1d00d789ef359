// conv_exact16 on a GPU as an implicit product: rows are output channels, columns are pixels, K
// runs over taps and channels. A thread block rounds the patches that it reads with scales that
// other kernels found: the largest element of a patch is that of its pixels' largest.
#pragma once
#include "kernels/cuda/exact16_result.cuh"
#include "ops/conv/cuda/implicit_gemm.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kExactThreads = 128, kExactTile = 64, kExactDepth = 64;  // 4 warps of 32 x 32 results
constexpr int kExactRun = kExactDepth * kExactTile / kExactThreads;    // k of one pixel of a thread
constexpr int kExactPitch = kExactDepth / 4 + 4;  // words: rows 0 ... 7 are in other banks
constexpr int64_t kChunksToJoin = 1024;           // whose three sums fit 32 bits (exact16.3)
constexpr int kMaximaThreads = 16;                // channels of a pixel that are read at a time
constexpr int kWeightThreads = 128;

// Weights [row][plane h, plane l][pitch bytes] in the order (tap, channel), zeros behind K, and the
// scale of each row.
struct ExactWeights {
  const uint8_t* planes;
  const int32_t* scales;
  int64_t pitch;
};
ExactWeights exact_weights(const void* memory, int64_t rows, int64_t k) {
  ExactWeights w{static_cast<const uint8_t*>(memory), nullptr, ceil_div(k, kExactDepth) * kExactDepth};
  w.scales = reinterpret_cast<const int32_t*>(w.planes + rows * 2 * w.pitch);
  return w;
}

__device__ inline uint32_t magnitude_of(float x) {
  return __float_as_uint(x) & 0x7fffffff;
}
// Four integers (exact16.2) as bytes of both planes.
struct PlaneWords {
  uint32_t high, low;
};
__device__ inline PlaneWords plane_words(const float* x, int32_t e) {
  const bool none = e == num::kExact16NoIntegers;
  const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
  PlaneWords w{0, 0};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int q = none ? 0 : __float2int_rn(x[i] * by.first * by.second);
    w.high |= (static_cast<uint32_t>((q + 128) >> 8) & 0xff) << 8 * i;
    w.low |= (static_cast<uint32_t>(q) & 0xff) << 8 * i;
  }
  return w;
}

// A block of threads for each row of weights [M, C / groups, taps].
template <class W>
__global__ void __launch_bounds__(kWeightThreads)
    round_weights_kernel(const typename W::T* from, int64_t k, int64_t taps, FastDivmod channels,
                         int64_t pitch, uint8_t* planes, int32_t* scales) {
  __shared__ uint32_t largest;
  const int t = threadIdx.x;
  const typename W::T* w = from + blockIdx.x * k;
  if (t == 0) largest = 0;
  __syncthreads();
  uint32_t most = 0;
  for (int64_t i = t; i < k; i += kWeightThreads) {
    const uint32_t u = magnitude_of(W::one(w[i]));
    most = u > most ? u : most;
  }
  atomicMax(&largest, most);
  __syncthreads();
  const int32_t e = num::exact16_scale(largest);
  if (t == 0) scales[blockIdx.x] = e;
  auto *high = reinterpret_cast<uint32_t*>(planes + blockIdx.x * 2 * pitch), *low = high + pitch / 4;
  for (int64_t word = t; word < pitch / 4; word += kWeightThreads) {
    float x[4];
    for (int i = 0; i < 4; ++i) {
      int64_t tap = 4 * word + i;
      const bool inside = tap < k;
      const int64_t channel = channels.remainder(tap);
      x[i] = inside ? W::one(w[channel * taps + tap]) : 0.0f;
    }
    const PlaneWords both = plane_words(x, e);
    high[word] = both.high, low[word] = both.low;
  }
}

// The largest magnitude of each pixel of each image and group, over its channels.
__global__ void __launch_bounds__(kWarp* kMaximaThreads)
    pixel_maxima_kernel(const float* x, int64_t channels, int64_t plane, FastDivmod tiles, uint32_t* maxima) {
  __shared__ uint32_t parts[kMaximaThreads][kWarp];
  const int lane = threadIdx.x % kWarp, part = threadIdx.x / kWarp;
  int64_t image = blockIdx.x;  // and group
  const int64_t pixel = tiles.remainder(image) * kWarp + lane;
  uint32_t most = 0;
  for (int64_t c = part; c < channels && pixel < plane; c += kMaximaThreads) {
    const uint32_t u = magnitude_of(x[(image * channels + c) * plane + pixel]);
    most = u > most ? u : most;
  }
  parts[part][lane] = most;
  __syncthreads();
  if (part > 0 || pixel >= plane) return;
  for (int i = 1; i < kMaximaThreads; ++i) most = parts[i][lane] > most ? parts[i][lane] : most;
  maxima[image * plane + pixel] = most;
}

// exact16.1 of the patches: scales [group][pixel of all images].
void enqueue_patch_scales(const ConvOutputs& outputs, int64_t taps, const uint32_t* maxima, int32_t* scales,
                          Stream stream) {
  const ConvOutputs o = outputs;
  const FastDivmod pixels(o.pixels);
  launch_for_each(stream, o.groups * o.pixels, [=] __device__(int64_t i) {
    int64_t group = i;
    const Pixel<int64_t> c = pixel_of(o, pixels.remainder(group));
    const uint32_t* image = maxima + (c.image * o.groups + group) * o.plane;
    uint32_t most = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t at = element_at(o, c, tap_of(o, tap));
      const uint32_t u = at < 0 ? 0 : image[at];
      most = u > most ? u : most;
    }
    scales[i] = num::exact16_scale(most);
  });
}

struct ExactSums {
  int high[2][4][4], cross[2][4][4], low[2][4][4];  // as mma.sync has them: 16 x 8 results each
};
using ExactStage = uint32_t[2][kExactTile][kExactPitch];  // of both planes

template <bool kTensorCores>
__device__ __forceinline__ void multiply_stage(ExactSums& s, const ExactStage& a, const ExactStage& b,
                                               int row, int column) {
  const int lane = threadIdx.x % kWarp, g = lane / 4, q = lane % 4;
  if constexpr (kTensorCores) {
#if __CUDA_ARCH__ >= 800
    auto multiply_add = [](int(&d)[4], const uint32_t(&x)[4], const uint32_t(&y)[2]) {
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    };
#pragma unroll
    for (int w = 0; w < kExactDepth / 4; w += 8) {
      uint32_t x[2][2][4], y[2][4][2];
#pragma unroll
      for (int plane = 0; plane < 2; ++plane) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int part = 0; part < 4; ++part)
            x[plane][i][part] = a[plane][row + 16 * i + part % 2 * 8 + g][w + part / 2 * 4 + q];
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int part = 0; part < 2; ++part)
            y[plane][j][part] = b[plane][column + 8 * j + g][w + part * 4 + q];
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          multiply_add(s.high[i][j], x[0][i], y[0][j]);
          multiply_add(s.cross[i][j], x[0][i], y[1][j]);
          multiply_add(s.low[i][j], x[1][i], y[1][j]);
          multiply_add(s.cross[i][j], x[1][i], y[0][j]);
        }
    }
#endif
  } else {
#pragma unroll 1
    for (int w = 0; w < kExactDepth / 4; ++w)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const int m = row + 16 * i + r / 2 * 8 + g, n = column + 8 * j + 2 * q + r % 2;
            const int ah = static_cast<int>(a[0][m][w]), al = static_cast<int>(a[1][m][w]);
            const int bh = static_cast<int>(b[0][n][w]), bl = static_cast<int>(b[1][n][w]);
            s.high[i][j][r] = __dp4a(ah, bh, s.high[i][j][r]);
            s.cross[i][j][r] = __dp4a(ah, bl, __dp4a(al, bh, s.cross[i][j][r]));
            s.low[i][j][r] = __dp4a(al, bl, s.low[i][j][r]);
          }
  }
}

// The elements of K that a thread rounds: kExactRun neighbours of one patch.
struct PatchReader {
  Pixel<int64_t> pixel;
  const float* image;  // of the group
  bool exists;

  __device__ void load(const ConvOutputs& o, int64_t k, float (&x)[kExactRun]) const {
    const int64_t channels = o.channels.divisor();
    int64_t tap = k, channel = o.channels.remainder(tap);
    auto place = [&](int64_t i) {
      return exists && k + i < o.k ? element_at(o, pixel, tap_of(o, tap)) : int64_t{-1};
    };
    int64_t at = place(0);
    const float* from = image + channel * o.plane + at;
    if (channels % kExactRun == 0) {  // one tap
#pragma unroll
      for (int i = 0; i < kExactRun; ++i) x[i] = at < 0 ? 0.0f : from[i * o.plane];
      return;
    }
#pragma unroll
    for (int i = 0; i < kExactRun; ++i) {
      x[i] = at < 0 || k + i >= o.k ? 0.0f : image[channel * o.plane + at];
      if (++channel < channels) continue;
      channel = 0, ++tap, at = place(i + 1);
    }
  }
};

// Stores a warp's results of 32 channels and 32 pixels.
__device__ __forceinline__ void store_exact_tile(const ConvOutputs& o, const int32_t* weight_scales,
                                                 const int32_t* scales, int64_t group, int64_t m0, int64_t n0,
                                                 const int64_t (&sum)[2][4][4], const Bias& bias,
                                                 float* out) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int64_t n = n0 + 8 * j + lane % 4 * 2 + side;
      if (n >= o.pixels) continue;
      const Pixel<int64_t> to = pixel_of(o, n);
      const int32_t e = scales[group * o.pixels + n];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t in_group = m0 + 8 * i + lane / 4, m = group * o.rows + in_group;
        if (in_group < o.rows)
          store_result(out + (to.image * o.groups * o.rows + m) * o.result + to.to,
                       F{rounded_result(sum[i / 2][j][i % 2 * 2 + side], weight_scales[m], e)}, bias, m);
      }
    }
}

// A tile of 64 output channels and 64 pixels. kLong: K needs more than one piece.
template <bool kTensorCores, bool kLong>
__global__ void __launch_bounds__(kExactThreads)
    exact16_conv_kernel(ConvOutputs o, ExactWeights w, const int32_t* scales, FastDivmod row_tiles,
                        FastDivmod column_tiles, const float* x, Bias bias, float* out) {
  __shared__ alignas(16) ExactStage a[2], b[2];
  int64_t tile = blockIdx.x;
  const int64_t m0 = row_tiles.remainder(tile) * kExactTile, n0 = column_tiles.remainder(tile) * kExactTile;
  const int64_t group = tile, first = group * o.rows;
  const int t = threadIdx.x, own = t % kExactTile, begin = t / kExactTile * kExactRun;
  const bool exists = n0 + own < o.pixels;
  PatchReader patch{pixel_of(o, exists ? n0 + own : int64_t{0}), nullptr, exists};
  patch.image = x + (patch.pixel.image * o.groups + group) * o.channels.divisor() * o.plane;
  const int32_t scale = exists ? scales[group * o.pixels + n0 + own] : 0;
  float held[kExactRun];

  auto load_weights = [&](int64_t chunk, int stage) {
#pragma unroll
    for (int i = 0; i < 2 * kExactTile * kExactDepth / 16 / kExactThreads; ++i) {
      const int pack = i * kExactThreads + t, part = pack % (kExactDepth / 16),
                row = pack / (kExactDepth / 16) % kExactTile, plane = pack / (kExactDepth / 16) / kExactTile;
      const int64_t m =
          first + (m0 + row < o.rows ? m0 + row : o.rows - 1);  // results of the last are not stored
      __pipeline_memcpy_async(&a[stage][plane][row][4 * part],
                              w.planes + (2 * m + plane) * w.pitch + chunk * kExactDepth + 16 * part, 16);
    }
    __pipeline_commit();
  };
  auto round_patch = [&](int stage) {
#pragma unroll
    for (int i = 0; i < kExactRun / 16; ++i) {
      PlaneWords p[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) p[j] = plane_words(held + 16 * i + 4 * j, scale);
      const int at = begin / 4 + 4 * i;
      *reinterpret_cast<uint4*>(&b[stage][0][own][at]) =
          make_uint4(p[0].high, p[1].high, p[2].high, p[3].high);
      *reinterpret_cast<uint4*>(&b[stage][1][own][at]) = make_uint4(p[0].low, p[1].low, p[2].low, p[3].low);
    }
  };

  const int row = t / 64 * 32, column = t / 32 % 2 * 32;
  const int64_t chunks = w.pitch / kExactDepth;
  ExactSums s{};
  int64_t sum[2][4][4] = {};
  auto join = [&] {
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j)
        for (int r = 0; r < 4; ++r)
          sum[i][j][r] += int64_t{s.high[i][j][r]} * 65536 + int64_t{s.cross[i][j][r]} * 256 + s.low[i][j][r];
    s = ExactSums{};
  };
  if (chunks > 0) {
    load_weights(0, 0);
    patch.load(o, begin, held);
    round_patch(0);
    __pipeline_wait_prior(0);
  }
  __syncthreads();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int stage = static_cast<int>(chunk % 2);
    const bool more = chunk + 1 < chunks;
    if (more) {
      load_weights(chunk + 1, stage ^ 1);
      patch.load(o, (chunk + 1) * kExactDepth + begin, held);
    }
    multiply_stage<kTensorCores>(s, a[stage], b[stage], row, column);
    if (kLong && (chunk + 1) % kChunksToJoin == 0) join();
    if (more) {
      round_patch(stage ^ 1);
      __pipeline_wait_prior(0);
    }
    __syncthreads();
  }
  join();
  store_exact_tile(o, w.scales, scales, group, m0 + row, n0 + column, sum, bias, out);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
