// The gradient of a convolution's weights on a GPU: an implicit GEMM whose K, the pixels of all
// images, is long. Where its tiles are too few for all multiprocessors, K is split: blocks store
// the chains of contraction.2, and two small kernels sum them by contraction.3 and contraction.4.
#include "kernels/forced_route.h"
#include "ops/conv/backward_weight.h"
#include "ops/conv/cuda/implicit_gemm.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using conv::BackwardWeight;

// direct: a thread for each chain, for depthwise convolutions and for sizes beyond 32 bits.
enum class BackwardRoute { automatic, whole, chains, direct };
constexpr int kBackwardRoutes = 4;

struct BackwardPlan {
  BackwardRoute route;
  int64_t outputs, blocks;  // blocks of K
  int64_t round;            // blocks of K whose chains wait in memory at once
  int64_t each;             // blocks of K that a thread block takes
};
int64_t tile_rows(const BackwardWeight& p) {
  return p.rows <= 16 ? 16 : p.rows <= 32 ? 32 : 64;
}
int64_t tile_columns(const BackwardWeight& p) {
  return p.rows > 16 && p.rows <= 32 ? 64 : 128;
}
int64_t tiles_of(const BackwardWeight& p) {
  return p.groups * ceil_div(p.rows, tile_rows(p)) * ceil_div(p.columns, tile_columns(p));
}
BackwardPlan backward_plan(const BackwardWeight& p) {
  constexpr int64_t kMost = int64_t{1} << 30, kChainFloats = int64_t{1} << 26;
  constexpr int64_t kPerMultiprocessor = 2, kWaves = 4, kFew = 16;
  BackwardPlan r{};
  r.outputs = p.outputs(p), r.blocks = num::contraction_blocks(p.k);
  bool small = p.k < kMost && p.images * p.groups * p.rows * p.pixels < kMost &&
               p.images * p.groups * p.channels * p.plane < kMost;
  for (const auto& a : p.axis)
    small &= a.out * a.stride + a.kernel * a.dilation < kMost && a.pad < kMost && a.pad > -kMost;
  const int64_t busy = kPerMultiprocessor * multiprocessors();
  r.route = static_cast<BackwardRoute>(variant() % kBackwardRoutes);
  if (r.route == BackwardRoute::automatic)
    r.route = p.rows <= 4 && p.columns <= kFew      ? BackwardRoute::direct
              : tiles_of(p) >= busy || r.blocks < 2 ? BackwardRoute::whole
                                                    : BackwardRoute::chains;
  if (!small) r.route = BackwardRoute::direct;
  r.round = r.outputs ? num::min_i64(r.blocks, kChainFloats / r.outputs + 1) : 0;
  r.each = ceil_div(r.round * tiles_of(p), kWaves * busy);
  if (r.each < 1) r.each = 1;
  return r;
}
size_t backward_bytes(const Call& call) {
  const BackwardPlan r = backward_plan(conv::backward_weight(call));
  if (r.route == BackwardRoute::whole) return 0;
  return static_cast<size_t>((r.round + num::kSegments) * r.outputs) * sizeof(float);
}

// The pixels of K as a kernel walks them. Element k of a column is at `place` plus the column's
// offset, and inside of x where every index plus the column's shift is.
struct PixelWalk {
  FastDivmod out[kAxes];
  int stride[kAxes], pad[kAxes], in[kAxes];
  int x_image, grad_image, pixels;  // elements of an image of x and grad, of a channel of grad
};
struct PixelPlace {
  int grad, x, at[kAxes];
};
__device__ __forceinline__ PixelPlace pixel_place(const PixelWalk& w, int k) {
  PixelPlace p;
  int image = k, o[kAxes];
#pragma unroll
  for (int d = kAxes - 1; d >= 0; --d) o[d] = w.out[d].remainder(image);
  int x = 0;
#pragma unroll
  for (int d = 0; d < kAxes; ++d) {
    p.at[d] = o[d] * w.stride[d] - w.pad[d];
    x = x * w.in[d] + p.at[d];
  }
  p.x = image * w.x_image + x, p.grad = image * w.grad_image + k - image * w.pixels;
  return p;
}
struct ColumnPlace {
  int offset, shift[kAxes];
};

struct BackwardTiles {
  PixelWalk walk;
  FastDivmod kernel[kAxes];
  int dilation[kAxes];
  int rows, columns, channels, plane, k;
  FastDivmod row_tiles, column_tiles, groups;
  int first, last, each;  // blocks of K of this launch
  bool whole;             // K is not split: results, not chains
  int64_t outputs;
};
__device__ __forceinline__ ColumnPlace column_place(const BackwardTiles& t, int column) {
  ColumnPlace c;
  int r[kAxes], channel = column;
#pragma unroll
  for (int d = kAxes - 1; d >= 0; --d) r[d] = t.kernel[d].remainder(channel);
  int at = 0;
#pragma unroll
  for (int d = 0; d < kAxes; ++d) {
    c.shift[d] = r[d] * t.dilation[d];
    at = at * t.walk.in[d] + c.shift[d];
  }
  c.offset = channel * t.plane + at;
  return c;
}

// What a thread copies of a stage: the k of its lane of eight, of every sixteenth row and column.
template <int kThreadRows, int kThreadColumns>
struct BackwardLoader {
  using T = ConvTile<kThreadRows, kThreadColumns>;
  static constexpr int kPitch = 4;  // beside rows and columns: no bank conflicts
  static constexpr int kDown = T::kRows / 16, kAcross = T::kColumns / 16;
  const float *grad, *x;
  ColumnPlace column[kAcross];
  int rows, columns;  // of the tile that exist

  __device__ __forceinline__ void init(const BackwardTiles& t, const float* of_grad, const float* of_x,
                                       int group, int m0, int n0) {
    const int o = threadIdx.x / 8;
    grad = of_grad + (int64_t{group} * t.rows + m0 + o) * t.walk.pixels;
    x = of_x + int64_t{group} * t.channels * t.plane;
    rows = t.rows - m0 - o, columns = t.columns - n0 - o;
#pragma unroll
    for (int i = 0; i < kAcross; ++i) column[i] = column_place(t, i * 16 < columns ? n0 + o + i * 16 : 0);
  }
  __device__ __forceinline__ void load(const BackwardTiles& t, int k0, int end,
                                       float (&a)[kDepth][T::kRows + kPitch],
                                       float (&b)[kDepth][T::kColumns + kPitch]) const {
    const int o = threadIdx.x / 8;
#pragma unroll
    for (int step = 0; step < kDepth; step += 8) {
      const int i = step + threadIdx.x % 8, k = k0 + i;
      const bool exists = k < end;
      const PixelPlace p = pixel_place(t.walk, exists ? k : 0);
      const float* from = grad + p.grad;
#pragma unroll
      for (int d = 0; d < kDown; ++d) {
        const bool in = exists && d * 16 < rows;
        __pipeline_memcpy_async(&a[i][o + d * 16], in ? from + int64_t{d} * 16 * t.walk.pixels : grad, 4,
                                in ? 0 : 4);
      }
#pragma unroll
      for (int c = 0; c < kAcross; ++c) {
        bool in = exists && c * 16 < columns;
#pragma unroll
        for (int d = 0; d < kAxes; ++d)
          in &= static_cast<unsigned>(p.at[d] + column[c].shift[d]) < static_cast<unsigned>(t.walk.in[d]);
        __pipeline_memcpy_async(&b[i][o + c * 16], in ? x + p.x + column[c].offset : x, 4, in ? 0 : 4);
      }
    }
  }
};

template <int kThreadRows, int kThreadColumns>
__global__ void __launch_bounds__(kGemmThreads, 2)
    backward_weight_kernel(const __grid_constant__ BackwardTiles t, const float* grad, const float* x,
                           float* to) {
  using T = ConvTile<kThreadRows, kThreadColumns>;
  using Loader = BackwardLoader<kThreadRows, kThreadColumns>;
  __shared__ alignas(16) float a_tile[kStages][kDepth][T::kRows + Loader::kPitch],
      b_tile[kStages][kDepth][T::kColumns + Loader::kPitch];
  int tile = static_cast<int>(blockIdx.x);
  const int m0 = t.row_tiles.remainder(tile) * T::kRows, n0 = t.column_tiles.remainder(tile) * T::kColumns,
            group = t.groups.remainder(tile);
  const int first = t.first + tile * t.each, last = min(first + t.each, t.last);
  const int begin = first * static_cast<int>(num::kChain),
            end = min(last * static_cast<int>(num::kChain), t.k);
  Loader loader;
  loader.init(t, grad, x, group, m0, n0);

  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  F y[T::kSums];
  float kept[num::kSumsKept][T::kSums];
#pragma unroll
  for (F& v : y) v = zero();
  auto store_sums = [&](float* out) {
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i)
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        const int m = m0 + (i / T::kRowVec * 8 + ty) * T::kRowVec + i % T::kRowVec,
                  n = n0 + (j / T::kColumnVec * 16 + tx) * T::kColumnVec + j % T::kColumnVec;
        if (m < t.rows && n < t.columns)
          store(out + (int64_t{group} * t.rows + m) * t.columns + n, y[i * kThreadColumns + j]);
      }
  };
  const int steps = (end - begin + kDepth - 1) / kDepth;
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) loader.load(t, begin + s * kDepth, end, a_tile[s], b_tile[s]);
    __pipeline_commit();
  }
  int stage = 0, next = kStages - 1;
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    if (step + kStages - 1 < steps)
      loader.load(t, begin + (step + kStages - 1) * kDepth, end, a_tile[next], b_tile[next]);
    __pipeline_commit();
    multiply_stage<kThreadRows, kThreadColumns>(a_tile[stage], b_tile[stage], tx, ty, y);
    stage = stage + 1 == kStages ? 0 : stage + 1, next = next + 1 == kStages ? 0 : next + 1;
    const int done = (step + 1) * kDepth;
    if (done % num::kChain != 0 && step + 1 < steps) continue;
    const int64_t block = first + (done - 1) / num::kChain;
    if (!t.whole) {
      store_sums(to + (block - t.first) * t.outputs);
    } else {
      const num::BlockPosition position = num::block_position(block, int64_t{t.k});
      num::INVAR_ISA_NS::join_block(position, y, [&](int i, int sum) { return &kept[sum][i]; });
      if (position.last) break;
    }
#pragma unroll
    for (F& v : y) v = zero();
  }
  if (!t.whole) return;
#pragma unroll
  for (F& v : y) v = canonicalize(v);
  store_sums(to);
}

template <int kThreadRows, int kThreadColumns>
void launch_tiles(const BackwardTiles& t, int64_t blocks, const float* grad, const float* x, float* to,
                  Stream stream) {
  launch(backward_weight_kernel<kThreadRows, kThreadColumns>, dim3(static_cast<unsigned>(blocks)),
         dim3(kGemmThreads), 0, stream, t, grad, x, to);
}
void enqueue_tiles(const BackwardWeight& p, const BackwardPlan& r, int64_t first, int64_t last,
                   const float* grad, const float* x, float* to, Stream stream) {
  BackwardTiles t{};
  for (int d = 0; d < kAxes; ++d) {
    const auto& a = p.axis[d];
    t.walk.out[d] = FastDivmod(a.out), t.kernel[d] = FastDivmod(a.kernel);
    t.walk.stride[d] = static_cast<int>(a.stride), t.walk.pad[d] = static_cast<int>(a.pad);
    t.walk.in[d] = static_cast<int>(a.in), t.dilation[d] = static_cast<int>(a.dilation);
  }
  t.walk.x_image = static_cast<int>(p.groups * p.channels * p.plane);
  t.walk.grad_image = static_cast<int>(p.groups * p.rows * p.pixels);
  t.walk.pixels = static_cast<int>(p.pixels);
  t.rows = static_cast<int>(p.rows), t.columns = static_cast<int>(p.columns);
  t.channels = static_cast<int>(p.channels), t.plane = static_cast<int>(p.plane), t.k = static_cast<int>(p.k);
  const int64_t down = ceil_div(p.rows, tile_rows(p)), across = ceil_div(p.columns, tile_columns(p));
  t.row_tiles = FastDivmod(down), t.column_tiles = FastDivmod(across), t.groups = FastDivmod(p.groups);
  t.whole = r.route == BackwardRoute::whole, t.outputs = r.outputs;
  t.first = static_cast<int>(first), t.last = static_cast<int>(last);
  t.each = static_cast<int>(t.whole ? last - first : r.each);
  const int64_t blocks = down * across * p.groups * ceil_div(last - first, t.each);
  if (p.rows <= 16)
    launch_tiles<2, 8>(t, blocks, grad, x, to, stream);
  else if (p.rows <= 32)
    launch_tiles<4, 4>(t, blocks, grad, x, to, stream);
  else
    launch_tiles<8, 8>(t, blocks, grad, x, to, stream);
}

// The chain of each output and block of K by a thread of its own.
void enqueue_direct(const BackwardWeight& job, const BackwardPlan& r, int64_t first, int64_t last,
                    const float* grad, const float* x, float* chains, Stream stream) {
  const BackwardWeight p = job;
  const FastDivmod outputs(r.outputs), columns(p.columns), rows(p.rows), taps(p.taps), pixels(p.pixels);
  launch_for_each(stream, (last - first) * r.outputs, [=] __device__(int64_t i) {
    int64_t block = i, m = outputs.remainder(block), tap = columns.remainder(m), group = m, shift[kAxes];
    rows.remainder(group);
    int64_t channel = tap;
    tap = taps.remainder(channel);
#pragma unroll
    for (int d = kAxes - 1; d >= 0; --d) {
      shift[d] = tap % p.axis[d].kernel * p.axis[d].dilation - p.axis[d].pad;
      tap /= p.axis[d].kernel;
    }
    const num::Range range = num::block_range(first + block, p.k);
    int64_t image = range.begin, rest = pixels.remainder(image), o[kAxes];
    const float* of_grad = grad + (image * p.groups * p.rows + m) * p.pixels + rest;
#pragma unroll
    for (int d = kAxes - 1; d >= 0; --d) o[d] = rest % p.axis[d].out, rest /= p.axis[d].out;
    F chain = zero();
    for (int64_t k = range.begin; k < range.end; ++k) {
      int64_t place = (image * p.groups + group) * p.channels + channel;
      bool inside = true;
#pragma unroll
      for (int d = 0; d < kAxes; ++d) {
        const int64_t at = o[d] * p.axis[d].stride + shift[d];
        inside &= at >= 0 && at < p.axis[d].in;
        place = place * p.axis[d].in + at;
      }
      chain = fma(load(of_grad), inside ? load(x + place) : zero(), chain);  // contraction.2
      ++of_grad;
      int d = kAxes - 1;
#pragma unroll
      for (; d >= 0; --d) {
        if (++o[d] < p.axis[d].out) break;
        o[d] = 0;
      }
      if (d < 0) ++image, of_grad += (p.groups * p.rows - 1) * p.pixels;
    }
    store(chains + i, chain);
  });
}

// contraction.3 for the blocks of K in [first, last): a thread for each output and segment.
void enqueue_segments(int64_t k, int64_t outputs, int64_t first, int64_t last, const float* chains,
                      float* segments, Stream stream) {
  const FastDivmod by_outputs(outputs);
  launch_for_each(stream, outputs * num::segments_in_use(k), [=] __device__(int64_t i) {
    constexpr int kAhead = 16;  // loads in flight
    int64_t segment = i;
    const int64_t output = by_outputs.remainder(segment);
    const num::Range all = num::segment_blocks(static_cast<int>(segment), k);
    const int64_t begin = all.begin > first ? all.begin : first, end = all.end < last ? all.end : last;
    if (begin >= end) return;
    F sum = begin == all.begin ? zero() : load(segments + i);
    const float* from = chains + (begin - first) * outputs + output;
    for (int64_t b = begin; b < end; b += kAhead, from += kAhead * outputs) {
      F chain[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) chain[j] = b + j < end ? load(from + j * outputs) : zero();
#pragma unroll
      for (int j = 0; j < kAhead; ++j)
        if (b + j < end) sum = add(sum, chain[j]);  // contraction.3
    }
    store(segments + i, sum);
  });
}

void enqueue_backward_weight(const Call& call, Stream stream) {
  const BackwardWeight p = conv::backward_weight(call);
  const BackwardPlan r = backward_plan(p);
  const float *grad = call.in[0].as<const float>(), *x = call.in[1].as<const float>();
  float* const out = call.out[0].as<float>();
  const int64_t outputs = r.outputs, k = p.k;
  if (outputs == 0) return;
  if (k > 0 && r.route == BackwardRoute::whole) return enqueue_tiles(p, r, 0, r.blocks, grad, x, out, stream);
  float* const segments = static_cast<float*>(call.shared);
  float* const chains = segments + num::kSegments * outputs;
  for (int64_t first = 0; first < r.blocks; first += r.round) {
    const int64_t last = num::min_i64(first + r.round, r.blocks);
    if (r.route == BackwardRoute::direct)
      enqueue_direct(p, r, first, last, grad, x, chains, stream);
    else
      enqueue_tiles(p, r, first, last, grad, x, chains, stream);
    enqueue_segments(k, outputs, first, last, chains, segments, stream);
  }
  launch_for_each(stream, outputs, [=] __device__(int64_t i) {
    F s[num::kSegments];
#pragma unroll
    for (int g = 0; g < num::kSegments; ++g)
      s[g] = g < num::segments_in_use(k) ? load(segments + g * outputs + i) : zero();
    store_canonical(out + i, num::join_segments(s));  // contraction.4
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(conv_backward_weight);
const GpuKernel INVAR_ROW_OF(conv_backward_weight) = {.op = "conv_backward_weight",
                                                      .isa = INVAR_ISA,
                                                      .shared_bytes = INVAR_ISA_NS::backward_bytes,
                                                      .enqueue = INVAR_ISA_NS::enqueue_backward_weight};

}  // namespace invar::ops
