// The product by dp4a, for GPUs without a kernel of their own.
#pragma once
#include "ops/matmul/cuda/exact16/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kPlainThreads = 256, kThreadTile = 4, kPlainWords = 16;

// Word w of a row of a plane.
__device__ inline uint32_t plane_word(const uint8_t* plane, int row, int w) {
  return *reinterpret_cast<const uint32_t*>(plane + row * kBlockK + ((w / 4) ^ (row & 7)) * 16 + w % 4 * 4);
}

// A tile of 64 x 64 results, 4 x 4 of each thread.
__global__ void __launch_bounds__(kPlainThreads) exact16_plain_kernel(ExactProduct in) {
  trigger_and_wait();
  __shared__ uint32_t tile_a[2][kPlainWords][kBlockRows + 4], tile_b[2][kPlainWords][kBlockRows + 4];
  const int64_t per_product = in.a.tiles * in.b.tiles;
  for (int64_t t = blockIdx.x; t < in.s.batches * per_product; t += gridDim.x) {
    const int64_t batch = t / per_product, ta = t % per_product % in.a.tiles,
                  tb = t % per_product / in.a.tiles;
    const MatrixPair of = matrices_of(in.s, batch);
    const int ti = threadIdx.x / (kBlockRows / kThreadTile) * kThreadTile;
    const int tj = threadIdx.x % (kBlockRows / kThreadTile) * kThreadTile;
    int64_t sum[kThreadTile][kThreadTile] = {};
    int high[kThreadTile][kThreadTile] = {}, cross[kThreadTile][kThreadTile] = {},
        low[kThreadTile][kThreadTile] = {};
    for (int64_t part = 0; part < 2 * in.a.chunks; ++part) {
      const uint8_t *a = in.a.block(of.a, ta, part / 2), *b = in.b.block(of.b, tb, part / 2);
      __syncthreads();
      for (int p = threadIdx.x; p < 2 * kBlockRows * kPlainWords; p += kPlainThreads) {
        const int w = p % kPlainWords, r = p / kPlainWords % kBlockRows,
                  plane = p / (kPlainWords * kBlockRows);
        const int from = static_cast<int>(part % 2) * kPlainWords + w;
        tile_a[plane][w][r] = plane_word(a + plane * kPlane, r, from);
        tile_b[plane][w][r] = plane_word(b + plane * kPlane, r, from);
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
      if ((part + 1) % (2 * kBlocksToJoin) && part + 1 < 2 * in.a.chunks) continue;
      for (int r = 0; r < kThreadTile; ++r)
        for (int c = 0; c < kThreadTile; ++c) {
          sum[r][c] += exact_sum(high[r][c], cross[r][c], low[r][c]);
          high[r][c] = cross[r][c] = low[r][c] = 0;
        }
    }
    for (int r = 0; r < kThreadTile; ++r)
      for (int c = 0; c < kThreadTile; ++c) {
        const int64_t i = ta * kBlockRows + ti + r, j = tb * kBlockRows + tj + c;
        if (i < in.s.m && j < in.s.n)
          store_result(in, (batch * in.s.m + i) * in.s.n + j,
                       exact_result(sum[r][c], in.a.scales_of(of.a)[i], in.b.scales_of(of.b)[j]));
      }
  }
}

void enqueue_plain(const ExactProduct& in, Stream stream) {
  launch_dependent(exact16_plain_kernel, dim3(grid_for(in.s.batches * in.a.tiles * in.b.tiles)),
                   dim3(kPlainThreads), 0, stream, in);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
