// The product on the tensor cores that GPUs have from compute capability 8.0 on (mma.sync).
#pragma once
#include "kernels/cuda/async_copy.cuh"
#include "ops/matmul/cuda/exact16/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kMmaThreads = 128, kMmaStages = 2;
constexpr int kMmaStage = 4 * kPlane;  // a block of a, a block of b
constexpr int kWarpTiles[2] = {2, 4};  // of 16 x 8 results: 32 x 32 of a warp

#if __CUDA_ARCH__ >= 800
__device__ inline void load_matrices(uint32_t (&d)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}
__device__ inline void multiply_add(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The byte of a group of a row in a block.
__device__ inline uint32_t group_at(int row, int group) {
  return static_cast<uint32_t>(row * kBlockK + (group ^ (row & 7)) * 16);
}

struct MmaSums {
  int high[2][4][4], cross[2][4][4], low[2][4][4];
};

// The products of one block of a and of b in shared memory, 32 x 32 from (row, column) on.
__device__ inline void multiply_blocks(MmaSums& s, uint32_t a, uint32_t b, int row, int column) {
  const int lane = threadIdx.x % kWarp;
  const int row_a = row + lane % 16, half_a = lane / 16;
  const int row_b = column + lane / 16 * 8 + lane % 8, half_b = lane / 8 % 2;
#pragma unroll
  for (int step = 0; step < kBlockK / 32; ++step) {
    uint32_t x[2][2][4], y[2][2][4];  // [plane][16 rows]
#pragma unroll
    for (int plane = 0; plane < 2; ++plane)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        load_matrices(x[plane][i], a + plane * kPlane + group_at(row_a + 16 * i, 2 * step + half_a));
        load_matrices(y[plane][i], b + plane * kPlane + group_at(row_b + 16 * i, 2 * step + half_b));
      }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t(&h)[4] = y[0][j / 2], (&l)[4] = y[1][j / 2];
        const int at = j % 2 * 2;
        multiply_add(s.high[i][j], x[0][i], h[at], h[at + 1]);
        multiply_add(s.cross[i][j], x[0][i], l[at], l[at + 1]);
        multiply_add(s.low[i][j], x[1][i], l[at], l[at + 1]);
        multiply_add(s.cross[i][j], x[1][i], h[at], h[at + 1]);
      }
  }
}
#endif

// A tile of 64 x 64 results of 4 warps. kLong: K needs more than one piece.
template <bool kLong>
__global__ void __launch_bounds__(kMmaThreads) exact16_mma_kernel(ExactProduct in) {
#if __CUDA_ARCH__ >= 800
  trigger_and_wait();
  extern __shared__ __align__(128) uint8_t stages[];
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
  const int t = threadIdx.x, lane = t % kWarp, row = t / 64 * 32, column = t / 32 % 2 * 32;
  const int64_t per_product = in.a.tiles * in.b.tiles, chunks = in.a.chunks;
  for (int64_t tile = blockIdx.x; tile < in.s.batches * per_product; tile += gridDim.x) {
    const int64_t batch = tile / per_product, ta = tile % per_product % in.a.tiles;
    const int64_t tb = tile % per_product / in.a.tiles;
    const MatrixPair of = matrices_of(in.s, batch);
    auto load = [&](int64_t chunk) {
      if (chunk < chunks) {
        uint8_t* to = stages + chunk % kMmaStages * kMmaStage;
        const uint8_t *a = in.a.block(of.a, ta, chunk), *b = in.b.block(of.b, tb, chunk);
        for (int p = t * 16; p < 2 * kPlane; p += kMmaThreads * 16) {
          copy_async_16(to + p, a + p, true);
          copy_async_16(to + 2 * kPlane + p, b + p, true);
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
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
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
        for (int q = 0; q < 4; ++q) {
          const int64_t m = ta * kBlockRows + row + i * 16 + q / 2 * 8 + lane / 4;
          const int64_t n = tb * kBlockRows + column + j * 8 + lane % 4 * 2 + q % 2;
          if (m < in.s.m && n < in.s.n)
            store_result(in, (batch * in.s.m + m) * in.s.n + n,
                         exact_result(sum[i][j][q], in.a.scales_of(of.a)[m], in.b.scales_of(of.b)[n]));
        }
  }
#endif
}

void enqueue_mma(const ExactProduct& in, Stream stream) {
  const auto kernel = in.a.chunks > kBlocksToJoin ? exact16_mma_kernel<true> : exact16_mma_kernel<false>;
  launch_dependent(kernel, dim3(grid_for(in.s.batches * in.a.tiles * in.b.tiles)), dim3(kMmaThreads),
                   kMmaStages * kMmaStage, stream, in);
}
// Whether the code that the calling thread's device runs has these instructions: not if it was made
// from older PTX.
bool has_mma() {
  thread_local int known_device = -1;  // it is asked for every call of a step
  thread_local bool has = false;
  int device = 0;
  cudaGetDevice(&device);
  if (device != known_device) {
    cudaFuncAttributes code{};
    has = cudaFuncGetAttributes(&code, exact16_mma_kernel<false>) == cudaSuccess && code.ptxVersion >= 80;
    known_device = device;
  }
  return has;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
