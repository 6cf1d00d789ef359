// Few rows of a key head that see few blocks: a cluster of thread blocks has them, one of its thread blocks each key block,
// which is on its way to shared memory as a whole before the kernels that made the queries have ended. A thread has a key and
// then a value column of all rows; in the end the cluster folds what its thread blocks made. From compute capability 9.0 on.
#pragma once
#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include "ops/attention/split.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kNearThreads = kBlock, kNearWarps = kNearThreads / kWarp;
constexpr int kNearBlocks = 8;  // of a cluster, wherever there are any

// What a thread block keeps in shared memory, in floats.
template <int R>
struct Near {
  int64_t keys, values, queries, weights, parts, marks, all;
  __host__ __device__ explicit Near(const Geometry& g) : keys(0) {
    values = g.d * kBlock, queries = values + g.dv_padded * kBlock, weights = queries + g.d * R,
    parts = weights + kBlock * R, marks = parts + R * g.dv_padded, all = marks + 2 * R + kNearWarps * R;
  }
};

// A row and its place among the queries: divisions of 64 bits, which nobody is to wait for.
struct NearRow {
  Row row;
  int64_t place;
};

// Rows `count` of R of a cluster's run: their parts of all blocks, which lie in the thread blocks' shared memories
// (attention.9, attention.17, attention.10). A warp has 32 columns of a row; lane b what is to be known of block b.
template <int R, class Cluster>
__device__ void fold_near(const Step& s, const Cluster& cluster, float* memory, const Near<R>& at,
                          const NearRow (&rows)[R], int count, int blocks) {
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, chunks = static_cast<int>(ceil_div(g.dv, kWarp));
  const int warps = static_cast<int>(cluster.num_blocks()) * kNearWarps;
  for (int unit = static_cast<int>(cluster.block_rank()) * kNearWarps + threadIdx.x / kWarp;
       unit < count * chunks; unit += warps) {
    const int r = unit / chunks, column = unit % chunks * kWarp + lane;
    float mb = -kInf, lb = 0;
    if (lane < blocks) {
      const float* mark = cluster.map_shared_rank(memory + at.marks, lane) + 2 * r;
      mb = mark[0], lb = mark[1];
    }
    float part[kNearBlocks];
#pragma unroll
    for (int b = 0; b < kNearBlocks; ++b)
      part[b] = b < blocks && column < g.dv
                    ? cluster.map_shared_rank(memory + at.parts, b)[r * g.dv_padded + column]
                    : 0.0f;
    float upto = mb;
#pragma unroll
    for (int step = 1; step < kNearBlocks; step *= 2) {
      const float before = __shfl_up_sync(kAllLanes, upto, step);
      if (lane >= step) upto = most(upto, before);
    }
    const float before = __shfl_up_sync(kAllLanes, upto, 1);
    const float by = factor(set1(mb), set1(lane ? before : -kInf));
    Folded all;
    all.m = set1(__shfl_sync(kAllLanes, upto, kNearBlocks - 1));
    F o = zero();
#pragma unroll
    for (int b = 0; b < kNearBlocks; ++b) {
      const float f = __shfl_sync(kAllLanes, by, b), l = __shfl_sync(kAllLanes, lb, b);
      if (b < blocks) all.l = fold(f, all.l, set1(l)), o = fold(f, o, set1(part[b]));
    }
    if (s.sinks) o = fold(all.join(set1(s.sinks[rows[r].row.head]), set1(1.0f)), o, zero());
    if (column < g.dv) store(s.y + rows[r].place * g.dv + column, result(o, all.m, all.l));
  }
}

// Clusters: runs of R rows of key heads.
template <int R>
__global__ void __launch_bounds__(kNearThreads) near_kernel(const __grid_constant__ Step s) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ float4 room[];
  __shared__ NearRow rows[R];
  float* const memory = reinterpret_cast<float*>(room);
  const auto cluster = cooperative_groups::this_cluster();
  const Geometry& g = s.g;
  const Near<R> at(g);
  const int t = threadIdx.x, lane = t % kWarp, warp = t / kWarp, d = static_cast<int>(g.d);
  const int block = static_cast<int>(cluster.block_rank());
  const int64_t unit = blockIdx.x / cluster.num_blocks(), runs = ceil_div(g.rows, R);
  const int64_t first = unit % runs * R, head = unit / runs;
  const int64_t batch = head / g.kv_heads, key_head = head % g.kv_heads;
  const int count = static_cast<int>(num::min_i64(R, g.rows - first));
  // What was before this step: the sequence's position, and its keys and values up to it.
  const Memory found = memory_of(s, head);
  const int64_t past = found.past, base = int64_t{block} * kBlock;
  const int blocks = static_cast<int>(ceil_div(past + g.keys, kBlock));
  float *const keys = memory + at.keys, *const values = memory + at.values;
  float* const all_keys = keys_of(s, found, block);
  float* const all_values = values_of(s, found, block);
  release_next();
  const int old = static_cast<int>(past <= base ? 0 : num::min_i64(past - base, kBlock));
  if (old) {
    for (int i = 4 * t; i < d * kBlock; i += 4 * kNearThreads)
      __pipeline_memcpy_async(keys + i, all_keys + i, 16);
    __pipeline_commit();
    for (int i = 4 * t; i < old * g.dv_padded; i += 4 * kNearThreads)
      __pipeline_memcpy_async(values + i, all_values + i, 16);
    __pipeline_commit();
  }
  if (t < R) {
    const Row row = row_of(g, head, first + (t < count ? t : count - 1));
    rows[t] = {row, place(g, row)};
  }
  __syncthreads();
  await_previous();

  float *const query = memory + at.queries, *const p = memory + at.weights;
  float *const parts = memory + at.parts, *const marks = memory + at.marks, *const tops = marks + 2 * R;
  for (int i = t; i < d; i += kNearThreads)
#pragma unroll
    for (int r = 0; r < R; ++r) query[i * R + r] = s.q[rows[r].place * d + i];
  __pipeline_wait_prior(1);
  __syncthreads();
  // attention.2
  const int64_t end = num::min_i64(base + kBlock - past, g.keys);
  auto from = [&](int64_t i) { return attention::head_row(g, batch, i, key_head, g.keys, g.kv_heads); };
  for (int64_t i = base > past ? base - past : 0; i < end; ++i) {
    const int slot = static_cast<int>(past + i - base), to = place_of_key(slot);
    for (int j = t; j < d; j += kNearThreads)
      all_keys[j * kBlock + to] = keys[j * kBlock + to] = s.k[from(i) * d + j];
    for (int j = t; j < g.dv; j += kNearThreads) all_values[slot * g.dv_padded + j] = s.v[from(i) * g.dv + j];
  }
  __syncthreads();

  const Row low_row = rows[0].row, high_row = rows[R - 1].row;
  const Sight low = attention::sight(g, s.lengths, past, low_row.batch, low_row.i),
              high = attention::sight(g, s.lengths, past, high_row.batch, high_row.i);
  const bool nothing = base >= high.high || (base + kBlock <= low.low && base >= g.first);
  if (nothing) {
    if (t < R) marks[2 * t] = -kInf;
    __pipeline_wait_prior(0);
  } else {
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
    __pipeline_wait_prior(0);
    const bool all = !__syncthreads_or(hidden);
    for (int64_t i = base > past ? base - past : 0; i < end; ++i)
      for (int j = t; j < g.dv; j += kNearThreads)
        values[(past + i - base) * g.dv_padded + j] = s.v[from(i) * g.dv + j];
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int w = 0; w < kNearWarps; ++w) m[r] = most(m[r], tops[w * R + r]);
      float& mine = p[key_at(t) * R + r];
      if (mine == 0) mine = weight(sub(c[r], set1(m[r]))).v;  // attention.6; a hidden key's is +0
      if (t == 0) marks[2 * r] = m[r];
    }
    __syncthreads();
    for (int r = warp; r < R; r += kNearWarps) {
      float x[kLaneKeys];
#pragma unroll
      for (int i = 0; i < kLaneKeys; ++i) {
        const float w = p[key_at(kLaneKeys * lane + i) * R + r];
        x[i] = w < 0 ? 0.0f : w;
      }
      const float l = num::INVAR_ISA_NS::block_sum_runs(x);
      if (lane == 0) marks[2 * r + 1] = l;
    }
    const int last = all ? kBlock : static_cast<int>(num::min_i64(kBlock, high.high - base));
    for (int column = t; column < g.dv; column += kNearThreads) {
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
      for (int r = 0; r < R; ++r) store(parts + r * g.dv_padded + column, o[r]);
    }
  }
  cluster.sync();
  fold_near<R>(s, cluster, memory, at, rows, count, blocks);
  cluster.sync();  // nobody ends while others read its memory
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
