// Products of bytes of many rows on Hopper (wgmma): 128 x 256 results of two warpgroups. Boxes of
// both operands arrive by tensor maps.
#pragma once
#include <cuda.h>

#include "ops/matmul/cuda/exact16/wgmma_scaled.cuh"
#include "ops/matmul/cuda/integer/tensor_cores.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct ByteGemm {
  static constexpr int kRows = 128, kColumns = 256;
  static constexpr int kThreads = 3 * kWarpgroup, kStages = 4;
  static constexpr int kBoxRows = 128;  // of a box of kStepK bytes each
  static constexpr int kBox = kBoxRows * kStepK, kStage = (kRows + kColumns) * kStepK;
  static constexpr int kShared = kStages * kStage + 1024;
  static constexpr int kRun =
      16;  // tiles of rows that meet a column of tiles before the next, for the L2 cache
};
struct ByteGemmTiles {
  int rows, columns, all;
};
struct ByteGemmTile {
  int64_t batch, row, column;  // its first row and column
};
__device__ inline ByteGemmTile byte_gemm_tile(const ByteGemmTiles& t, int i) {
  const int per_product = t.rows * t.columns, batch = i / per_product;
  i -= batch * per_product;
  const int run = i / (ByteGemm::kRun * t.columns), first = run * ByteGemm::kRun;
  const int height = t.rows - first < ByteGemm::kRun ? t.rows - first : ByteGemm::kRun;
  i -= first * t.columns;
  return {batch, (int64_t{first} + i % height) * ByteGemm::kRows, int64_t{i / height} * ByteGemm::kColumns};
}

__device__ inline void copy_box(uint32_t to, const CUtensorMap& map, int64_t x, int64_t y, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(to),
      "l"(&map), "r"(static_cast<int>(x)), "r"(static_cast<int>(y)), "r"(barrier)
      : "memory");
}
// One thread. Rows of the next matrix, and zeros behind the last, give results that are not stored.
__device__ inline void produce_bytes(const ByteProducts& in, const ByteGemmTiles& tiles, const CUtensorMap& a,
                                     const CUtensorMap& b, uint32_t shared, Ring ring) {
  using G = ByteGemm;
  const int steps = static_cast<int>(ceil_div(in.s.k, kStepK));
  for (int i = blockIdx.x; i < tiles.all; i += gridDim.x) {
    const ByteGemmTile tile = byte_gemm_tile(tiles, i);
    const FirstRows first = first_rows(in.s, tile.batch);
    for (int step = 0; step < steps; ++step) {
      wait_barrier(ring.empty_now(), ring.phase ^ 1);
      const uint32_t to = shared + ring.at * G::kStage, full = ring.full_now();
      expect_bytes(full, G::kStage);
      copy_box(to, a, step * kStepK, first.a + tile.row, full);
      copy_box(to + G::kBox, b, step * kStepK, first.b + tile.column, full);
      copy_box(to + 2 * G::kBox, b, step * kStepK, first.b + tile.column + G::kBoxRows, full);
      ring.next();
    }
  }
}

template <bool kUnsignedA>
__device__ inline void consume_bytes(const ByteProducts& in, const ByteGemmTiles& tiles, uint32_t shared,
                                     Ring ring, int group) {
  using G = ByteGemm;
  const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
  const int steps = static_cast<int>(ceil_div(in.s.k, kStepK));
  auto leave = [&](uint32_t empty) {
    if (t == 0) arrive(empty);
  };
  for (int i = blockIdx.x; i < tiles.all; i += gridDim.x) {
    const ByteGemmTile tile = byte_gemm_tile(tiles, i);
    int sum[1][G::kColumns / 8][4];
    auto& d = reinterpret_cast<int(&)[G::kColumns / 2]>(sum);
    uint32_t previous = 0;
    for (int step = 0; step < steps; ++step) {
      wait_barrier(ring.full_now(), ring.phase);
      const uint32_t at = shared + ring.at * G::kStage;
      const uint64_t x = operand(at + group * G::kBox / 2), y = operand(at + G::kBox);
      begin_products();
#pragma unroll
      for (int k = 0; k < kStepK / 32; ++k) multiply<kUnsignedA>(d, x + 2 * k, y + 2 * k, step + k > 0);
      commit_products();
      wait_products<1>();
      if (step > 0) leave(previous);
      previous = ring.empty_now();
      ring.next();
    }
    wait_products<0>();
    leave(previous);
#pragma unroll
    for (int q = 0; q < G::kColumns / 2; ++q) asm volatile("" : "+r"(d[q])::"memory");
    store_products<ByteGemm>(in, sum, tile.batch, first_rows(in.s, tile.batch),
                             tile.row + group * 64 + t / kWarp * 16 + lane / 4, tile.column + lane % 4 * 2);
  }
}

template <bool kUnsignedA>
__global__ void __launch_bounds__(ByteGemm::kThreads, 1)
    byte_gemm_kernel(ByteProducts in, ByteGemmTiles tiles, const __grid_constant__ CUtensorMap a,
                     const __grid_constant__ CUtensorMap b) {
  using G = ByteGemm;
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t barriers[2 * G::kStages];
  const uint32_t shared = (shared_address(memory) + 1023) / 1024 * 1024;
  const Ring ring{shared_address(barriers), shared_address(barriers + G::kStages), G::kStages};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < G::kStages; ++i) {
      init_barrier(ring.full + 8 * i, 1);
      init_barrier(ring.empty + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  trigger_and_wait();
  const int group = threadIdx.x / kWarpgroup;
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 2 * kWarpgroup) produce_bytes(in, tiles, a, b, shared, ring);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume_bytes<kUnsignedA>(in, tiles, shared, ring, group);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
