// Linear attention row by row, of any sizes: a block has a head of a sequence.
#pragma once
#include "ops/linear_attention/cuda/common.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kClosedRows = 8;  // channels that a thread closes together

// What a block keeps of the row that it computes, in floats from the start of its shared memory:
// rows k and q as they come, and as the state is contracted with them; their weights; the products
// with the state.
struct SharedRow {
  float *raw, *scaled, *w, *h, *keys;
  __device__ SharedRow(float* at, const Geometry& g)
      : raw(at), scaled(raw + 2 * g.d), w(scaled + 2 * g.d), h(w + 2 * kChunkRows), keys(h + 2 * g.dv) {}
  // Whether the block has m of linear_attention.4, a row of d + 1 floats for each row of the chunk.
  __host__ __device__ static bool has_keys(const Geometry& g) { return g.decays > 1 && g.d <= 128; }
  static size_t bytes(const Geometry& g) {
    const int64_t keys = has_keys(g) ? kChunkRows * (g.d + 1) : 0;
    return static_cast<size_t>(4 * g.d + 2 * kChunkRows + 2 * g.dv + keys) * sizeof(float);
  }
};

__device__ inline F decay_since(const double* logs, int64_t t, int64_t i) {
  return stored_exp(logs[t] - logs[i]);
}

template <bool kChannels>
__device__ void append_row(const Rows& p, const HeadState& m, const SharedRow& row, int64_t t, int64_t at,
                           int64_t head) {
  const int64_t d = p.g.d, from = (at * p.g.key_heads + head / p.g.group) * d;
  const float* const g = p.decay + (at * p.g.value_heads + head) * p.g.decays;
  for (int64_t j = threadIdx.x; j < d; j += kThreads) {
    const float k = p.k[from + j], q = p.q[from + j];
    m.keys[j * kChunkRows + t] = k;
    row.raw[j] = k, row.raw[d + j] = q;
    if (!kChannels && j) continue;
    double* const log = m.decay + j * kChunkRows + t;
    *log = (t ? log[-1] : 0.0) + static_cast<double>(g[j]);
    if (!kChannels) continue;
    const F a = stored_exp(*log);
    store_canonical(row.scaled + j, mul(a, set1(k)));  // linear_attention.4
    store_canonical(row.scaled + d + j, mul(a, set1(q)));
  }
}

// m of linear_attention.4 for row t: all threads share its exponentials.
__device__ inline void decay_keys(const Geometry& g, const HeadState& m, const SharedRow& row, int64_t t) {
  for (int64_t at = threadIdx.x; at < g.d * kChunkRows; at += kThreads) {
    const int64_t i = at % kChunkRows, j = at / kChunkRows;
    if (i <= t)
      store_canonical(row.keys + i * (g.d + 1) + j,
                      mul(load(m.keys + at), decay_since(m.decay + j * kChunkRows, t, i)));
  }
}

// linear_attention.4: w_k(t, i) and w_q(t, i).
template <bool kChannels>
__device__ void weigh(const Geometry& g, const HeadState& m, const SharedRow& row, int64_t t, int64_t i) {
  F w[2];
  const bool has_keys = kChannels && SharedRow::has_keys(g);
  num::INVAR_ISA_NS::contract(
      g.d,
      [&](int64_t begin, int64_t end, F(&c)[2]) {
        c[0] = c[1] = zero();
#pragma unroll 8
        for (int64_t j = begin; j < end; ++j) {
          F key = load(has_keys ? row.keys + i * (g.d + 1) + j : m.keys + j * kChunkRows + i);
          if (kChannels && !has_keys)
            key = canonicalize(mul(key, decay_since(m.decay + j * kChunkRows, t, i)));
          c[0] = fma(key, load(row.raw + j), c[0]);        // contraction.2
          c[1] = fma(key, load(row.raw + g.d + j), c[1]);  // contraction.2
        }
      },
      w);
  const F d = kChannels ? set1(1.0f) : decay_since(m.decay, t, i);
#pragma unroll
  for (int x = 0; x < 2; ++x) store_canonical(row.w + x * kChunkRows + i, kChannels ? w[x] : mul(w[x], d));
}
// linear_attention.4: h_k(t) and h_q(t) of a column.
template <bool kChannels>
__device__ void from_state(const Geometry& g, const HeadState& m, const SharedRow& row, int64_t t,
                           int64_t c) {
  const float* const x = kChannels ? row.scaled : row.raw;
  F h[2];
  num::INVAR_ISA_NS::contract(
      g.d,
      [&](int64_t begin, int64_t end, F(&sum)[2]) {
        sum[0] = sum[1] = zero();
#pragma unroll 8
        for (int64_t j = begin; j < end; ++j) {
          const F s = load(m.s + j * g.dv_padded + c);
          sum[0] = fma(load(x + j), s, sum[0]);        // contraction.2
          sum[1] = fma(load(x + g.d + j), s, sum[1]);  // contraction.2
        }
      },
      h);
  const F a = kChannels ? set1(1.0f) : stored_exp(m.decay[t]);
#pragma unroll
  for (int i = 0; i < 2; ++i) store(row.h + i * g.dv + c, kChannels ? h[i] : mul(a, h[i]));
}

// linear_attention.5 and linear_attention.6 of a column.
__device__ inline void finish_column(const Rows& p, const HeadState& m, const SharedRow& row, int64_t t,
                                     int64_t at, int64_t head, int64_t c) {
  const Geometry& g = p.g;
  const int64_t to = (at * g.value_heads + head) * g.dv + c;
  F k = load(row.h + c), q = load(row.h + g.dv + c);
#pragma unroll 8
  for (int64_t i = 0; i < t; ++i) {
    const F u = load(m.u + i * g.dv_padded + c);
    k = fma(load(row.w + i), u, k);               // linear_attention.5
    q = fma(load(row.w + kChunkRows + i), u, q);  // linear_attention.6
  }
  F u = load(p.v + to);
  if (p.beta) u = canonicalize(mul(load(p.beta + at * g.value_heads + head), sub(u, k)));
  store(m.u + t * g.dv_padded + c, u);
  q = fma(load(row.w + kChunkRows + t), u, q);  // linear_attention.6
  store_canonical(p.y + to, mul(q, set1(g.scale)));
}

// linear_attention.7
template <bool kChannels>
__device__ void close_chunk(const Geometry& g, const HeadState& m) {
  constexpr int64_t kLast = kChunkRows - 1;
  for (int64_t at = threadIdx.x; at < g.d * kChunkRows; at += kThreads) {
    const double* const logs = m.decay + (kChannels ? at / kChunkRows * kChunkRows : 0);
    store_canonical(m.keys + at, mul(load(m.keys + at), decay_since(logs, kLast, at % kChunkRows)));
  }
  __syncthreads();
  const int64_t strips = ceil_div(g.d, kClosedRows);
  for (int64_t at = threadIdx.x; at < strips * g.dv; at += kThreads) {
    const int64_t c = at % g.dv, first = at / g.dv * kClosedRows;
    F sum[kClosedRows];
#pragma unroll
    for (int r = 0; r < kClosedRows; ++r) {
      const int64_t j = num::min_i64(first + r, g.d - 1);
      sum[r] =
          mul(stored_exp(m.decay[(kChannels ? j : 0) * kChunkRows + kLast]), load(m.s + j * g.dv_padded + c));
    }
#pragma unroll 4
    for (int64_t i = 0; i < kChunkRows; ++i) {
      const F u = load(m.u + i * g.dv_padded + c);
#pragma unroll
      for (int r = 0; r < kClosedRows; ++r) {
        const int64_t j = num::min_i64(first + r, g.d - 1);
        sum[r] = fma(load(m.keys + j * kChunkRows + i), u, sum[r]);  // linear_attention.7
      }
    }
#pragma unroll
    for (int r = 0; r < kClosedRows; ++r)
      if (first + r < g.d) store_canonical(m.s + (first + r) * g.dv_padded + c, sum[r]);
  }
}

template <bool kChannels>
__global__ void __launch_bounds__(kThreads) rows_kernel(Rows p) {
  extern __shared__ float shared[];
  trigger_and_wait();
  const Geometry& g = p.g;
  const int64_t batch = blockIdx.x / g.value_heads, head = blockIdx.x % g.value_heads;
  const Sequence sequence = p.sequences[batch];
  const HeadState m = linear_attention::head_state(g, p.state + sequence.slot * p.slot_bytes, head);
  const SharedRow row(shared, g);
  if (sequence.past == 0)
    for (int64_t i = threadIdx.x; i < g.d * g.dv_padded; i += kThreads) m.s[i] = 0;
  for (int64_t i = 0; i < g.seq; ++i) {
    const int64_t t = (sequence.past + i) % kChunkRows, at = batch * g.seq + i;
    append_row<kChannels>(p, m, row, t, at, head);
    __syncthreads();
    if (kChannels && SharedRow::has_keys(g)) {
      decay_keys(g, m, row, t);
      __syncthreads();
    }
    // Weights are of the first warps, columns of all others.
    for (int64_t work = threadIdx.x; work < kChunkRows + g.dv; work += kThreads)
      if (work >= kChunkRows)
        from_state<kChannels>(g, m, row, t, work - kChunkRows);
      else if (work <= t)
        weigh<kChannels>(g, m, row, t, work);
    __syncthreads();
    for (int64_t c = threadIdx.x; c < g.dv; c += kThreads) finish_column(p, m, row, t, at, head, c);
    __syncthreads();
    if (t + 1 == kChunkRows) {
      close_chunk<kChannels>(g, m);
      __syncthreads();
    }
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
