// Products of bytes of many rows on Hopper (wgmma): 128 x 256 results of two warpgroups. Boxes of
// both operands arrive by tensor maps.
#pragma once
#include <cuda.h>

#include "ops/matmul/cuda/exact16/wgmma_scaled.cuh"
#include "ops/matmul/cuda/hopper_product.cuh"
#include "ops/matmul/cuda/integer/tensor_cores.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct ByteGemmSizes {
  static constexpr int kRows = 128, kColumns = 256, kStages = 4;
  static constexpr int kBoxRows = 128;  // of a box of kStepK bytes each
  static constexpr int kBox = kBoxRows * kStepK, kStage = (kRows + kColumns) * kStepK;
};

__device__ inline void copy_box(uint32_t to, const CUtensorMap& map, int64_t x, int64_t y, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(to),
      "l"(&map), "r"(static_cast<int>(x)), "r"(static_cast<int>(y)), "r"(barrier)
      : "memory");
}
template <bool kUnsignedA>
struct ByteGemm : ByteGemmSizes,
                  ProductFrame<2, 1, 1, ByteGemmSizes::kStages,
                               ByteGemmSizes::kStages * ByteGemmSizes::kStage, 40, 232, false> {
  using ByteGemmSizes::kStages;
  ByteProducts in;
  ProductTiles tiles;
  CUtensorMap a, b;
  __device__ static uint32_t stages() { return kStages; }
  __device__ static uint32_t stage_bytes() { return kStage; }

  // Rows of the next matrix, and zeros behind the last, give results that are not stored.
  __device__ void produce(Ring ring) const {
    const int steps = static_cast<int>(ceil_div(in.s.k, kStepK));
    tiles.for_tiles<true>([&](int batch, const TileInRuns& tile) {
      const FirstRows first = first_rows(in.s, batch);
      const int64_t row = first.a + int64_t{tile.row} * kRows,
                    column = first.b + int64_t{tile.column} * kColumns;
      for (int step = 0; step < steps; ++step) {
        wait_barrier(ring.empty_now(), ring.phase ^ 1);
        const uint32_t to = ring.stage_now(), full = ring.full_now();
        expect_bytes(full, kStage);
        copy_box(to, a, step * kStepK, row, full);
        copy_box(to + kBox, b, step * kStepK, column, full);
        copy_box(to + 2 * kBox, b, step * kStepK, column + kBoxRows, full);
        ring.next();
      }
    });
  }
  __device__ void consume(Ring ring, int group) const {
    const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
    const int steps = static_cast<int>(ceil_div(in.s.k, kStepK));
    tiles.for_tiles<true>([&](int batch, const TileInRuns& tile) {
      int sum[1][kColumns / 8][4];
      auto& d = reinterpret_cast<int(&)[kColumns / 2]>(sum);
      this->multiply_stages(ring, steps, [&](uint32_t at, int step) {
        const uint64_t x = operand(at + group * kBox / 2), y = operand(at + kBox);
        begin_products();
#pragma unroll
        for (int k = 0; k < kStepK / 32; ++k) multiply<kUnsignedA>(d, x + 2 * k, y + 2 * k, step + k > 0);
        commit_products();
      });
#pragma unroll
      for (int q = 0; q < kColumns / 2; ++q) asm volatile("" : "+r"(d[q])::"memory");
      store_products<ByteGemmSizes>(in, sum, batch, first_rows(in.s, batch),
                                    int64_t{tile.row} * kRows + group * 64 + t / kWarp * 16 + lane / 4,
                                    int64_t{tile.column} * kColumns + lane % 4 * 2);
    });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
