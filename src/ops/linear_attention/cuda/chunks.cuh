// Linear attention of many rows with a decay of each head: a block takes the chunks of a head in
// order, for a slice of its columns. All products of a chunk are tiles of 64 x 64 with terms in
// ascending order, and the updates follow each other row by row, each of them added to the sums of
// all later rows at once.
#pragma once
#include "ops/linear_attention/cuda/common.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kSlice = 64;                    // columns of a block
constexpr int kSide = 16;                     // a block is a square of threads
constexpr int kTile = kSlice / kSide;         // a thread has kTile x kTile elements of a tile
constexpr int kChunkStride = kChunkRows + 4;  // of rows of a tile: vectors of four without bank conflicts
constexpr int kVector = 4;
constexpr int kTileFloats = kChunkRows * kChunkStride;
static_assert(kSlice == kChunkRows && kSide * kSide == kThreads && kTile == kVector);

struct ChunkShared {
  double log[kChunkRows];                                   // G
  float a[kChunkRows], last[kChunkRows], beta[kChunkRows];  // A, d(63, i)
  float k[kTileFloats], q[kTileFloats];                     // rows by channels
  float s[kTileFloats];                                     // columns by channels; then rows of values
  float w_k[kTileFloats], w_q[kTileFloats];                 // linear_attention.4
  float u[kTileFloats];
};

// Rows [begin, end) of a chunk, the first of which is row `first` of the call's operands.
struct Segment {
  int begin, end;
  int64_t first;
};

// Stages channels [from, from + 64) of the chunk's keys, and of its queries if kQueries.
template <bool kQueries>
__device__ void load_rows(const Rows& p, const HeadState& m, ChunkShared& to, const Segment& rows,
                          int64_t head, int64_t from) {
  const int64_t d = p.g.d, ld = p.g.key_heads * d;
  const int64_t base = (rows.first - rows.begin) * ld + head / p.g.group * d + from;
  for (int at = threadIdx.x; at < kChunkRows * kChunkRows; at += kThreads) {
    const int i = at / kChunkRows, j = at % kChunkRows;
    const bool known = i < rows.end && from + j < d, is_new = known && i >= rows.begin;
    float k = 0;
    if (is_new)
      k = p.k[base + i * ld + j];
    else if (known)
      k = m.keys[(from + j) * kChunkRows + i];
    to.k[i * kChunkStride + j] = k;
    if (kQueries) to.q[i * kChunkStride + j] = is_new ? p.q[base + i * ld + j] : 0.0f;
  }
}

// The logarithms, decays and betas of the chunk (linear_attention.3).
__device__ inline void load_decays(const Rows& p, const HeadState& m, ChunkShared& to, const Segment& rows,
                                   int64_t head) {
  const int t = threadIdx.x;
  if (t < kChunkRows) {
    const bool is_new = t >= rows.begin && t < rows.end;
    const int64_t at = (rows.first + t - rows.begin) * p.g.value_heads + head;
    to.last[t] = is_new ? p.decay[at] : 0.0f;
    to.beta[t] = is_new && p.beta ? p.beta[at] : 0.0f;
    to.log[t] = t < rows.begin ? m.decay[t] : 0.0;
  }
  __syncthreads();
  if (t == 0)
    for (int i = rows.begin; i < rows.end; ++i)
      to.log[i] = (i ? to.log[i - 1] : 0.0) + static_cast<double>(to.last[i]);
  __syncthreads();
  if (t < kChunkRows) {
    to.a[t] = stored_exp(to.log[t]).v;
    to.last[t] = stored_exp(to.log[rows.end - 1] - to.log[t]).v;
  }
}

// Columns of a head that a block has, and where row 0 of the chunk has their values and results.
struct Columns {
  int64_t head, slice, columns, row_step, values;
};
// Sums of the rows and columns of a thread.
struct Sums {
  F k[kTile][kTile], q[kTile][kTile];
};

// Four floats of a tile's row.
__device__ __forceinline__ void load_four(const float* at, F (&to)[kVector]) {
  const float4 v = *reinterpret_cast<const float4*>(at);
  to[0] = {v.x}, to[1] = {v.y}, to[2] = {v.z}, to[3] = {v.w};
}

// linear_attention.4: weights of the segment's rows, and the products with the state.
template <bool kDelta>
__device__ __forceinline__ void multiply(const Rows& p, const HeadState& m, ChunkShared& at,
                                         const Segment& rows, const Columns& of, Sums& h) {
  const Geometry& g = p.g;
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  F w_k[kTile][kTile], w_q[kTile][kTile];
#pragma unroll
  for (int r = 0; r < kTile; ++r)
#pragma unroll
    for (int c = 0; c < kTile; ++c) w_k[r][c] = w_q[r][c] = h.k[r][c] = h.q[r][c] = zero();
  for (int64_t from = 0; from < g.d; from += kChunkRows) {
    __syncthreads();
    load_rows<true>(p, m, at, rows, of.head, from);
    for (int i = threadIdx.x; i < kChunkRows * kSlice; i += kThreads) {
      const int j = i / kSlice, c = i % kSlice;
      at.s[c * kChunkStride + j] =
          from + j < g.d && c < of.columns ? m.s[(from + j) * g.dv_padded + of.slice + c] : 0.0f;
    }
    __syncthreads();
    // Terms beyond the last channel are zeros: contraction.5.
    const int terms = static_cast<int>(num::min_i64(g.d - from, kChunkRows));
    for (int first = 0; first < terms; first += kVector) {
      F k[kTile][kVector], q[kTile][kVector], key[kTile][kVector], s[kTile][kVector];
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
        const int row = (y + i * kSide) * kChunkStride + first,
                  column = (x + i * kSide) * kChunkStride + first;
        load_four(at.k + row, k[i]);
        load_four(at.q + row, q[i]);
        load_four(at.k + column, key[i]);
        load_four(at.s + column, s[i]);
      }
#pragma unroll
      for (int j = 0; j < kVector; ++j)
#pragma unroll
        for (int r = 0; r < kTile; ++r)
#pragma unroll
          for (int c = 0; c < kTile; ++c) {  // contraction.2
            if (kDelta) w_k[r][c] = fma(key[c][j], k[r][j], w_k[r][c]);
            w_q[r][c] = fma(key[c][j], q[r][j], w_q[r][c]);
            if (kDelta) h.k[r][c] = fma(k[r][j], s[c][j], h.k[r][c]);
            h.q[r][c] = fma(q[r][j], s[c][j], h.q[r][c]);
          }
    }
  }
#pragma unroll
  for (int r = 0; r < kTile; ++r) {
    const int t = y + r * kSide;
    const F a = load(at.a + t);
#pragma unroll
    for (int c = 0; c < kTile; ++c) {
      const int i = x + c * kSide;
      if (i <= t && t < rows.end) {
        const F d = stored_exp(at.log[t] - at.log[i]);
        if (kDelta) store_canonical(at.w_k + t * kChunkStride + i, mul(add(zero(), w_k[r][c]), d));
        store_canonical(at.w_q + t * kChunkStride + i, mul(add(zero(), w_q[r][c]), d));
      }
      if (kDelta) h.k[r][c] = mul(a, add(zero(), h.k[r][c]));
      h.q[r][c] = mul(a, add(zero(), h.q[r][c]));
    }
  }
}

// linear_attention.5: row i is done once the updates of all earlier rows are in its sum.
template <bool kDelta>
__device__ __forceinline__ void substitute(const Rows& p, const HeadState& m, ChunkShared& at,
                                           const Segment& rows, const Columns& of, Sums& h) {
  const Geometry& g = p.g;
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  __syncthreads();
  for (int i = threadIdx.x; i < rows.end * kSlice; i += kThreads) {
    const int row = i / kSlice, c = i % kSlice, to = row * kChunkStride + c;
    if (row < rows.begin)
      at.u[to] = c < of.columns ? m.u[row * g.dv_padded + of.slice + c] : 0.0f;
    else
      at.s[to] = c < of.columns ? p.v[of.values + row * of.row_step + c] : 0.0f;
  }
  __syncthreads();
#pragma unroll
  for (int own = 0; own < kTile; ++own)
    for (int lane = 0; lane < kSide; ++lane) {
      const int i = own * kSide + lane;
      if (i >= rows.end) break;
      if (i >= rows.begin && y == lane)
#pragma unroll
        for (int c = 0; c < kTile; ++c) {
          const int column = x + c * kSide;
          F u = load(at.s + i * kChunkStride + column);
          if (kDelta) u = canonicalize(mul(load(at.beta + i), sub(u, h.k[own][c])));
          store(at.u + i * kChunkStride + column, u);
        }
      __syncthreads();
      F u[kTile];
#pragma unroll
      for (int c = 0; c < kTile; ++c) u[c] = load(at.u + i * kChunkStride + x + c * kSide);
#pragma unroll
      for (int r = own; r < kTile; ++r) {
        const int t = y + r * kSide;
        if (t < i || t >= rows.end) continue;
        const F q = load(at.w_q + t * kChunkStride + i);
        const F k = kDelta && t > i ? load(at.w_k + t * kChunkStride + i) : zero();
#pragma unroll
        for (int c = 0; c < kTile; ++c) {
          if (kDelta && t > i) h.k[r][c] = fma(k, u[c], h.k[r][c]);
          h.q[r][c] = fma(q, u[c], h.q[r][c]);
        }
      }
    }
}

// linear_attention.6, and the updates of a chunk that stays open.
__device__ __forceinline__ void store_rows(const Rows& p, const HeadState& m, const ChunkShared& at,
                                           const Segment& rows, const Columns& of, const Sums& h) {
  const Geometry& g = p.g;
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
#pragma unroll
  for (int r = 0; r < kTile; ++r) {
    const int t = y + r * kSide;
    if (t < rows.begin || t >= rows.end) continue;
#pragma unroll
    for (int c = 0; c < kTile; ++c) {
      const int column = x + c * kSide;
      if (column >= of.columns) continue;
      store_canonical(p.y + of.values + t * of.row_step + column, mul(h.q[r][c], set1(g.scale)));
      if (rows.end < kChunkRows)
        store(m.u + t * g.dv_padded + of.slice + column, load(at.u + t * kChunkStride + column));
    }
  }
}

// linear_attention.7
__device__ __forceinline__ void close_slice(const Rows& p, const HeadState& m, ChunkShared& at,
                                            const Segment& rows, const Columns& of) {
  const Geometry& g = p.g;
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  for (int64_t from = 0; from < g.d; from += kChunkRows) {
    __syncthreads();
    load_rows<false>(p, m, at, rows, of.head, from);
    __syncthreads();
    for (int i = threadIdx.x; i < kChunkRows * kChunkRows; i += kThreads) {
      float* const key = at.k + i / kChunkRows * kChunkStride + i % kChunkRows;
      store_canonical(key, mul(load(key), load(at.last + i / kChunkRows)));
    }
    __syncthreads();
    F sum[kTile][kTile];
    const F a = load(at.a + kChunkRows - 1);
    const auto each = [&](auto visit) {
#pragma unroll
      for (int r = 0; r < kTile; ++r)
#pragma unroll
        for (int c = 0; c < kTile; ++c) {
          const int64_t j = from + y * kTile + r, column = x * kTile + c;
          visit(sum[r][c], m.s + j * g.dv_padded + of.slice + column, j < g.d && column < of.columns);
        }
    };
    each([&](F& s, const float* state, bool is_there) { s = is_there ? mul(a, load(state)) : zero(); });
    for (int i = 0; i < kChunkRows; ++i) {
      F key[kTile], u[kTile];
      load_four(at.k + i * kChunkStride + y * kTile, key);
      load_four(at.u + i * kChunkStride + x * kTile, u);
#pragma unroll
      for (int r = 0; r < kTile; ++r)
#pragma unroll
        for (int c = 0; c < kTile; ++c) sum[r][c] = fma(key[r], u[c], sum[r][c]);  // linear_attention.7
    }
    each([&](const F& s, float* state, bool is_there) {
      if (is_there) store_canonical(state, s);
    });
  }
}

template <bool kDelta>
__device__ void take_segment(const Rows& p, const HeadState& m, ChunkShared& at, const Segment& rows,
                             int64_t head, int64_t slice) {
  const int64_t row_step = p.g.value_heads * p.g.dv;
  const Columns of{head, slice, num::min_i64(p.g.dv - slice, kSlice), row_step,
                   (rows.first - rows.begin) * row_step + head * p.g.dv + slice};
  Sums h;
  load_decays(p, m, at, rows, head);
  multiply<kDelta>(p, m, at, rows, of, h);
  substitute<kDelta>(p, m, at, rows, of, h);
  store_rows(p, m, at, rows, of, h);
  if (rows.end == kChunkRows) close_slice(p, m, at, rows, of);
}

// Blocks are (slice, head, sequence). Keys and logarithms of the chunk that stays open are left to
// append_kernel, because every slice reads those of earlier calls.
template <bool kDelta>
__global__ void __launch_bounds__(kThreads, 1) chunks_kernel(Rows p, int slices) {
  extern __shared__ float4 chunk_shared[];
  ChunkShared& at = *reinterpret_cast<ChunkShared*>(chunk_shared);
  trigger_and_wait();
  const Geometry& g = p.g;
  const int64_t slice = int64_t{blockIdx.x} % slices * kSlice, unit = blockIdx.x / slices;
  const int64_t batch = unit / g.value_heads, head = unit % g.value_heads;
  const Sequence sequence = p.sequences[batch];
  const HeadState m = linear_attention::head_state(g, p.state + sequence.slot * p.slot_bytes, head);
  if (sequence.past == 0)
    for (int64_t i = threadIdx.x; i < g.d * kSlice; i += kThreads)
      if (slice + i % kSlice < g.dv_padded) m.s[i / kSlice * g.dv_padded + slice + i % kSlice] = 0;
  __syncthreads();
  for (int64_t i = 0; i < g.seq;) {
    const int begin = static_cast<int>((sequence.past + i) % kChunkRows);
    const int n = static_cast<int>(num::min_i64(kChunkRows - begin, g.seq - i));
    take_segment<kDelta>(p, m, at, {begin, begin + n, batch * g.seq + i}, head, slice);
    __syncthreads();
    i += n;
  }
}

// Keys and logarithms of decays of the chunk that stays open; a block has a head.
__global__ void __launch_bounds__(kThreads) append_kernel(Rows p) {
  trigger_and_wait();
  const Geometry& g = p.g;
  const int64_t batch = blockIdx.x / g.value_heads, head = blockIdx.x % g.value_heads;
  const Sequence sequence = p.sequences[batch];
  const HeadState m = linear_attention::head_state(g, p.state + sequence.slot * p.slot_bytes, head);
  const int64_t end = (sequence.past + g.seq) % kChunkRows, begin = end > g.seq ? end - g.seq : 0;
  const int64_t first = batch * g.seq + g.seq - end;  // of row 0 of the chunk
  for (int64_t at = threadIdx.x; at < (end - begin) * g.d; at += kThreads) {
    const int64_t i = begin + at / g.d, j = at % g.d;
    m.keys[j * kChunkRows + i] = p.k[((first + i) * g.key_heads + head / g.group) * g.d + j];
  }
  if (threadIdx.x == 0)
    for (int64_t i = begin; i < end; ++i)
      m.decay[i] =
          (i ? m.decay[i - 1] : 0.0) + static_cast<double>(p.decay[(first + i) * g.value_heads + head]);
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
