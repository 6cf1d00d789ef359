// Few rows of a key head, as in steps of decoding: a warp takes a key block, of which each lane has 4 neighbouring keys and
// then 4 value columns, so that memory is read once, 16 bytes a lane; then a thread block folds the parts of a row. Who takes a
// block appends to it what is new there (attention.2): if they are several, they write the same.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kSplitWarps = 4, kSplitThreads = kSplitWarps * kWarp;
constexpr int kFoldThreads = 128, kFoldWarps = kFoldThreads / kWarp;
constexpr int kLaneKeys = kBlock / kWarp;

// What a warp keeps: queries, and weights (negative: hidden) at their keys.
template <int R>
struct SplitWork {
  alignas(16) float q[num::kChain][R], p[kBlock][R];
};
template <int R>
__device__ inline void load_rows(const float* from, F (&x)[R]) {
  if constexpr (R % 4 == 0) {
#pragma unroll
    for (int r = 0; r < R; r += 4) {
      const float4 v = *reinterpret_cast<const float4*>(from + r);
      x[r] = set1(v.x), x[r + 1] = set1(v.y), x[r + 2] = set1(v.z), x[r + 3] = set1(v.w);
    }
  } else {
#pragma unroll
    for (int r = 0; r < R; ++r) x[r] = load(from + r);
  }
}
// c[r][i] += a[r] times 4 neighbours (contraction.2, attention.8), kSeen: but not where a[r] says that the key is hidden.
template <int R, bool kSeen>
__device__ inline void multiply_lane(const float4& b, const F (&a)[R], F (&c)[R][kLaneKeys]) {
  const float column[kLaneKeys] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < kLaneKeys; ++i) {
      const F sum = fma(a[r], set1(column[i]), c[r][i]);
      c[r][i] = kSeen ? select(lt(a[r], zero()), c[r][i], sum) : sum;
    }
}

constexpr int kBatch = 16;  // rows whose loads are in flight at once

__device__ inline void append_to(const Step& s, const Memory& memory, int64_t head, int64_t block) {
  const Geometry& g = s.g;
  const int64_t past = memory.past, base = block * kBlock, end = num::min_i64(base + kBlock - past, g.keys);
  for (int64_t i = base > past ? base - past : 0; i < end; ++i) {
    const int slot = static_cast<int>(past + i - base);
    const int64_t from = attention::head_row(g, head / g.kv_heads, i, head % g.kv_heads, g.keys, g.kv_heads);
    float* key = keys_of(s, memory, block) + place_of_key(slot);
    float* value = values_of(s, memory, block) + slot * g.dv_padded;
    for (int64_t j = threadIdx.x % kWarp; j < g.d; j += kWarp) key[j * kBlock] = s.k[from * g.d + j];
    for (int64_t j = threadIdx.x % kWarp; j < g.dv; j += kWarp) value[j] = s.v[from * g.dv + j];
  }
}

// Units: blocks of runs of R rows of key heads, as many of each as the longest sequence has; m_b and l_b -> marks, results ->
// parts.
template <int R>
__global__ void __launch_bounds__(kSplitThreads, 4) split_kernel(const __grid_constant__ Step s) {
  __shared__ SplitWork<R> shared[kSplitWarps];
  SplitWork<R>& w = shared[threadIdx.x / kWarp];
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, d = static_cast<int>(g.d);
  follow();
  const int64_t blocks = ceil_div(*s.past + g.keys, kBlock), runs = ceil_div(g.rows, R);
  for (int64_t unit = int64_t{blockIdx.x} * kSplitWarps + threadIdx.x / kWarp;
       unit < g.batch * g.kv_heads * runs * blocks; unit += int64_t{gridDim.x} * kSplitWarps) {
    const int64_t block = unit % blocks, first = unit / blocks % runs * R, head = unit / blocks / runs;
    const Memory memory = memory_of(s, head);
    const int64_t past = memory.past;
    if (block * kBlock >= past + g.keys) continue;
    const int count = static_cast<int>(num::min_i64(R, g.rows - first));
    const int64_t base = block * kBlock, to = (head * g.rows + first) * g.seen + block;
    auto row_at = [&](int r) { return row_of(g, head, first + (r < count ? r : count - 1)); };
    // What a row sees begins and ends no earlier than what the row before it sees.
    const Row low_row = row_at(0), high_row = row_at(count - 1);
    const Sight low = attention::sight(g, s.lengths, past, low_row.batch, low_row.i),
                high = attention::sight(g, s.lengths, past, high_row.batch, high_row.i);
    append_to(s, memory, head, block);
    if (base >= high.high || (base + kBlock <= low.low && base >= g.first)) {
      if (lane < count) s.marks[2 * (to + lane * g.seen)] = -kInf;
      continue;
    }
    const bool plain = !g.mask && g.softcap == 0 && (base >= high.low || base + kBlock <= g.first) &&
                       base + kBlock <= low.high;
    const float* keys = keys_of(s, memory, block) + kLaneKeys * lane;
    __syncwarp();
    const float* query = s.q + place(g, row_at(lane % R)) * d;
    for (int i = lane / R; i < d; i += kWarp / R) w.q[i][lane % R] = query[i];
    __syncwarp();

    F c[R][kLaneKeys] = {};
    F a[R];
    int i = 0;
    for (; i + kBatch <= d; i += kBatch) {
#pragma unroll
      for (int j = i; j < i + kBatch; ++j) {
        load_rows<R>(w.q[j], a);
        multiply_lane<R, false>(*reinterpret_cast<const float4*>(keys + j * kBlock), a, c);
      }
    }
    for (; i < d; ++i) {
      load_rows<R>(w.q[i], a);
      multiply_lane<R, false>(*reinterpret_cast<const float4*>(keys + i * kBlock), a, c);
    }
    // attention.3: the one chain joins +0 (contraction.3).
    unsigned hidden = 0;
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int i = 0; i < kLaneKeys; ++i) c[r][i] = mul(add(zero(), c[r][i]), set1(g.scale));
      if (!plain) {
        const Row row = row_at(r);
        const Scores of(s, attention::sight(g, s.lengths, past, row.batch, row.i), row, block);
#pragma unroll
        for (int i = 0; i < kLaneKeys; ++i)
          if (!of.score(s, block, key_at(kLaneKeys * lane + i), c[r][i]))
            c[r][i] = set1(-kInf), hidden |= 1u << (kLaneKeys * r + i);
      }
    }
    bool nothing = true;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float m = most(most(c[r][0].v, c[r][1].v), most(c[r][2].v, c[r][3].v));
#pragma unroll
      for (int step = kWarp / 2; step; step /= 2) m = most(m, __shfl_xor_sync(kAllLanes, m, step));
      // attention.6; a hidden key's is +0, or nothing of the block matters
      float p[kLaneKeys];
#pragma unroll
      for (int i = 0; i < kLaneKeys; ++i) {
        p[i] = exp_stored(sub(c[r][i], set1(m))).v;
        w.p[key_at(kLaneKeys * lane + i)][r] = hidden >> (kLaneKeys * r + i) & 1 ? -1.0f : p[i];
      }
      const float l = num::INVAR_ISA_NS::block_sum_runs(p);
      if (lane == 0 && r < count) s.marks[2 * (to + r * g.seen)] = m, s.marks[2 * (to + r * g.seen) + 1] = l;
      nothing = nothing && m == -kInf;
    }
    const bool all = !__any_sync(kAllLanes, hidden != 0);
    __syncwarp();
    if (nothing) continue;
    const int end = static_cast<int>(num::min_i64(kBlock, high.high - base));
    for (int64_t column = kLaneKeys * lane; column < g.dv; column += kBlock) {
      const float* values = values_of(s, memory, block) + column;
      F o[R][kLaneKeys] = {};
      for (int from = 0; from < end; from += kBatch) {
        if (all) {
#pragma unroll
          for (int j = from; j < from + kBatch; ++j) {
            load_rows<R>(w.p[j], a);
            multiply_lane<R, false>(*reinterpret_cast<const float4*>(values + j * g.dv_padded), a, o);
          }
        } else {
#pragma unroll
          for (int j = from; j < from + kBatch; ++j) {
            load_rows<R>(w.p[j], a);
            multiply_lane<R, true>(*reinterpret_cast<const float4*>(values + j * g.dv_padded), a, o);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (r < count)
          *reinterpret_cast<float4*>(s.parts + (to + r * g.seen) * g.dv_padded + column) =
              make_float4(o[r][0].v, o[r][1].v, o[r][2].v, o[r][3].v);
    }
  }
}

// One row: folds its parts (attention.9, attention.17, attention.10), of which kAhead are asked for before they are folded.
template <int kAhead>
__global__ void __launch_bounds__(kFoldThreads) fold_kernel(const __grid_constant__ Step s) {
  __shared__ float2 mark[kFoldThreads];  // the factor of a block, and l_b
  __shared__ float last[kFoldWarps];
  __shared__ bool
      smaller[kFoldWarps];  // none of kWarp blocks has a larger maximum than those before it, as is usual
  const Geometry& g = s.g;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  follow();
  const int64_t head = blockIdx.x / g.rows, row = blockIdx.x % g.rows,
                blocks = ceil_div(s.sequences[head / g.kv_heads].past + g.keys, kBlock);
  const Row r = row_of(g, head, row);
  const float* marks = s.marks + 2 * blockIdx.x * g.seen;
  for (int64_t first = 0; first < g.dv; first += kFoldThreads) {
    const int64_t c = first + threadIdx.x;
    const float* parts = s.parts + blockIdx.x * g.seen * g.dv_padded + (c < g.dv ? c : 0);
    F ahead[kAhead];
    auto ask = [&](int64_t from) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        ahead[i] = from + i < blocks ? load(parts + (from + i) * g.dv_padded) : zero();
    };
    ask(0);
    Folded all;
    F o = zero();
    for (int64_t b = 0; b < blocks; b += kFoldThreads) {
      // The maximum before each block, which the maxima alone say.
      const bool is_block = b + threadIdx.x < blocks;
      const float mb = is_block ? marks[2 * (b + threadIdx.x)] : -kInf;
      const float lb = is_block ? marks[2 * (b + threadIdx.x) + 1] : 0.0f;
      float upto = mb;
#pragma unroll
      for (int step = 1; step < kWarp; step *= 2) {
        const float before = __shfl_up_sync(kAllLanes, upto, step);
        if (lane >= step) upto = most(upto, before);
      }
      __syncthreads();
      if (lane == kWarp - 1) last[warp] = upto;
      __syncthreads();
      float m = all.m.v;
      for (int k = 0; k < warp; ++k) m = most(m, last[k]);
      const float before = __shfl_up_sync(kAllLanes, upto, 1);
      if (lane > 0) m = most(m, before);
      const float by = factor(set1(mb), set1(m));
      mark[threadIdx.x] = make_float2(by, lb);
      const bool none = __all_sync(kAllLanes, by < 0);
      if (lane == 0) smaller[warp] = none;
      for (int k = 0; k < kFoldWarps; ++k) all.m = set1(most(all.m.v, last[k]));
      __syncthreads();
      for (int k = 0; k < kFoldThreads && b + k < blocks; k += kAhead) {
        F part[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) part[i] = ahead[i];
        ask(b + k + kAhead);
        bool plain = true;
#pragma unroll
        for (int w = 0; w < kAhead; w += kWarp) plain = plain && smaller[(k + w) / kWarp];
        if (plain) {
#pragma unroll
          for (int i = 0; i < kAhead; ++i) {
            const float2 by = mark[k + i];
            all.l = fma(set1(by.y), set1(-by.x), all.l), o = fma(part[i], set1(-by.x), o);  // attention.9
          }
        } else {
#pragma unroll
          for (int i = 0; i < kAhead; ++i) {
            const float2 by = mark[k + i];
            all.l = fold(by.x, all.l, set1(by.y)), o = fold(by.x, o, part[i]);
          }
        }
      }
    }
    if (s.sinks) o = fold(all.join(set1(s.sinks[r.head]), set1(1.0f)), o, zero());
    if (c < g.dv) store(s.y + place(g, r) * g.dv + c, result(o, all.m, all.l));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
