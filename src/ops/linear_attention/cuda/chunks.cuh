// Linear attention of many rows, once their weights are there: a block takes the chunks of a head
// in order, for a slice of its columns, whose state stays in shared memory. All products are tiles
// with terms in ascending order.
#pragma once
#include "kernels/cuda/async_copy.cuh"
#include "ops/linear_attention/cuda/channels.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kSlice = 32;                                               // columns of a block
constexpr int kChunkThreads = 128;                                       // of a block
constexpr int kGridRows = 16, kGridColumns = kChunkThreads / kGridRows;  // threads over rows and columns
constexpr int kRows = kChunkRows / kGridRows, kColumnsEach = kSlice / kGridColumns;  // of a thread
constexpr int kOwned = kChunkRows / kOwners;                                         // rows of an owner
constexpr int kUpdateStride = kSlice + 4;
constexpr int kWarpColumns = 32 / kOwners;
static_assert(kChunkThreads / 32 * kWarpColumns == kSlice);

// Shared memory of a block, in floats.
struct ChunkLayout {
  int stride;                               // of rows of d channels
  int k, q, s, w_k, w_q, u, a, last, beta;  // s: columns by channels
  int last_a;                               // A_63 of each channel, where each has its own
  int all;
  __host__ __device__ ChunkLayout(int64_t d, bool has_channels)
      : stride(static_cast<int>((d + 3) / kVector * kVector) + kVector),
        k(0),
        q(k + kChunkRows * stride),
        s(q + larger(kChunkRows * stride, 2 * kSlice * kChunkStride)),  // what products with the state are
        w_k(s + kSlice * stride),
        w_q(w_k + kWeightTile),
        u(w_q + kWeightTile),
        a(u + kChunkRows * kUpdateStride),
        last(a + kChunkRows),
        beta(last + kChunkRows),
        last_a(beta + kChunkRows),
        all(last_a + (has_channels ? stride : 0)) {}
  static constexpr __host__ __device__ int larger(int x, int y) { return x < y ? y : x; }
  size_t bytes() const { return static_cast<size_t>(all) * sizeof(float); }
};

// What a block computes, and where.
struct Slice {
  const Rows& p;
  HeadState m;
  const SegmentWeights* weights;  // of the pass
  float* channels;                // the same of ChannelRows
  float* shared;
  ChunkLayout at;
  int64_t batch, head, first;  // first: column
  int columns;
};

// The elements of rows of `width` that a thread takes: n = threadIdx.x, then every
// kChunkThreads-th.
struct Walk {
  int width, i, j, steps, rest;
  __device__ explicit Walk(int row_width)
      : width(row_width),
        i(static_cast<int>(threadIdx.x) / width),
        j(static_cast<int>(threadIdx.x) % width),
        steps(kChunkThreads / width),
        rest(kChunkThreads % width) {}
  __device__ void next() {
    i += steps, j += rest;
    if (j >= width) j -= width, ++i;
  }
};

// Starts the copies of rows [begin, end) of d channels, which lie side by side; zeros elsewhere.
__device__ inline void copy_channels(const Slice& b, int stride, const float* from, float* to, int begin,
                                     int end) {
  const int d = static_cast<int>(b.p.g.d);
  const bool vectors = d % kVector == 0;
  for (Walk at(vectors ? d / kVector : stride - kVector); at.i < kChunkRows; at.next()) {
    const bool is_row = at.i >= begin && at.i < end;
    if (vectors) {
      const int j = at.j * kVector;
      copy_async_16(to + at.i * stride + j, from + (is_row ? at.i * d + j : 0), is_row);
    } else {
      const bool there = is_row && at.j < d;
      copy_async_4(to + at.i * stride + at.j, from + (there ? at.i * d + at.j : 0), there);
    }
  }
}
// The keys of linear_attention.7, where those of products with the state were; and A_63.
__device__ inline void copy_closing(const Slice& b, int number) {
  const ChannelRows from = channel_rows(b.channels, number, b.p.g.d);
  copy_channels(b, b.at.stride, from.closing, b.shared + b.at.k, 0, kChunkRows);
  for (int j = threadIdx.x; j < b.at.stride; j += kChunkThreads)
    copy_async_4(b.shared + b.at.last_a + j, from.last + (j < b.p.g.d ? j : 0), j < b.p.g.d);
}

// Starts the copies of a segment's keys or queries; zeros after the last channel and row.
template <bool kKeys, bool kChannels>
__device__ inline void copy_rows(const Slice& b, const Segment& rows, int number) {
  const Geometry& g = b.p.g;
  if (kChannels) {
    const ChannelRows from = channel_rows(b.channels, number, g.d);
    return copy_channels(b, b.at.stride, kKeys ? from.k : from.q, b.shared + (kKeys ? b.at.k : b.at.q),
                         rows.begin, rows.end);
  }
  const int d = static_cast<int>(g.d), stride = b.at.stride;
  float* const to = b.shared + (kKeys ? b.at.k : b.at.q);
  const int64_t step = g.key_heads * g.d;
  const float* const from =
      (kKeys ? b.p.k : b.p.q) + (rows.first - rows.begin) * step + b.head / g.group * g.d;
  const int width = b.p.vectors ? d / kVector : stride - kVector;
  for (Walk at(width); at.i < kChunkRows; at.next()) {
    const int i = at.i, j = at.j;
    const bool is_new = i >= rows.begin && i < rows.end, of_state = kKeys && i < rows.begin;
    if (b.p.vectors) {
      float* const place = to + i * stride + j * kVector;
      if (of_state)
        for (int x = 0; x < kVector; ++x) place[x] = b.m.keys[(j * kVector + x) * kChunkRows + i];
      else
        copy_async_16(place, is_new ? from + i * step + j * kVector : from, is_new);
    } else if (of_state) {
      to[i * stride + j] = j < d ? b.m.keys[j * kChunkRows + i] : 0.0f;
    } else {
      const bool there = is_new && j < d;
      copy_async_4(to + i * stride + j, there ? from + i * step + j : from, there);
    }
  }
}
// Decays and betas, which are read as long as keys are.
template <bool kChannels>
__device__ inline void copy_factors(const Slice& b, const Segment& rows, const SegmentWeights& w) {
  const Geometry& g = b.p.g;
  for (int t = threadIdx.x; t < kChunkRows; t += kChunkThreads) {
    if (!kChannels) {
      copy_async_4(b.shared + b.at.a + t, w.a + t, t < rows.end);
      copy_async_4(b.shared + b.at.last + t, w.last + t, t < rows.end);
    }
    const bool is_new = b.p.beta && t >= rows.begin && t < rows.end;
    const float* const beta = b.p.beta + (rows.first + t - rows.begin) * g.value_heads + b.head;
    copy_async_4(b.shared + b.at.beta + t, is_new ? beta : w.a, is_new);
  }
}
template <bool kDelta>
__device__ inline void copy_weights(const Slice& b, const SegmentWeights& w) {
  for (int n = threadIdx.x * kVector; n < kWeightTile; n += kChunkThreads * kVector) {
    if (kDelta) copy_async_16(b.shared + b.at.w_k + n, w.k + n, true);
    copy_async_16(b.shared + b.at.w_q + n, w.q + n, true);
  }
}

// linear_attention.4: the products with the state, in the memory of queries: of k, of q, each
// columns by place_of(row).
template <bool kDelta, bool kChannels>
__device__ __forceinline__ void multiply(const Slice& b) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, stride = b.at.stride;
  const int row = lane % 8 + warp % 2 * 8, column = lane / 8 + warp / 2 * 4;
  const float *const k_rows = b.shared + b.at.k + row * stride,
                     *const q_rows = b.shared + b.at.q + row * stride,
                     *const s_columns = b.shared + b.at.s + column * stride;
  F of_k[kRows][kColumnsEach], of_q[kRows][kColumnsEach];
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < kColumnsEach; ++c) of_k[r][c] = of_q[r][c] = zero();
#pragma unroll 2
  for (int j0 = 0; j0 < stride - kVector; j0 += kVector) {
    F k[kRows][kVector], q[kRows][kVector], s[kColumnsEach][kVector];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (kDelta) load_four(k_rows + r * kGridRows * stride + j0, k[r]);
      load_four(q_rows + r * kGridRows * stride + j0, q[r]);
    }
#pragma unroll
    for (int c = 0; c < kColumnsEach; ++c) load_four(s_columns + c * kGridColumns * stride + j0, s[c]);
#pragma unroll
    for (int j = 0; j < kVector; ++j)
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int c = 0; c < kColumnsEach; ++c) {  // contraction.2
          if (kDelta) of_k[r][c] = fma(k[r][j], s[c][j], of_k[r][c]);
          of_q[r][c] = fma(q[r][j], s[c][j], of_q[r][c]);
        }
  }
  __syncthreads();
  float* const to = b.shared + b.at.q;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int t = row + r * kGridRows;
    const F a = kChannels ? set1(1.0f) : load(b.shared + b.at.a + t);
#pragma unroll
    for (int c = 0; c < kColumnsEach; ++c) {
      float* const place = to + (column + c * kGridColumns) * kChunkStride + place_of(t);
      const F k = add(zero(), of_k[r][c]), q = add(zero(), of_q[r][c]);
      if (kDelta) store(place, kChannels ? k : mul(a, k));
      store(place + kSlice * kChunkStride, kChannels ? q : mul(a, q));
    }
  }
  __syncthreads();
}

// Rows of a column that a thread owns: number m is row own + kOwners m.
struct Owned {
  int own, column;
  F k[kOwned], q[kOwned], v[kOwned];
};
// linear_attention.5 and linear_attention.6: row i is done once the updates of all earlier rows are
// in its sum; then its update goes to all later rows of the column, by a shuffle.
template <bool kDelta>
__device__ __forceinline__ void substitute(const Slice& b, const Segment& rows, Owned& o) {
  const int lane = threadIdx.x % 32;
  const float *const w_k = b.shared + b.at.w_k + o.own * kOwned, *const w_q =
                                                                     b.shared + b.at.w_q + o.own * kOwned;
#pragma unroll
  for (int now = 0; now < kOwned; ++now) {
    for (int l = 0; l < kOwners; ++l) {
      const int i = now * kOwners + l;
      if (i >= rows.end) return;
      F u = o.v[now];  // of an earlier call: the update itself
      if (kDelta && i >= rows.begin)
        u = canonicalize(mul(load(b.shared + b.at.beta + now * kOwners + o.own), sub(u, o.k[now])));
      u = {__shfl_sync(0xffffffffu, u.v, l * kWarpColumns + lane % kWarpColumns)};
      if (o.own == l) store(b.shared + b.at.u + i * kUpdateStride + o.column, u);
#pragma unroll
      for (int four = now / kVector; four < kOwned / kVector; ++four) {
        F k[kVector], q[kVector];
        if (kDelta) load_four(w_k + i * kChunkRows + four * kVector, k);
        load_four(w_q + i * kChunkRows + four * kVector, q);
#pragma unroll
        for (int x = 0; x < kVector; ++x) {
          const int m = four * kVector + x;
          if (m < now) continue;
          if (kDelta && (m > now || o.own > l)) o.k[m] = fma(k[x], u, o.k[m]);
          if (m > now || o.own >= l) o.q[m] = fma(q[x], u, o.q[m]);
        }
      }
    }
  }
}

__device__ __forceinline__ Owned owned_rows(const Slice& b, const Segment& rows) {
  const Geometry& g = b.p.g;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Owned o{};
  o.own = lane / kWarpColumns, o.column = warp * kWarpColumns + lane % kWarpColumns;
  const int64_t step = g.value_heads * g.dv;
  const float* const v = b.p.v + (rows.first - rows.begin) * step + b.head * g.dv + b.first + o.column;
#pragma unroll
  for (int m = 0; m < kOwned; ++m) {
    const int t = o.own + kOwners * m;
    o.v[m] = zero();
    if (o.column >= b.columns) continue;
    if (t < rows.begin)
      o.v[m] = load(b.m.u + t * g.dv_padded + b.first + o.column);
    else if (t < rows.end)
      o.v[m] = load(v + t * step);
  }
  return o;
}

// linear_attention.6, and the updates of a chunk that stays open.
__device__ __forceinline__ void store_rows(const Slice& b, const Segment& rows, const Owned& o) {
  const Geometry& g = b.p.g;
  if (o.column >= b.columns) return;
  const int64_t step = g.value_heads * g.dv;
  float* const y = b.p.y + (rows.first - rows.begin) * step + b.head * g.dv + b.first + o.column;
#pragma unroll
  for (int m = 0; m < kOwned; ++m) {
    const int t = o.own + kOwners * m;
    if (t < rows.begin || t >= rows.end) continue;
    store_canonical(y + t * step, mul(o.q[m], set1(g.scale)));
    if (rows.end < kChunkRows)
      store(b.m.u + t * g.dv_padded + b.first + o.column,
            load(b.shared + b.at.u + t * kUpdateStride + o.column));
  }
}

// linear_attention.7. Keys of channels' decays have them already.
template <bool kChannels>
__device__ __forceinline__ void close_chunk_slice(const Slice& b) {
  const int d = static_cast<int>(b.p.g.d), stride = b.at.stride, width = stride - kVector;
  float *const k = b.shared + b.at.k, *const s = b.shared + b.at.s;
  const float *const u = b.shared + b.at.u, *const last = b.shared + b.at.last;
  for (Walk at(width / kVector); at.i < kChunkRows && !kChannels; at.next()) {
    float* const place = k + at.i * stride + at.j * kVector;
    const F decay = load(last + at.i);
    F key[kVector];
    load_four(place, key);
#pragma unroll
    for (int x = 0; x < kVector; ++x)
      if (at.j * kVector + x < d) store_canonical(place + x, mul(key[x], decay));
  }
  __syncthreads();
  constexpr int kAcross = kSlice / kVector;
  for (int tile = threadIdx.x; tile < width / kVector * kAcross; tile += kChunkThreads) {
    const int j = tile / kAcross * kVector, column = tile % kAcross * kVector;
    F sum[kVector][kVector], a[kVector];  // columns by channels
#pragma unroll
    for (int r = 0; r < kVector; ++r)
      a[r] = load(b.shared + (kChannels ? b.at.last_a + j + r : b.at.a + kChunkRows - 1));
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      load_four(s + (column + c) * stride + j, sum[c]);
#pragma unroll
      for (int r = 0; r < kVector; ++r) sum[c][r] = mul(a[r], sum[c][r]);
    }
#pragma unroll 4
    for (int i = 0; i < kChunkRows; ++i) {
      F key[kVector], update[kVector];
      load_four(k + i * stride + j, key);
      load_four(u + i * kUpdateStride + column, update);
#pragma unroll
      for (int c = 0; c < kVector; ++c)
#pragma unroll
        for (int r = 0; r < kVector; ++r)
          sum[c][r] = fma(key[r], update[c], sum[c][r]);  // linear_attention.7
    }
#pragma unroll
    for (int c = 0; c < kVector; ++c)
#pragma unroll
      for (int r = 0; r < kVector; ++r)
        if (j + r < d) store_canonical(s + (column + c) * stride + j + r, sum[c][r]);
  }
}

// The state of the slice; zeros where nothing was computed yet, and after the last channel.
__device__ inline void load_state(const Slice& b, bool is_new) {
  const Geometry& g = b.p.g;
  const int width = b.at.stride - kVector;
  for (int n = threadIdx.x; n < kSlice * width; n += kChunkThreads) {
    const int c = n % kSlice, j = n / kSlice;
    const bool there = !is_new && j < g.d && c < b.columns;
    b.shared[b.at.s + c * b.at.stride + j] = there ? b.m.s[j * g.dv_padded + b.first + c] : 0.0f;
  }
}
__device__ inline void store_state(const Slice& b) {
  const Geometry& g = b.p.g;
  for (int n = threadIdx.x; n < kSlice * g.d; n += kChunkThreads) {
    const int c = n % kSlice, j = n / kSlice;
    if (b.first + c >= g.dv_padded) continue;
    b.m.s[j * g.dv_padded + b.first + c] = c < b.columns ? b.shared[b.at.s + c * b.at.stride + j] : 0.0f;
  }
}

// Blocks are (slice, head, sequence). Keys and logarithms of the chunk that stays open are left to
// append_kernel, because every slice reads those of earlier calls.
template <bool kDelta, bool kChannels>
__global__ void __launch_bounds__(kChunkThreads)
    chunks_kernel(Rows p, const SegmentWeights* weights, float* channels, int64_t first_segment, int segments,
                  int slices) {
  extern __shared__ float4 chunk_shared[];
  trigger_and_wait();
  const Geometry& g = p.g;
  const int64_t unit = blockIdx.x / slices, batch = unit / g.value_heads, head = unit % g.value_heads;
  const int64_t first = int64_t{blockIdx.x} % slices * kSlice;
  const Sequence sequence = p.sequences[batch];
  const Slice b{p,
                head_of(p, sequence, head),
                weights + unit * segments,
                kChannels ? channels + unit * segments * channel_floats(g.d) : nullptr,
                reinterpret_cast<float*>(chunk_shared),
                ChunkLayout(g.d, kChannels),
                batch,
                head,
                first,
                static_cast<int>(num::min_i64(g.dv - first, kSlice))};
  const auto segment = [&](int n) { return segment_of(g, sequence, batch, first_segment + n); };
  const auto is_there = [&](int n) {
    if (n >= segments) return false;
    const Segment rows = segment(n);
    return rows.end > rows.begin;
  };
  if (!is_there(0)) return;
  load_state(b, sequence.past == 0 && first_segment == 0);
  const auto copy_keys = [&](int n) {
    copy_rows<true, kChannels>(b, segment(n), n), copy_factors<kChannels>(b, segment(n), b.weights[n]);
  };
  copy_keys(0);
  copy_rows<false, kChannels>(b, segment(0), 0), copy_weights<kDelta>(b, b.weights[0]);
  for (int n = 0; is_there(n); ++n) {
    const Segment rows = segment(n);
    const bool has_next = is_there(n + 1);
    Owned o = owned_rows(b, rows);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    multiply<kDelta, kChannels>(b);
#pragma unroll
    for (int four = 0; four < kOwned / kVector; ++four) {
      const float* const h = b.shared + b.at.q + o.column * kChunkStride + o.own * kOwned + four * kVector;
      F k[kVector], q[kVector];
      load_four(h, k), load_four(h + kSlice * kChunkStride, q);
#pragma unroll
      for (int x = 0; x < kVector; ++x) o.k[four * kVector + x] = k[x], o.q[four * kVector + x] = q[x];
    }
    __syncthreads();
    if (kChannels && rows.end == kChunkRows) copy_closing(b, n);
    if (has_next) copy_rows<false, kChannels>(b, segment(n + 1), n + 1);
    substitute<kDelta>(b, rows, o);
    __syncthreads();
    if (has_next) copy_weights<kDelta>(b, b.weights[n + 1]);
    store_rows(b, rows, o);
    if (kChannels) {
      commit_copies();
      wait_copies<0>();
      __syncthreads();
    }
    if (rows.end == kChunkRows) close_chunk_slice<kChannels>(b);
    __syncthreads();
    if (has_next) copy_keys(n + 1);
  }
  store_state(b);
}

// Keys and logarithms of decays of the chunk that stays open; a block has a head.
__global__ void __launch_bounds__(kThreads) append_kernel(Rows p) {
  trigger_and_wait();
  const Geometry& g = p.g;
  const int64_t batch = blockIdx.x / g.value_heads, head = blockIdx.x % g.value_heads;
  const Sequence sequence = p.sequences[batch];
  const HeadState m = head_of(p, sequence, head);
  const int64_t end = (sequence.past + g.seq) % kChunkRows, begin = end > g.seq ? end - g.seq : 0;
  const int64_t first = batch * g.seq + g.seq - end;  // of row 0 of the chunk
  for (int64_t at = threadIdx.x; at < (end - begin) * g.d; at += kThreads) {
    const int64_t i = begin + at / g.d, j = at % g.d;
    m.keys[j * kChunkRows + i] = p.k[((first + i) * g.key_heads + head / g.group) * g.d + j];
  }
  for (int64_t j = threadIdx.x; j < g.decays; j += kThreads) {
    double* const log = m.decay + j * kChunkRows;
    for (int64_t i = begin; i < end; ++i)
      log[i] = (i ? log[i - 1] : 0.0) +
               static_cast<double>(p.decay[((first + i) * g.value_heads + head) * g.decays + j]);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
