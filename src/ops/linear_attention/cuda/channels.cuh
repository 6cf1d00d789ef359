// Linear attention of many rows with a decay of each channel: what does not depend on the state is
// computed for all chunks at once, as weights.cuh does with a decay of a head. Every exponential of
// linear_attention.4 is of one pair of rows and one channel, so no product of matrices has them.
#pragma once
#include "ops/linear_attention/cuda/weights.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Of a segment of a head, rows of d channels: G; k and q times A; keys times d(63, i); A_63.
struct ChannelRows {
  double* log;
  float *k, *q, *closing, *last;
};
__host__ __device__ constexpr int64_t channel_floats(int64_t d) {
  return 5 * kChunkRows * d + (d + kVector - 1) / kVector * kVector;
}
__device__ inline ChannelRows channel_rows(float* all, int64_t number, int64_t d) {
  float* const log = all + number * channel_floats(d);
  float *const k = log + 2 * kChunkRows * d, *const q = k + kChunkRows * d,
               *const closing = q + kChunkRows * d;
  return {reinterpret_cast<double*>(log), k, q, closing, closing + kChunkRows * d};
}

// Blocks are (segment, head, sequence).
__global__ void __launch_bounds__(kThreads)
    channel_rows_kernel(Rows p, float* channels, int64_t first_segment, int segments) {
  trigger_and_wait();
  const Geometry& g = p.g;
  const int64_t unit = blockIdx.x / segments, batch = unit / g.value_heads, head = unit % g.value_heads;
  const int64_t number = int64_t{blockIdx.x} % segments, d = g.d;
  const Sequence sequence = p.sequences[batch];
  const Segment rows = segment_of(g, sequence, batch, first_segment + number);
  if (rows.end <= rows.begin) return;
  const HeadState m = head_of(p, sequence, head);
  const ChannelRows to = channel_rows(channels, blockIdx.x, d);
  const int64_t row = rows.first - rows.begin;  // of the call, for row 0 of the chunk
  for (int64_t j = threadIdx.x; j < d; j += kThreads) {
    double log = 0;
    for (int t = 0; t < rows.begin; ++t) to.log[t * d + j] = log = m.decay[j * kChunkRows + t];
    const float* const decay = p.decay + (row * g.value_heads + head) * d + j;
#pragma unroll 8
    for (int t = rows.begin; t < rows.end; ++t) {
      log = log + static_cast<double>(decay[t * g.value_heads * d]);  // linear_attention.3
      to.log[t * d + j] = log;
    }
  }
  __syncthreads();
  const int64_t from = row * g.key_heads * d + head / g.group * d, step = g.key_heads * d;
  for (int64_t n = rows.begin * d + threadIdx.x; n < rows.end * d; n += kThreads) {
    const int64_t at = from + n / d * step + n % d;
    const F a = stored_exp(to.log[n]);
    store_canonical(to.k + n, mul(a, load(p.k + at)));  // linear_attention.4
    store_canonical(to.q + n, mul(a, load(p.q + at)));
  }
  if (rows.end < kChunkRows) return;
  const double* const last = to.log + (kChunkRows - 1) * d;
  for (int64_t j = threadIdx.x; j < d; j += kThreads) store(to.last + j, stored_exp(last[j]));
  for (int64_t n = threadIdx.x; n < kChunkRows * d; n += kThreads) {  // linear_attention.7
    const int64_t i = n / d, j = n % d;
    const F key = load(i < rows.begin ? m.keys + j * kChunkRows + i : p.k + from + i * step + j);
    store_canonical(to.closing + n, mul(key, stored_exp(last[j] - to.log[n])));
  }
}

constexpr int kPairs = 16;  // a block has weights of kPairs x kPairs pairs of rows
constexpr int kPairTiles = kChunkRows / kPairs;
constexpr int kPairBlocks = kPairTiles * (kPairTiles + 1) / 2;  // on and below the diagonal
constexpr int kStaged = 32;                                     // channels that are staged together
static_assert(kPairs * kPairs == kThreads);

struct PairsShared {
  double log[2][kPairs][kStaged + 1];  // of rows t, of rows i
  float k[2][kPairs][kStaged + 1], q[kPairs][kStaged + 1];
};

// Blocks are (tile, segment, head, sequence); a thread has a pair of rows.
template <bool kDelta>
__global__ void __launch_bounds__(kThreads)
    channel_weights_kernel(Rows p, SegmentWeights* weights, float* channels, int64_t first_segment,
                           int segments) {
  __shared__ PairsShared at;
  trigger_and_wait();
  const Geometry& g = p.g;
  int tile = static_cast<int>(blockIdx.x) % kPairBlocks, above = 0;  // the tile's row, then its column
  while (tile > above) tile -= ++above;
  const int64_t place = blockIdx.x / kPairBlocks, unit = place / segments;
  const int64_t batch = unit / g.value_heads, head = unit % g.value_heads, d = g.d;
  const Sequence sequence = p.sequences[batch];
  const Segment rows = segment_of(g, sequence, batch, first_segment + place % segments);
  const int t0 = above * kPairs, i0 = tile * kPairs;
  if (rows.end <= rows.begin || t0 >= rows.end || t0 + kPairs <= rows.begin) return;
  const HeadState m = head_of(p, sequence, head);
  const ChannelRows from = channel_rows(channels, place, d);
  const int64_t step = g.key_heads * d, row = (rows.first - rows.begin) * step + head / g.group * d;
  const int t = threadIdx.x % kPairs, i = threadIdx.x / kPairs;
  F w_k = zero(), w_q = zero();
  for (int64_t j0 = 0; j0 < d; j0 += kStaged) {
    const int width = static_cast<int>(num::min_i64(d - j0, kStaged));
    __syncthreads();
    for (int n = threadIdx.x; n < kPairs * kStaged; n += kThreads) {
      const int r = n / kStaged, j = n % kStaged;
      if (j >= width) continue;
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int of = (side ? i0 : t0) + r;
        const bool there = of < rows.end;
        at.log[side][r][j] = there ? from.log[of * d + j0 + j] : 0.0;
        at.k[side][r][j] = !there            ? 0.0f
                           : of < rows.begin ? m.keys[(j0 + j) * kChunkRows + of]
                                             : p.k[row + of * step + j0 + j];
      }
      const int of = t0 + r;
      at.q[r][j] = of >= rows.begin && of < rows.end ? p.q[row + of * step + j0 + j] : 0.0f;
    }
    __syncthreads();
    for (int j = 0; j < width; ++j) {
      const F decay = stored_exp(at.log[0][t][j] - at.log[1][i][j]);
      const F key = canonicalize(mul(load(&at.k[1][i][j]), decay));
      if (kDelta) w_k = fma(key, load(&at.k[0][t][j]), w_k);  // contraction.2
      w_q = fma(key, load(&at.q[t][j]), w_q);                 // contraction.2
    }
  }
  const int to_t = t0 + t, to_i = i0 + i;
  if (to_i > to_t || to_t < rows.begin || to_t >= rows.end) return;  // nobody reads these
  SegmentWeights& to = weights[place];
  const int slot = to_i * kChunkRows + place_of(to_t);
  if (kDelta) store_canonical(to.k + slot, add(zero(), w_k));
  store_canonical(to.q + slot, add(zero(), w_q));
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
