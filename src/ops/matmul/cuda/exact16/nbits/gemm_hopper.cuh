// The product of many rows (hopper.cuh): each of kGroups warpgroups has 64 columns and kRows
// rows of results.
#pragma once
#include "ops/matmul/cuda/exact16/nbits/hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Tiles of rows, of columns.
struct NbitsTiles {
  int rows, columns;
  __device__ int all() const { return rows * columns; }
};

template <int kBits, int kSub, int kRows_, int kGroups_>
struct NbitsGemm {
  static constexpr int kRows = kRows_, kGroups = kGroups_;
  using Stage = NbitsStage<kBits, kSub, kRows, kGroups, 1>;
  static constexpr int kThreads = (kGroups + 1) * kWarpgroup;
  static constexpr int kMost = (222 << 10) / Stage::kBytes, kStages = kMost < 8 ? kMost : 8;
  static constexpr int kShared = kStages * Stage::kBytes + 1024;
  static constexpr int kSums = kRows / 2;
  static constexpr int kRun =
      16;  // tiles of rows that meet a column of tiles before the next, for the L2 cache

  struct Tile {
    int row, column;
  };
  __device__ static Tile tile_at(const NbitsTiles& t, int i) {
    const int run = i / (kRun * t.columns), first = run * kRun;
    const int height = t.rows - first < kRun ? t.rows - first : kRun;
    i -= first * t.columns;
    return {first + i % height, i / height};
  }
  // One thread. A tile of weights that does not exist is replaced by the last one; its results are
  // not stored.
  __device__ static void produce(const NbitsProduct& in, const NbitsTiles& tiles, uint32_t shared,
                                 Ring ring) {
    const uint32_t bytes = Stage::expected(in.zeros != nullptr);
    const int64_t last = ceil_div(in.n, kBlockRows) - 1;
    for (int i = static_cast<int>(blockIdx.x); i < tiles.all(); i += static_cast<int>(gridDim.x)) {
      const Tile tile = tile_at(tiles, i);
      for (int chunk = 0; chunk < static_cast<int>(in.chunks); ++chunk) {
        wait_barrier(ring.empty_now(), ring.phase ^ 1);
        const uint32_t to = shared + ring.at * Stage::kBytes, full = ring.full_now();
        expect_bytes(full, bytes);
        for (int g = 0; g < kGroups; ++g) {
          const int64_t wanted = int64_t{tile.column} * kGroups + g, of = wanted < last ? wanted : last;
          copy_bulk(to + g * Stage::kWeights, in.block(of, chunk, kBits), Stage::kWeights, full);
          Stage::load_factors(in, to, full, g, of, chunk);
        }
        copy_bulk(to + Stage::kAtActivations, in.a.block(0, tile.row, chunk), Stage::kActivations, full);
        Stage::load_sums(in, to, full, 0, tile.row, chunk);
        ring.next();
      }
    }
  }

  __device__ static void leave(uint32_t empty) {
    __syncwarp();
    if (threadIdx.x % kWarp == 0) arrive(empty);
  }

  __device__ static void sum_whole(int (&acc)[kRows], const NbitsProduct& in, uint32_t shared, Ring& ring,
                                   int group) {
    uint32_t previous = 0;
    for (int chunk = 0; chunk < static_cast<int>(in.chunks); ++chunk) {
      wait_barrier(ring.full_now(), ring.phase);
      const uint32_t at = shared + ring.at * Stage::kBytes;
      multiply_chunk<kBits>(acc, at + group * Stage::kWeights, at + Stage::kAtActivations, chunk > 0);
      if constexpr (kBits == 8) {
        wait_products<1>();
        if (chunk > 0) leave(previous);
        previous = ring.empty_now();
      } else {
        wait_products<0>();
        leave(ring.empty_now());
      }
      ring.next();
    }
    if constexpr (kBits == 8) {
      wait_products<0>();
      leave(previous);
    }
    products_ended(acc);
  }
  __device__ static void sum_groups(int64_t (&sum)[kSums], const NbitsProduct& in, uint32_t shared,
                                    Ring& ring, int group) {
    const bool has_zeros = in.zeros != nullptr;
    for (int chunk = 0; chunk < static_cast<int>(in.chunks); ++chunk) {
      wait_barrier(ring.full_now(), ring.phase);
      const uint32_t at = shared + ring.at * Stage::kBytes;
      const uint32_t weights = at + group * Stage::kWeights, factors = at + group * Stage::kFactors;
#pragma unroll 1
      for (int sub = 0; sub < kSub; ++sub) {
        int acc[kRows];
        if constexpr (kSub == 1) {
          multiply_chunk<kBits>(acc, weights, at + Stage::kAtActivations, 0);
        } else {
          multiply_step(acc, std::integral_constant<int, kBits>{}, weights,
                        operand(at + Stage::kAtActivations), sub);
          commit_products();
        }
        wait_products<0>();
        products_ended(acc);
        const uint32_t of = factors + sub * kBlockRows * 4;
        NbitsJoin<kRows>::add(sum, acc, of + Stage::kAtT, of + Stage::kAtZeros,
                              at + Stage::kAtSums + sub * kRows * 4, has_zeros);
      }
      leave(ring.empty_now());
      ring.next();
    }
  }

  __device__ static void consume(const NbitsProduct& in, const NbitsTiles& tiles, uint32_t shared, Ring ring,
                                 int group) {
    for (int i = static_cast<int>(blockIdx.x); i < tiles.all(); i += static_cast<int>(gridDim.x)) {
      const Tile tile = tile_at(tiles, i);
      const int64_t of = int64_t{tile.column} * kGroups + group;
      const bool exists = of * kBlockRows < in.n;
      if constexpr (kSub == 0) {
        int acc[kRows];
        sum_whole(acc, in, shared, ring, group);
        if (exists)
          store_nbits<kBits, true, kRows>(in, of, tile.row,
                                          [&](int q) { return int64_t{256} * acc[q] + acc[kSums + q]; });
      } else {
        int64_t sum[kSums] = {};
        sum_groups(sum, in, shared, ring, group);
        if (exists) store_nbits<kBits, false, kRows>(in, of, tile.row, [&](int q) { return sum[q]; });
      }
    }
  }
};

template <class G>
__global__ void __launch_bounds__(G::kThreads, 1) nbits_gemm_kernel(NbitsProduct in, NbitsTiles tiles) {
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * G::kStages];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const Ring ring{shared_address(barriers), shared_address(barriers + G::kStages), G::kStages};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < G::kStages; ++i) {
      init_barrier(ring.full + 8 * i, 1);
      init_barrier(ring.empty + 8 * i, G::kGroups * kWarpgroup / kWarp);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  trigger_and_wait();
  const int group = threadIdx.x / kWarpgroup;
  if (group == G::kGroups) {
    if constexpr (G::kGroups == 3)
      asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    else
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x % kWarpgroup == 0) G::produce(in, tiles, shared, ring);
  } else {
    if constexpr (G::kGroups == 3)
      asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    else
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    G::consume(in, tiles, shared, ring, group);
  }
  __syncwarp();  // no lane ends before the one that copies
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
