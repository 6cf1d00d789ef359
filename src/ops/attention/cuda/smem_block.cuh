// Attention of a group of R query rows over one key block, by a thread block. Keys and values are
// loaded into shared memory while the kernels that make the queries may still run. A thread takes
// one key, and then value columns, for all rows.
#pragma once
#include <cuda_pipeline_primitives.h>

#include "ops/attention/cuda/split_kv.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kSmemThreads = kBlock, kSmemWarps = kSmemThreads / kWarp;

// The layout of a thread block's shared memory: offsets in floats. kBoth: it holds keys and values
// at once, and partials and max_sums; else values replace keys.
template <int R, bool kBoth>
struct SmemLayout {
  int64_t keys, values, queries, weights, warp_max, partials, max_sums, all;
  __host__ __device__ explicit SmemLayout(const Geometry& g) : keys(0) {
    const int64_t of_keys = g.d * kBlock, of_values = g.dv_padded * kBlock;
    values = kBoth ? of_keys : 0;
    queries = kBoth || of_keys < of_values ? values + of_values : of_keys;
    weights = queries + g.d * R, warp_max = weights + kBlock * R, partials = warp_max + kSmemWarps * R;
    max_sums = partials + (kBoth ? R * g.dv_padded : 0), all = max_sums + (kBoth ? 2 * R : 0);
  }
};

// A query row and its index in the queries, computed ahead because 64-bit divisions are slow.
struct IndexedRow {
  QueryRow row;
  int64_t index;
};

template <int R, bool kBoth>
struct SmemKvBlock {
  using At = SmemLayout<R, kBoth>;
  HeadCache cache;  // without the call's new keys
  int64_t head, first, base;
  int block, count, cached_keys;  // cached_keys: how many keys of the block were cached before

  // Group `group` of all groups of rows of all heads.
  __device__ SmemKvBlock(const AttentionParams& s, int64_t group, int64_t which) {
    const int64_t groups = ceil_div(s.g.rows, R);
    head = group / groups, first = group % groups * R;
    block = static_cast<int>(which), base = which * kBlock;
    count = static_cast<int>(num::min_i64(R, s.g.rows - first));
    cache = head_cache(s, head);
    cached_keys = static_cast<int>(cache.past <= base ? 0 : num::min_i64(cache.past - base, kBlock));
  }
  __device__ bool exists(const Geometry& g) const { return base < cache.past + g.keys; }

  // Each starts asynchronous copies and commits them as one group.
  __device__ void load_keys_async(const AttentionParams& s, float* memory) const {
    float* const to = memory + At(s.g).keys;
    if (const float* const from = cached_keys ? key_block(s, cache, block) : nullptr)
      for (int i = 4 * threadIdx.x; i < s.g.d * kBlock; i += 4 * kSmemThreads)
        __pipeline_memcpy_async(to + i, from + i, 16);
    __pipeline_commit();
  }
  __device__ void load_values_async(const AttentionParams& s, float* memory) const {
    const float* const from = cached_keys ? value_block(s, cache, block) : nullptr;
    float* const to = memory + At(s.g).values;
    for (int i = 4 * threadIdx.x; i < cached_keys * s.g.dv_padded; i += 4 * kSmemThreads)
      __pipeline_memcpy_async(to + i, from + i, 16);
    __pipeline_commit();
  }
  __device__ void index_rows(const AttentionParams& s, IndexedRow (&rows)[R]) const {
    const int t = threadIdx.x;
    if (t >= R) return;
    const QueryRow row = query_row(s.g, head, first + (t < count ? t : count - 1));
    rows[t] = {row, row_index(s.g, row)};
  }

  // The whole unit, after load_keys_async(), index_rows() and, where kBoth, load_values_async().
  // Stores m_b and l_b of `stored` rows to max_sums, max_sum_step floats apart, and their unscaled
  // results to partials, partial_step floats apart.
  __device__ void run(const AttentionParams& s, float* memory, const IndexedRow (&rows)[R], float* partials,
                      float* max_sums, int64_t partial_step, int64_t max_sum_step, int stored) const {
    const Geometry& g = s.g;
    const At at(g);
    const int64_t past = cache.past;
    float *const values = memory + at.values, *const p = memory + at.weights;
    load_queries(s, rows, memory + at.queries);
    __pipeline_wait_prior(kBoth ? 1 : 0);
    __syncthreads();
    const int64_t begin = base > past ? base - past : 0, end = num::min_i64(base + kBlock - past, g.keys);
    append(s, memory + at.keys, begin, end);
    __syncthreads();

    const QueryRow low_row = rows[0].row, high_row = rows[R - 1].row;
    const VisibleKeys low = attention::visible_keys(g, s.lengths, past, low_row.batch, low_row.i),
                      high = attention::visible_keys(g, s.lengths, past, high_row.batch, high_row.i);
    if (base >= high.high || (base + kBlock <= low.low && base >= g.first)) {
      if (threadIdx.x < stored) max_sums[threadIdx.x * max_sum_step] = -kInf;
      __pipeline_wait_prior(0);
      return;
    }
    const bool plain =
        g.plain_scores && (base >= high.low || base + kBlock <= g.first) && base + kBlock <= low.high;
    F c[R] = {};
    float m[R];
    score_keys(s, memory, at, c);
    const bool hidden = mask_scores(s, rows, plain, memory, at, c, m);
    const bool all = !__syncthreads_or(hidden);
    if (!kBoth) load_values_async(s, memory);
    append_values(s, values, begin, end);
    weigh_keys(memory, at, c, m, max_sums, max_sum_step, stored);
    __pipeline_wait_prior(0);
    __syncthreads();
    sum_weights(p, max_sums, max_sum_step, stored);
    const int last = all ? kBlock : static_cast<int>(num::min_i64(kBlock, high.high - base));
    multiply_values(g, p, values, all, last, partials, partial_step, stored);
  }

 private:
  // The row of new key i in the call's keys and values.
  __device__ __forceinline__ int64_t new_row(const Geometry& g, int64_t i) const {
    return attention::head_row(g, head / g.kv_heads, i, head % g.kv_heads, g.keys, g.kv_heads);
  }

  __device__ __forceinline__ void load_queries(const AttentionParams& s, const IndexedRow (&rows)[R],
                                               float* query) const {
    const int d = static_cast<int>(s.g.d);
    for (int i = threadIdx.x; i < d; i += kSmemThreads)
#pragma unroll
      for (int r = 0; r < R; ++r) query[i * R + r] = s.q[rows[r].index * d + i];
  }

  // attention.2: new keys [begin, end) into shared memory and the cache, new values into the cache.
  __device__ __forceinline__ void append(const AttentionParams& s, float* keys, int64_t begin,
                                         int64_t end) const {
    const Geometry& g = s.g;
    const int d = static_cast<int>(g.d);
    if (begin >= end) return;
    float* const all_keys = key_block(s, cache, block);
    float* const all_values = value_block(s, cache, block);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = new_row(g, i);
      const int slot = static_cast<int>(cache.past + i - base), to = key_slot(slot);
      for (int j = threadIdx.x; j < d; j += kSmemThreads)
        all_keys[j * kBlock + to] = keys[j * kBlock + to] = s.k[from * d + j];
      for (int j = threadIdx.x; j < g.dv; j += kSmemThreads)
        all_values[slot * g.dv_padded + j] = s.v[from * g.dv + j];
    }
  }
  // New values into shared memory, next to those that are loaded from the cache.
  __device__ __forceinline__ void append_values(const AttentionParams& s, float* values, int64_t begin,
                                                int64_t end) const {
    const Geometry& g = s.g;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = new_row(g, i);
      for (int j = threadIdx.x; j < g.dv; j += kSmemThreads)
        values[(cache.past + i - base) * g.dv_padded + j] = s.v[from * g.dv + j];
    }
  }

  // attention.3: c = the chains of this thread's key with the queries.
  __device__ __forceinline__ void score_keys(const AttentionParams& s, const float* memory, const At& at,
                                             F (&c)[R]) const {
    const int t = threadIdx.x, d = static_cast<int>(s.g.d);
    const float *const query = memory + at.queries, *const keys = memory + at.keys;
    F a[R];
#pragma unroll 16
    for (int i = 0; i < d; ++i) {
      load_rows<R>(query + i * R, a);
      const F key = load(keys + i * kBlock + t);
#pragma unroll
      for (int r = 0; r < R; ++r) c[r] = fma(a[r], key, c[r]);  // contraction.2
    }
  }
  // Chains -> scores; m = the warp's maxima, which go to shared memory as well. The weights become
  // 0, or -1 where the key is hidden. Returns whether this thread's key is hidden from a row.
  __device__ __forceinline__ bool mask_scores(const AttentionParams& s, const IndexedRow (&rows)[R],
                                              bool plain, float* memory, const At& at, F (&c)[R],
                                              float (&m)[R]) const {
    const int t = threadIdx.x, lane = t % kWarp, warp = t / kWarp;
    float *const p = memory + at.weights, *const warp_max = memory + at.warp_max;
    bool hidden = false;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      c[r] = mul(add(zero(), c[r]), set1(s.g.scale));  // attention.3: the one chain joins +0 (contraction.3)
      bool visible = true;
      if (!plain) {
        const QueryRow& row = rows[r].row;
        const ScoreMask of(s, attention::visible_keys(s.g, s.lengths, cache.past, row.batch, row.i), row,
                           cache.past, block);
        visible = of.score(s, block, key_of_slot(t), c[r]);
      }
      if (!visible) c[r] = set1(-kInf), hidden = true;
      m[r] = c[r].v;
#pragma unroll
      for (int step = kWarp / 2; step; step /= 2)
        m[r] = max_nan(m[r], __shfl_xor_sync(kFullWarp, m[r], step));
      if (lane == 0) warp_max[warp * R + r] = m[r];
      p[key_of_slot(t) * R + r] = visible ? 0.0f : -1.0f;
    }
    return hidden;
  }
  // attention.5 and attention.6: the maxima of the block, and the weights of this thread's key.
  __device__ __forceinline__ void weigh_keys(float* memory, const At& at, const F (&c)[R], float (&m)[R],
                                             float* max_sums, int64_t max_sum_step, int stored) const {
    const int t = threadIdx.x;
    float *const p = memory + at.weights, *const warp_max = memory + at.warp_max;
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int w = 0; w < kSmemWarps; ++w) m[r] = max_nan(m[r], warp_max[w * R + r]);
      float& mine = p[key_of_slot(t) * R + r];
      if (mine == 0) mine = exp_stored(sub(c[r], set1(m[r]))).v;  // attention.6; a hidden key's is +0
      if (t == 0 && r < stored) max_sums[r * max_sum_step] = m[r];
    }
  }
  // attention.7: the sums of the block's weights, a warp for each row.
  __device__ __forceinline__ void sum_weights(const float* p, float* max_sums, int64_t max_sum_step,
                                              int stored) const {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    for (int r = warp; r < R; r += kSmemWarps) {
      float x[kLaneKeys];
#pragma unroll
      for (int i = 0; i < kLaneKeys; ++i) {
        const float w = p[key_of_slot(kLaneKeys * lane + i) * R + r];
        x[i] = w < 0 ? 0.0f : w;
      }
      const float l = num::INVAR_ISA_NS::block_sum_runs(x);
      if (lane == 0 && r < stored) max_sums[r * max_sum_step + 1] = l;
    }
  }
  // attention.8: weights times values of the first `last` keys. all: no key is hidden.
  __device__ __forceinline__ void multiply_values(const Geometry& g, const float* p, const float* values,
                                                  bool all, int last, float* partials, int64_t partial_step,
                                                  int stored) const {
    for (int column = threadIdx.x; column < g.dv; column += kSmemThreads) {
      F o[R] = {}, a[R];
      auto sum = [&]<bool kMasked>(std::bool_constant<kMasked>) {
#pragma unroll 16
        for (int j = 0; j < last; ++j) {
          load_rows<R>(p + j * R, a);
          const F value = load(values + j * g.dv_padded + column);
#pragma unroll
          for (int r = 0; r < R; ++r) {
            const F next = fma(a[r], value, o[r]);  // contraction.2, attention.8
            o[r] = kMasked ? select(lt(a[r], zero()), o[r], next) : next;
          }
        }
      };
      all ? sum(std::false_type{}) : sum(std::true_type{});
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (r < stored) store(partials + r * partial_step + column, o[r]);
    }
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
