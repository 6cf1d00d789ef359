// Linear attention of many rows with a decay of each head: what does not depend on the state, the
// weights of linear_attention.4, is computed for all chunks at once, in tiles of 64 x 64.
#pragma once
#include "ops/linear_attention/cuda/common.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kVector = 4;
constexpr int kWeightTile = kChunkRows * kChunkRows;
// Four floats of a tile's row.
__device__ __forceinline__ void load_four(const float* at, F (&to)[kVector]) {
  const float4 v = *reinterpret_cast<const float4*>(at);
  to[0] = {v.x}, to[1] = {v.y}, to[2] = {v.z}, to[3] = {v.w};
}

// Rows [begin, end) of a chunk, the first of which is row `first` of the call's operands.
struct Segment {
  int begin, end;
  int64_t first;
};
// Segments of a call are the chunks that have a row of it. `end` is at most `begin` after the
// last.
__device__ inline Segment segment_of(const Geometry& g, const Sequence& s, int64_t batch, int64_t number) {
  const int64_t opened = s.past % kChunkRows, begin = number ? 0 : opened;
  const int64_t from = number ? number * kChunkRows - opened : 0;
  return {static_cast<int>(begin), static_cast<int>(num::min_i64(kChunkRows, begin + g.seq - from)),
          batch * g.seq + from};
}

// The decays and weights of a segment of a head of values. The weights of row i as a key have rows
// t in the order of place_of(t): a thread of chunks_kernel reads those that it owns as vectors.
struct SegmentWeights {
  float k[kWeightTile], q[kWeightTile];
  float a[kChunkRows], last[kChunkRows];  // A, d(63, i)
};
constexpr int kOwners = 4;  // threads that own rows of a column
__device__ constexpr int place_of(int t) {
  return t % kOwners * (kChunkRows / kOwners) + t / kOwners;
}

constexpr int kSide = 16;                     // a block is a square of threads
constexpr int kTile = kChunkRows / kSide;     // a thread has kTile x kTile weights
constexpr int kChunkStride = kChunkRows + 4;  // of rows of a tile: vectors of four without bank conflicts
constexpr int kHeads = 4;                     // heads of values that share the products of a block
static_assert(kSide * kSide == kThreads);

struct WeightsShared {
  double log[kHeads][kChunkRows];  // G
  float k[kChunkRows * kChunkStride], q[kChunkRows * kChunkStride];
};

// Stages channels [from, from + 64) of the segment's keys and queries. Keys of earlier calls are in
// the state.
__device__ inline void load_channels(const Rows& p, const HeadState& m, WeightsShared& to,
                                     const Segment& rows, int64_t key_head, int64_t from) {
  const int64_t d = p.g.d, ld = p.g.key_heads * d;
  const int64_t base = (rows.first - rows.begin) * ld + key_head * d + from;
#pragma unroll 4
  for (int at = threadIdx.x; at < kWeightTile; at += kThreads) {
    const int i = at / kChunkRows, j = at % kChunkRows;
    const bool known = i < rows.end && from + j < d, is_new = known && i >= rows.begin;
    float k = 0;
    if (is_new)
      k = p.k[base + i * ld + j];
    else if (known)
      k = m.keys[(from + j) * kChunkRows + i];
    to.k[i * kChunkStride + j] = k;
    to.q[i * kChunkStride + j] = is_new ? p.q[base + i * ld + j] : 0.0f;
  }
}

// linear_attention.3 of heads [first, first + heads).
__device__ inline void load_logs(const Rows& p, const Sequence& sequence, WeightsShared& at,
                                 const Segment& rows, int64_t first, int heads) {
  for (int n = threadIdx.x; n < heads * kChunkRows; n += kThreads) {
    const int h = n / kChunkRows, t = n % kChunkRows;
    double& log = at.log[h][t];
    log = 0;
    if (t < rows.begin)
      log = head_of(p, sequence, first + h).decay[t];
    else if (t < rows.end)
      log = static_cast<double>(p.decay[(rows.first + t - rows.begin) * p.g.value_heads + first + h]);
  }
  __syncthreads();
  if (threadIdx.x >= heads) return;
  double* const log = at.log[threadIdx.x];
  for (int i = rows.begin; i < rows.end; ++i) log[i] = (i ? log[i - 1] : 0.0) + log[i];  // linear_attention.3
}

// Blocks are (segment, heads that share a key, sequence).
template <bool kDelta>
__global__ void __launch_bounds__(kThreads)
    weights_kernel(Rows p, SegmentWeights* weights, int64_t first_segment, int segments) {
  __shared__ WeightsShared at;
  trigger_and_wait();
  const Geometry& g = p.g;
  const int64_t parts = (g.group + kHeads - 1) / kHeads, unit = int64_t{blockIdx.x} / segments;
  const int64_t part = unit % parts, key_head = unit / parts % g.key_heads,
                batch = unit / parts / g.key_heads;
  const int64_t head = key_head * g.group + part * kHeads;
  const int heads = static_cast<int>(num::min_i64(kHeads, g.group - part * kHeads));
  const int number = static_cast<int>(blockIdx.x) % segments;
  const Sequence sequence = p.sequences[batch];
  const Segment rows = segment_of(g, sequence, batch, first_segment + number);
  if (rows.end <= rows.begin) return;
  load_logs(p, sequence, at, rows, head, heads);
  const HeadState m = head_of(p, sequence, head);
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;  // of rows t, and of rows i as keys
  F w_k[kTile][kTile], w_q[kTile][kTile];
#pragma unroll
  for (int r = 0; r < kTile; ++r)
#pragma unroll
    for (int c = 0; c < kTile; ++c) w_k[r][c] = w_q[r][c] = zero();
  for (int64_t from = 0; from < g.d; from += kChunkRows) {
    __syncthreads();
    load_channels(p, m, at, rows, key_head, from);
    __syncthreads();
    // Terms after the last channel are zeros: contraction.5.
    const int terms = static_cast<int>(num::min_i64(g.d - from, kChunkRows));
    for (int j0 = 0; j0 < terms; j0 += kVector) {
      F k[kTile][kVector], q[kTile][kVector], key[kTile][kVector];
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
        const int row = (x + i * kSide) * kChunkStride + j0;
        if (kDelta) load_four(at.k + row, k[i]);
        load_four(at.q + row, q[i]);
        load_four(at.k + (y + i * kSide) * kChunkStride + j0, key[i]);
      }
#pragma unroll
      for (int j = 0; j < kVector; ++j)
#pragma unroll
        for (int r = 0; r < kTile; ++r)
#pragma unroll
          for (int c = 0; c < kTile; ++c) {  // contraction.2
            if (kDelta) w_k[r][c] = fma(key[c][j], k[r][j], w_k[r][c]);
            w_q[r][c] = fma(key[c][j], q[r][j], w_q[r][c]);
          }
    }
  }
  for (int h = 0; h < heads; ++h) {
    SegmentWeights& to = weights[((batch * g.value_heads) + head + h) * segments + number];
    const double* const log = at.log[h];
    for (int t = threadIdx.x; t < rows.end; t += kThreads) {
      to.a[t] = stored_exp(log[t]).v;
      to.last[t] = stored_exp(log[rows.end - 1] - log[t]).v;
    }
#pragma unroll
    for (int c = 0; c < kTile; ++c)
#pragma unroll
      for (int r = 0; r < kTile; ++r) {
        const int t = x + r * kSide, i = y + c * kSide, place = i * kChunkRows + place_of(t);
        if (i > t || t < rows.begin || t >= rows.end) continue;  // nobody reads these
        const F d = stored_exp(log[t] - log[i]);
        if (kDelta) store_canonical(to.k + place, mul(add(zero(), w_k[r][c]), d));
        store_canonical(to.q + place, mul(add(zero(), w_q[r][c]), d));
      }
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
