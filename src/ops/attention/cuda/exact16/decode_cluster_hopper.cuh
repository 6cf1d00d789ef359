// attention_exact16 for few rows of a key head on Hopper, by clusters: a cluster takes a group of
// rows, its thread blocks each every so many key blocks. Each result of a key block goes at once to
// the thread block that folds it in its place (attention.9).
#pragma once
#include "ops/attention/cuda/exact16/decode_block_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kClusterWarps = 8, kClusterThreads = kClusterWarps * kWarp;
constexpr int kFoldedAtOnce = 4;  // key blocks whose results are loaded together

// What is to be folded: a row's 32 columns are a unit, and unit u belongs to thread block u % size.
// m_b and l_b of each key block, and O_b.
struct BlockResult {
  float2 max_sum;
  float of[kWarp];
};
// kStages: of key blocks.
template <int kStages>
struct ExactClusterSmem {
  ExactDecodeRows<1, kClusterWarps> rows;
  uint64_t results_arrived;
  float2 row_max_sums[kSideRows];  // of a key block whose numbers are not ordinary
  float row_results[kSideRows][kDecodeColumns];
  ExactDecodeStage stages[kStages];
  alignas(16) BlockResult results[1];  // [own unit][key block]
};

__device__ inline uint32_t cluster_rank() {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ inline uint32_t cluster_size() {
  uint32_t n;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
  return n;
}
// A barrier that orders no memory but that of mbarriers, behind their fence.
__device__ inline void arrive_in_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
// What has an address of this thread block's shared memory, in that of another.
__device__ inline uint32_t address_of_rank(uint32_t address, uint32_t rank) {
  uint32_t r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}
// The place of a BlockResult of a thread block, and the barrier there, which counts the bytes.
struct RemoteResult {
  uint32_t at, barrier;
  __device__ void store(int column, float x) const {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
                     at + static_cast<uint32_t>(sizeof(float2)) + 4 * column),
                 "f"(x), "r"(barrier)
                 : "memory");
  }
  __device__ void store(float2 max_sum) const {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(at),
        "f"(max_sum.x), "f"(max_sum.y), "r"(barrier)
        : "memory");
  }
};
__device__ inline void wait_for_results(uint32_t barrier) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again;\n}" ::"r"(barrier)
      : "memory");
}

// What a thread block does.
template <int kStages>
struct ExactClusterRun : ExactDecodeBlock<1, false, kClusterWarps> {
  int size, rank, shift;  // of the cluster; size = 2^shift
  int blocks, chunks;     // key blocks; chunks of 32 columns
  ExactClusterSmem<kStages>& all;
  int last, now, ahead;  // own key blocks, which go down: the first one, and the next ones
  bool met = false;      // whether the cluster's barriers are known to be ready

  __device__ ExactClusterRun(const AttentionParams& params, ExactClusterSmem<kStages>& memory)
      : ExactDecodeBlock(params, memory.rows, memory.stages), all(memory) {
    rank = static_cast<int>(cluster_rank()), size = static_cast<int>(cluster_size());
    shift = 31 - __clz(size);
    begin(blockIdx.z, blockIdx.y, blockIdx.x >> shift);
    blocks = (total + kBlock - 1) / kBlock;
    chunks = static_cast<int>(s.g.dv + kWarp - 1) / kWarp;
  }
  // Own units; their bytes are those that arrive.
  __device__ int units() const { return (count * chunks - rank + size - 1) >> shift; }
  __device__ uint32_t expected_bytes() const {
    uint32_t each = 0;
    for (int unit = rank; unit < count * chunks; unit += size)
      each += sizeof(float2) + 4 * min(kWarp, static_cast<int>(s.g.dv) - unit % chunks * kWarp);
    return each * blocks;
  }
  // Where the result of a key block goes of columns 32 chunk ... 32 chunk + 31 of row r.
  __device__ RemoteResult place(int r, int chunk, int block) const {
    const int unit = r * chunks + chunk, owner = unit & (size - 1);
    const BlockResult* at = all.results + (unit >> shift) * blocks + block;
    return {address_of_rank(shared_address(at), owner),
            address_of_rank(shared_address(&all.results_arrived), owner)};
  }
  // The last of this thread block's key blocks up to `block` that has something to do.
  __device__ int next_of(int block) const {
    while (block >= 0 && !has_work(block)) block -= size;
    return block;
  }

  // Starts to copy the first key blocks.
  __device__ void start() {
    find_visible();
    last = rank < blocks ? rank + ((blocks - 1 - rank) & ~(size - 1)) : -1;
    now = next_of(last), ahead = kStages == 1 ? -1 : next_of(now - size);
    if (now >= 0) copy_keys(now, all.stages[0]), copy_values(now, all.stages[0]);
    if (ahead >= 0) copy_keys(ahead, all.stages[kStages - 1]), copy_values(ahead, all.stages[kStages - 1]);
  }
  __device__ void run() {
    if (!appends() || s.g.left >= 0 || s.g.right >= 0 || s.lengths) send_unseen(last);
    if (now < 0) return;
    const int newest = now;
    load_fresh(newest);
    load_queries();
    while (true) {
      if (has_new(now)) {
        stage->wait_for_keys(parity), stage->wait_for_values(parity);
        append(now, true, true, now == newest);
      }
      __syncthreads();
      const int after = next_of((kStages == 1 ? now : ahead) - size);  // takes the place of this block
      attend(now, after);
      now = kStages == 1 ? after : ahead, ahead = after;
      if (now < 0) return;
      __syncthreads();  // all have used the values and the weights
      if (after >= 0) copy_values(after, *stage);
      if (kStages > 1) stage = all.stages + (stage == all.stages ? 1 : 0);
      if (stage == all.stages) parity ^= 1;
    }
  }
  __device__ __forceinline__ void attend(int block, int after) {
    float x[1][2 * kKeys];
    BlockSums sums[1];
    stage->wait_for_keys(parity);
    score(x);
    mask(block, x);
    weigh(x, sums, [&] {
      if (after >= 0) copy_keys(after, *stage);
    });
    stage->wait_for_values(parity);
    meet();
    if (!sums[0].ordinary()) return send_rows(block);
    const int chunk = warp * kWarpKeys / kWarp;
    const RemoteResult to[2] = {place(2 * t, chunk, block), place(2 * t + 1, chunk, block)};
    if (g == 0 && warp * kWarpKeys % kWarp == 0 && chunk < chunks)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (2 * t + i < count) to[i].store(make_float2(sums[0].m[i], sums[0].l(i).v));
    multiply(sums, [&](int, int i, int j, F ob) {
      const int column = warp * kWarpKeys + 16 * i + g + j / 2 * 8;
      if (2 * t + j % 2 < count && column < s.g.dv) to[j % 2].store(column % kWarp, ob.v);
    });
  }
  // Ahead of what is sent.
  __device__ void meet() {
    if (!met) wait_for_cluster();
    met = true;
  }
  // The results of row r, by a warp.
  __device__ void send_row(int r, int block, float2 max_sum, const float* results) const {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const RemoteResult to = place(r, chunk, block);
      const int column = chunk * kWarp + lane;
      if (column < s.g.dv) to.store(lane, results ? results[column] : 0.0f);
      if (lane == 0) to.store(max_sum);
    }
  }
  __device__ void send_rows(int block) const {
    exact_decode_rows(s, ExactLayout(s.g), head, first, count, block,
                      {&all.row_max_sums[0].x, all.row_results[0], 2, kDecodeColumns});
    __syncwarp();
    for (int r = warp; r < count; r += kClusterWarps)
      send_row(r, block, all.row_max_sums[r], all.row_results[r]);
    __syncwarp();
  }
  // Of this thread block's key blocks that no row sees.
  __device__ void send_unseen(int block) {
    meet();
    for (; block >= 0; block -= size) {
      if (has_work(block)) continue;
      for (int r = warp; r < count; r += kClusterWarps) send_row(r, block, make_float2(-kInf, 0.0f), nullptr);
    }
  }

  // attention.9, attention.17 and attention.10. A warp takes a unit; its lanes have m_b and l_b of
  // 32 key blocks.
  __device__ void fold_blocks() const {
    const Geometry& geometry = s.g;
    const int dv = static_cast<int>(geometry.dv);
    for (int own = warp; own < units(); own += kClusterWarps) {
      const int unit = own * size + rank, r = unit / chunks, column = unit % chunks * kWarp + lane;
      const BlockResult* const results = all.results + own * blocks;
      wait_for_results(shared_address(&all.results_arrived));
      OnlineSoftmax running;
      F o = zero();
      for (int begin = 0; begin < blocks; begin += kWarp) {
        const int end = min(blocks - begin, kWarp);
        const float2 max_sum = lane < end ? results[begin + lane].max_sum : make_float2(-kInf, 0.0f);
        float upto = max_sum.x;
#pragma unroll
        for (int step = 1; step < kWarp; step *= 2) {
          const float before = __shfl_up_sync(kFullWarp, upto, step);
          if (lane >= step) upto = max_nan(upto, before);
        }
        upto = max_nan(upto, running.m.v);
        const float before = __shfl_up_sync(kFullWarp, upto, 1);
        const float by = rescale_factor(set1(max_sum.x), lane ? set1(before) : running.m);
        running.m = set1(__shfl_sync(kFullWarp, upto, kWarp - 1));
#pragma unroll 1
        for (int i = 0; i < end; i += kFoldedAtOnce) {
          float part[kFoldedAtOnce];
#pragma unroll
          for (int j = 0; j < kFoldedAtOnce; ++j)
            part[j] = i + j < end ? results[begin + i + j].of[lane] : 0.0f;
#pragma unroll
          for (int j = 0; j < kFoldedAtOnce; ++j) {
            const float f = __shfl_sync(kFullWarp, by, i + j), l = __shfl_sync(kFullWarp, max_sum.y, i + j);
            running.l = fold(f, running.l, set1(l)), o = fold(f, o, set1(part[j]));
          }
        }
      }
      const QueryRow to = row(r);
      if (s.sinks) o = fold(running.join(set1(s.sinks[to.head]), set1(1.0f)), o, zero());
      if (column < dv)
        store(s.y + row_index(geometry, to) * dv + column, normalized(o, running.m, running.l));
    }
  }
};

// Grid: clusters for the groups of 8 rows, key heads, sequences. kStages = 2: a thread block has a
// multiprocessor, and no registers are spilled, whose memory the weights would drive from the L2.
template <int kStages>
__global__ void __launch_bounds__(kClusterThreads, 3 - kStages)
    exact_decode_cluster_kernel(const __grid_constant__ AttentionParams s) {
  extern __shared__ float4 memory[];
  auto& smem = *reinterpret_cast<ExactClusterSmem<kStages>*>(memory);
  trigger_next_grid();
  if (threadIdx.x == 0) {
    for (ExactDecodeStage& stage : smem.stages) stage.init_barriers();
    init_barrier(shared_address(&smem.results_arrived), 1);
  }
  ExactClusterRun<kStages> own(s, smem);
  if (threadIdx.x == 0) expect_bytes(shared_address(&smem.results_arrived), own.expected_bytes());
  arrive_in_cluster();
  __syncthreads();
  const bool early = own.may_start_early();
  if (early) own.start();
  wait_for_previous_grid();
  if (!early) own.start();
  own.run();
  own.meet();  // no thread block ends before all have begun
  own.fold_blocks();
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
