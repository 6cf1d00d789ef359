// Linear attention of few rows with a decay of each head: a block has a slice of the columns of a
// head of a sequence, and copies what the memory holds of it at once.
#pragma once
#include "kernels/cuda/async_copy.cuh"
#include "ops/linear_attention/cuda/common.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kStepColumns = 32;

// Shared memory of a block, in floats. Rows of keys are channels, as in the state.
struct StepLayout {
  int row, s, keys, u, x, w, h, all;  // x: k and q of the row, `row` floats each; w, h: of k, of q
  __host__ __device__ explicit StepLayout(int64_t d)
      : row(static_cast<int>((d + 3) / 4 * 4)),
        s(0),
        keys(s + static_cast<int>(d) * kStepColumns),
        u(keys + static_cast<int>(d) * kChunkRows),
        x(u + kChunkRows * kStepColumns),
        w(x + 2 * row),
        h(w + 2 * kChunkRows),
        all(h + 2 * kStepColumns) {}
  size_t bytes() const { return static_cast<size_t>(all) * sizeof(float); }
};

// What the memory holds before row t of a chunk; columns after the last are zeros.
__device__ inline void copy_memory(const Geometry& g, const HeadState& m, float* shared, const StepLayout& at,
                                   int64_t first, bool is_new, int t) {
  const int d = static_cast<int>(g.d);
  constexpr int kAcross = kStepColumns / 4, kKeysAcross = kChunkRows / 4;
  const auto inside = [&](int c) { return first + c < g.dv_padded; };  // a multiple of 16
  for (int n = threadIdx.x; n < d * kAcross; n += kThreads) {
    const int j = n / kAcross, c = n % kAcross * 4;
    const bool there = !is_new && inside(c);
    copy_async_16(shared + at.s + j * kStepColumns + c, there ? m.s + j * g.dv_padded + first + c : m.s,
                  there);
  }
  for (int n = threadIdx.x; n < t * kAcross; n += kThreads) {
    const int i = n / kAcross, c = n % kAcross * 4;
    copy_async_16(shared + at.u + i * kStepColumns + c, inside(c) ? m.u + i * g.dv_padded + first + c : m.u,
                  inside(c));
  }
  for (int n = threadIdx.x; n < d * kKeysAcross; n += kThreads)
    if (const int j = n / kKeysAcross, i = n % kKeysAcross * 4; i < t)
      copy_async_16(shared + at.keys + j * kChunkRows + i, m.keys + j * kChunkRows + i, true);
  commit_copies();
}

// A chain of d terms (contraction.2): what = term j of the one operand times x[j] of the other.
template <class Of>
__device__ __forceinline__ F chain(int d, const float* x, const Of& of) {
  F sum = zero();
  int j = 0;
#pragma unroll 4
  for (; j + 4 <= d; j += 4) {
    const float4 four = *reinterpret_cast<const float4*>(x + j);
    sum = fma({four.x}, load(of(j)), sum);      // contraction.2
    sum = fma({four.y}, load(of(j + 1)), sum);  // contraction.2
    sum = fma({four.z}, load(of(j + 2)), sum);  // contraction.2
    sum = fma({four.w}, load(of(j + 3)), sum);  // contraction.2
  }
  for (; j < d; ++j) sum = fma(load(x + j), load(of(j)), sum);  // contraction.2
  return add(zero(), sum);
}

// linear_attention.7 of a slice, in shared memory.
__device__ inline void close_step_slice(const Geometry& g, float* shared, const StepLayout& at,
                                        const double* log) {
  const int d = static_cast<int>(g.d);
  constexpr int kLast = kChunkRows - 1;
  for (int n = threadIdx.x; n < d * kChunkRows; n += kThreads) {
    float* const key = shared + at.keys + n;
    store_canonical(key, mul(load(key), stored_exp(log[kLast] - log[n % kChunkRows])));
  }
  __syncthreads();
  const F a = stored_exp(log[kLast]);
  for (int n = threadIdx.x; n < d * kStepColumns; n += kThreads) {
    const int j = n / kStepColumns, c = n % kStepColumns;
    F sum = mul(a, load(shared + at.s + n));
#pragma unroll 8
    for (int i = 0; i < kChunkRows; ++i) {
      const F key = load(shared + at.keys + j * kChunkRows + i);
      sum = fma(key, load(shared + at.u + i * kStepColumns + c), sum);  // linear_attention.7
    }
    store_canonical(shared + at.s + n, sum);
  }
}

// Blocks are (slice, head, sequence). One row appends its key here; those of several rows are left
// to append_kernel, because other slices may still read the chunk that they replace.
__global__ void __launch_bounds__(kThreads) steps_kernel(Rows p, int slices) {
  extern __shared__ float4 step_shared[];
  __shared__ double log[kChunkRows];
  trigger_next_grid();
  const Geometry& g = p.g;
  float* const shared = reinterpret_cast<float*>(step_shared);
  const StepLayout at(g.d);
  const int d = static_cast<int>(g.d), tid = static_cast<int>(threadIdx.x);
  const int64_t unit = blockIdx.x / slices, batch = unit / g.value_heads, head = unit % g.value_heads;
  const int64_t first = int64_t{blockIdx.x} % slices * kStepColumns;
  const int columns = static_cast<int>(num::min_i64(g.dv - first, kStepColumns));
  const Sequence sequence = p.sequences[batch];
  const HeadState m = head_of(p, sequence, head);
  int t = static_cast<int>(sequence.past % kChunkRows);
  bool has_changed = sequence.past == 0;
  copy_memory(g, m, shared, at, first, sequence.past == 0, t);
  if (tid < t) log[tid] = m.decay[tid];
  wait_for_previous_grid();  // the state is of earlier calls, which have ended
  wait_copies<0>();
  __syncthreads();
  for (int64_t i = 0; i < g.seq; ++i) {
    const int64_t row = batch * g.seq + i, from = (row * g.key_heads + head / g.group) * g.d;
    for (int n = tid; n < 2 * d; n += kThreads) {
      const int j = n < d ? n : n - d;
      const float x = (n < d ? p.k : p.q)[from + j];
      shared[at.x + (n < d ? 0 : at.row) + j] = x;
      if (n >= d) continue;
      shared[at.keys + j * kChunkRows + t] = x;
      if (first == 0 && g.seq == 1) m.keys[j * kChunkRows + t] = x;
    }
    if (tid == 0) {
      log[t] = (t ? log[t - 1] : 0.0) + static_cast<double>(p.decay[row * g.value_heads + head]);
      if (first == 0 && g.seq == 1) m.decay[t] = log[t];
    }
    __syncthreads();
    const int which = tid / kChunkRows, of = tid % kChunkRows;  // of linear_attention.4
    const float* const x = shared + at.x + which % 2 * at.row;
    if (which < 2) {
      if (of <= t) {
        const F sum = chain(d, x, [&](int j) { return shared + at.keys + j * kChunkRows + of; });
        store_canonical(shared + at.w + which * kChunkRows + of, mul(sum, stored_exp(log[t] - log[of])));
      }
    } else if (of < kStepColumns) {
      const F sum = chain(d, x, [&](int j) { return shared + at.s + j * kStepColumns + of; });
      store(shared + at.h + which % 2 * kStepColumns + of, mul(stored_exp(log[t]), sum));
    }
    __syncthreads();
    if (tid < columns) {
      const int64_t to = (row * g.value_heads + head) * g.dv + first + tid;
      F u = load(p.v + to), k = load(shared + at.h + tid), q = load(shared + at.h + kStepColumns + tid);
      const float *const w = shared + at.w, *const updates = shared + at.u + tid;
#pragma unroll 8
      for (int n = 0; n < t; ++n) {
        const F update = load(updates + n * kStepColumns);
        k = fma(load(w + n), update, k);               // linear_attention.5
        q = fma(load(w + kChunkRows + n), update, q);  // linear_attention.6
      }
      if (p.beta) u = canonicalize(mul(load(p.beta + row * g.value_heads + head), sub(u, k)));
      store(shared + at.u + t * kStepColumns + tid, u);
      store(m.u + t * g.dv_padded + first + tid, u);
      q = fma(load(w + kChunkRows + t), u, q);  // linear_attention.6
      store_canonical(p.y + to, mul(q, set1(g.scale)));
    }
    __syncthreads();
    if (++t < kChunkRows) continue;
    close_step_slice(g, shared, at, log);
    has_changed = true, t = 0;
    __syncthreads();
  }
  if (!has_changed) return;
  for (int n = tid; n < d * kStepColumns; n += kThreads)
    if (const int j = n / kStepColumns, c = n % kStepColumns; first + c < g.dv_padded)
      m.s[j * g.dv_padded + first + c] = c < columns ? shared[at.s + n] : 0.0f;
}

}  // namespace
}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
