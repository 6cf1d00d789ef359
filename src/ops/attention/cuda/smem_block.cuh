// A key block of a run of R rows as a thread block has it: its keys and its values as a whole in shared memory, on their way there
// before the kernels that made the queries have ended. A thread has a key and then a value column of all rows.
#pragma once
#include <cuda_pipeline_primitives.h>

#include "ops/attention/cuda/split_kv.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kWholeThreads = kBlock, kWholeWarps = kWholeThreads / kWarp;

// What a thread block keeps in shared memory, in floats. kBoth: keys and values at once, and parts and marks; else values where
// keys were.
template <int R, bool kBoth>
struct Room {
  int64_t keys, values, queries, weights, tops, parts, marks, all;
  __host__ __device__ explicit Room(const Geometry& g) : keys(0) {
    const int64_t of_keys = g.d * kBlock, of_values = g.dv_padded * kBlock;
    values = kBoth ? of_keys : 0;
    queries = kBoth || of_keys < of_values ? values + of_values : of_keys;
    weights = queries + g.d * R, tops = weights + kBlock * R, parts = tops + kWholeWarps * R;
    marks = parts + (kBoth ? R * g.dv_padded : 0), all = marks + (kBoth ? 2 * R : 0);
  }
};

// A row and its place among the queries: divisions of 64 bits, which nobody is to wait for.
struct PlacedRow {
  Row row;
  int64_t place;
};

template <int R, bool kBoth>
struct WholeBlock {
  using At = Room<R, kBoth>;
  Memory found;  // what was before this step
  int64_t head, first, base;
  int block, count, old;  // old: keys that were there before this step

  // Run `run` of all runs of all heads.
  __device__ WholeBlock(const Step& s, int64_t run, int64_t which) {
    const int64_t runs = ceil_div(s.g.rows, R);
    head = run / runs, first = run % runs * R;
    block = static_cast<int>(which), base = which * kBlock;
    count = static_cast<int>(num::min_i64(R, s.g.rows - first));
    found = memory_of(s, head);
    old = static_cast<int>(found.past <= base ? 0 : num::min_i64(found.past - base, kBlock));
  }
  __device__ bool exists(const Geometry& g) const { return base < found.past + g.keys; }

  // Each asks for copies as one group.
  __device__ void ask_keys(const Step& s, float* memory) const {
    const float* from = keys_of(s, found, block);
    float* const to = memory + At(s.g).keys;
    if (old)
      for (int i = 4 * threadIdx.x; i < s.g.d * kBlock; i += 4 * kWholeThreads)
        __pipeline_memcpy_async(to + i, from + i, 16);
    __pipeline_commit();
  }
  __device__ void ask_values(const Step& s, float* memory) const {
    const float* from = values_of(s, found, block);
    float* const to = memory + At(s.g).values;
    for (int i = 4 * threadIdx.x; i < old * s.g.dv_padded; i += 4 * kWholeThreads)
      __pipeline_memcpy_async(to + i, from + i, 16);
    __pipeline_commit();
  }
  __device__ void place_rows(const Step& s, PlacedRow (&rows)[R]) const {
    const int t = threadIdx.x;
    if (t >= R) return;
    const Row row = row_of(s.g, head, first + (t < count ? t : count - 1));
    rows[t] = {row, place(s.g, row)};
  }

  // After keys and, where kBoth, values were asked for, and rows are placed. m_b and l_b -> marks, results -> parts of `stored`
  // rows, each step floats apart.
  __device__ void run(const Step& s, float* memory, const PlacedRow (&rows)[R], float* parts, float* marks,
                      int64_t part_step, int64_t mark_step, int stored) const {
    const Geometry& g = s.g;
    const At at(g);
    const int t = threadIdx.x, lane = t % kWarp, warp = t / kWarp, d = static_cast<int>(g.d);
    const int64_t past = found.past, batch = head / g.kv_heads, key_head = head % g.kv_heads;
    float *const keys = memory + at.keys, *const values = memory + at.values;
    float *const query = memory + at.queries, *const p = memory + at.weights, *const tops = memory + at.tops;
    for (int i = t; i < d; i += kWholeThreads)
#pragma unroll
      for (int r = 0; r < R; ++r) query[i * R + r] = s.q[rows[r].place * d + i];
    __pipeline_wait_prior(kBoth ? 1 : 0);
    __syncthreads();
    // attention.2
    float* const all_keys = keys_of(s, found, block);
    float* const all_values = values_of(s, found, block);
    const int64_t begin = base > past ? base - past : 0, end = num::min_i64(base + kBlock - past, g.keys);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = attention::head_row(g, batch, i, key_head, g.keys, g.kv_heads);
      const int slot = static_cast<int>(past + i - base), to = place_of_key(slot);
      for (int j = t; j < d; j += kWholeThreads)
        all_keys[j * kBlock + to] = keys[j * kBlock + to] = s.k[from * d + j];
      for (int j = t; j < g.dv; j += kWholeThreads) all_values[slot * g.dv_padded + j] = s.v[from * g.dv + j];
    }
    __syncthreads();

    const Row low_row = rows[0].row, high_row = rows[R - 1].row;
    const Sight low = attention::sight(g, s.lengths, past, low_row.batch, low_row.i),
                high = attention::sight(g, s.lengths, past, high_row.batch, high_row.i);
    if (base >= high.high || (base + kBlock <= low.low && base >= g.first)) {
      if (t < stored) marks[t * mark_step] = -kInf;
      __pipeline_wait_prior(0);
      return;
    }
    const bool plain = !g.mask && g.softcap == 0 && (base >= high.low || base + kBlock <= g.first) &&
                       base + kBlock <= low.high;
    F c[R] = {}, a[R];
#pragma unroll 16
    for (int i = 0; i < d; ++i) {
      load_rows<R>(query + i * R, a);
      const F key = load(keys + i * kBlock + t);
#pragma unroll
      for (int r = 0; r < R; ++r) c[r] = fma(a[r], key, c[r]);  // contraction.2
    }
    bool hidden = false;
    float m[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      c[r] = mul(add(zero(), c[r]), set1(g.scale));  // attention.3: the one chain joins +0 (contraction.3)
      bool seen = true;
      if (!plain) {
        const Row& row = rows[r].row;
        const Scores of(s, attention::sight(g, s.lengths, past, row.batch, row.i), row, block);
        seen = of.score(s, block, key_at(t), c[r]);
      }
      if (!seen) c[r] = set1(-kInf), hidden = true;
      m[r] = c[r].v;
#pragma unroll
      for (int step = kWarp / 2; step; step /= 2) m[r] = most(m[r], __shfl_xor_sync(kAllLanes, m[r], step));
      if (lane == 0) tops[warp * R + r] = m[r];
      p[key_at(t) * R + r] = seen ? 0.0f : -1.0f;
    }
    const bool all = !__syncthreads_or(hidden);
    if (!kBoth) ask_values(s, memory);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = attention::head_row(g, batch, i, key_head, g.keys, g.kv_heads);
      for (int j = t; j < g.dv; j += kWholeThreads)
        values[(past + i - base) * g.dv_padded + j] = s.v[from * g.dv + j];
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int w = 0; w < kWholeWarps; ++w) m[r] = most(m[r], tops[w * R + r]);
      float& mine = p[key_at(t) * R + r];
      if (mine == 0) mine = exp_stored(sub(c[r], set1(m[r]))).v;  // attention.6; a hidden key's is +0
      if (t == 0 && r < stored) marks[r * mark_step] = m[r];
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int r = warp; r < R; r += kWholeWarps) {
      float x[kLaneKeys];
#pragma unroll
      for (int i = 0; i < kLaneKeys; ++i) {
        const float w = p[key_at(kLaneKeys * lane + i) * R + r];
        x[i] = w < 0 ? 0.0f : w;
      }
      const float l = num::INVAR_ISA_NS::block_sum_runs(x);
      if (lane == 0 && r < stored) marks[r * mark_step + 1] = l;
    }
    const int last = all ? kBlock : static_cast<int>(num::min_i64(kBlock, high.high - base));
    for (int column = t; column < g.dv; column += kWholeThreads) {
      F o[R] = {};
      auto sum = [&]<bool kSeen>(std::bool_constant<kSeen>) {
#pragma unroll 16
        for (int j = 0; j < last; ++j) {
          load_rows<R>(p + j * R, a);
          const F value = load(values + j * g.dv_padded + column);
#pragma unroll
          for (int r = 0; r < R; ++r) {
            const F next = fma(a[r], value, o[r]);  // contraction.2, attention.8
            o[r] = kSeen ? select(lt(a[r], zero()), o[r], next) : next;
          }
        }
      };
      all ? sum(std::false_type{}) : sum(std::true_type{});
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (r < stored) store(parts + r * part_step + column, o[r]);
    }
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
