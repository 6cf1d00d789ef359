// The grouped product on the tensor cores of compute capability 8.0 on (mma.sync), and by dp4a on
// GPUs without: tiles of 64 rows of a matrix x 64 columns.
#pragma once
#include "ops/matmul/cuda/exact16/grouped/product.h"
#include "ops/matmul/cuda/exact16/mma.cuh"
#include "ops/matmul/cuda/exact16/plain.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A tile of rows with a tile of columns.
struct GroupedBlocks {
  const uint8_t *a, *b;   // their first blocks
  const int32_t* scales;  // of the columns from the tile's first on
  float* out;
  int64_t n, column;  // of the product, and the first of the tile
  int tile, rows;
};
__device__ inline GroupedBlocks grouped_blocks(const GroupedExact& in, int i) {
  const GroupedItem item = grouped_item(in, i, in.column_end[in.products - 1]);
  const GroupedTile tile = in.tiles[item.tile];
  const GroupedColumn of = column_at(in, in.column_end, item.column);
  const int64_t column = int64_t{of.column} * kBlockRows;
  return {in.a.block(0, item.tile, 0),
          block_of_matrix(in, matrix_of(in, of.product, tile.matrix), of.column),
          scales_of_matrix(in, of.product, tile.matrix) + column,
          in.out[of.product],
          in.n[of.product],
          column,
          item.tile,
          tile.rows};
}
// Result (m, n) of a tile.
__device__ inline void store_sum(const GroupedExact& in, const GroupedBlocks& of, int m, int n, int64_t sum) {
  if (m >= of.rows || of.column + n >= of.n) return;
  const int slot = of.tile * kBlockRows + m;
  store_grouped(of.out, of.n, in.row[slot], of.column + n,
                exact_result(sum, in.a.scales[slot], of.scales[n]));
}

template <bool kLong>
__global__ void __launch_bounds__(kMmaThreads) grouped_mma_kernel(GroupedExact in) {
#if __CUDA_ARCH__ >= 800
  trigger_and_wait();
  extern __shared__ __align__(128) uint8_t stages[];
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
  const int t = threadIdx.x, lane = t % kWarp, row = t / 64 * 32, column = t / 32 % 2 * 32;
  const int all = in.work->tiles * in.column_end[in.products - 1];
  for (int item = blockIdx.x; item < all; item += gridDim.x) {
    const GroupedBlocks of = grouped_blocks(in, item);
    auto load = [&](int chunk) {
      if (chunk < in.chunks) {
        uint8_t* to = stages + chunk % kMmaStages * kMmaStage;
        const int64_t from = int64_t{chunk} * (2 * kPlane);
        for (int p = t * 16; p < 2 * kPlane; p += kMmaThreads * 16) {
          copy_async_16(to + p, of.a + from + p, true);
          copy_async_16(to + 2 * kPlane + p, of.b + from + p, true);
        }
      }
      commit_copies();
    };
    MmaSums s{};
    int64_t sum[2][4][4] = {};
    auto join = [&] {
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          for (int q = 0; q < 4; ++q)
            sum[i][j][q] += exact_sum(s.high[i][j][q], s.cross[i][j][q], s.low[i][j][q]);
      s = MmaSums{};
    };
    load(0);
    for (int chunk = 0; chunk < in.chunks; ++chunk) {
      load(chunk + 1);
      wait_copies<1>();
      __syncthreads();
      const uint32_t at = shared + static_cast<uint32_t>(chunk % kMmaStages) * kMmaStage;
      multiply_blocks(s, at, at + 2 * kPlane, row, column);
      __syncthreads();
      if (kLong && (chunk + 1) % kBlocksToJoin == 0) join();
    }
    join();
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j)
        for (int q = 0; q < 4; ++q)
          store_sum(in, of, row + i * 16 + q / 2 * 8 + lane / 4, column + j * 8 + lane % 4 * 2 + q % 2,
                    sum[i][j][q]);
  }
#endif
}

// 4 x 4 results of each thread.
__global__ void __launch_bounds__(kPlainThreads) grouped_plain_kernel(GroupedExact in) {
  trigger_and_wait();
  __shared__ uint32_t tile_a[2][kPlainWords][kBlockRows + 4], tile_b[2][kPlainWords][kBlockRows + 4];
  const int all = in.work->tiles * in.column_end[in.products - 1];
  const int ti = threadIdx.x / (kBlockRows / kThreadTile) * kThreadTile;
  const int tj = threadIdx.x % (kBlockRows / kThreadTile) * kThreadTile;
  for (int item = blockIdx.x; item < all; item += gridDim.x) {
    const GroupedBlocks of = grouped_blocks(in, item);
    int64_t sum[kThreadTile][kThreadTile] = {};
    int high[kThreadTile][kThreadTile] = {}, cross[kThreadTile][kThreadTile] = {},
        low[kThreadTile][kThreadTile] = {};
    for (int part = 0; part < 2 * in.chunks; ++part) {
      const int64_t from = int64_t{part / 2} * (2 * kPlane);
      __syncthreads();
      for (int p = threadIdx.x; p < 2 * kBlockRows * kPlainWords; p += kPlainThreads) {
        const int w = p % kPlainWords, r = p / kPlainWords % kBlockRows,
                  plane = p / (kPlainWords * kBlockRows);
        const int word = part % 2 * kPlainWords + w;
        tile_a[plane][w][r] = plane_word(of.a + from + plane * kPlane, r, word);
        tile_b[plane][w][r] = plane_word(of.b + from + plane * kPlane, r, word);
      }
      __syncthreads();
      for (int w = 0; w < kPlainWords; ++w) {
        int x[2][kThreadTile], y[2][kThreadTile];
        for (int plane = 0; plane < 2; ++plane)
          for (int i = 0; i < kThreadTile; ++i) {
            x[plane][i] = static_cast<int>(tile_a[plane][w][ti + i]);
            y[plane][i] = static_cast<int>(tile_b[plane][w][tj + i]);
          }
        for (int r = 0; r < kThreadTile; ++r)
          for (int c = 0; c < kThreadTile; ++c) {
            high[r][c] = __dp4a(x[0][r], y[0][c], high[r][c]);
            cross[r][c] = __dp4a(x[0][r], y[1][c], __dp4a(x[1][r], y[0][c], cross[r][c]));
            low[r][c] = __dp4a(x[1][r], y[1][c], low[r][c]);
          }
      }
      if ((part + 1) % (2 * kBlocksToJoin) && part + 1 < 2 * in.chunks) continue;
      for (int r = 0; r < kThreadTile; ++r)
        for (int c = 0; c < kThreadTile; ++c) {
          sum[r][c] += exact_sum(high[r][c], cross[r][c], low[r][c]);
          high[r][c] = cross[r][c] = low[r][c] = 0;
        }
    }
    for (int r = 0; r < kThreadTile; ++r)
      for (int c = 0; c < kThreadTile; ++c) store_sum(in, of, ti + r, tj + c, sum[r][c]);
  }
}

// most_items: how many there are is known on the device alone.
void enqueue_grouped_mma(const GroupedExact& in, int64_t most_items, Stream stream) {
  const auto kernel = in.chunks > kBlocksToJoin ? grouped_mma_kernel<true> : grouped_mma_kernel<false>;
  launch_dependent(kernel, dim3(grid_for(most_items)), dim3(kMmaThreads), kMmaStages * kMmaStage, stream, in);
}
void enqueue_grouped_plain(const GroupedExact& in, int64_t most_items, Stream stream) {
  launch_dependent(grouped_plain_kernel, dim3(grid_for(most_items)), dim3(kPlainThreads), 0, stream, in);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
