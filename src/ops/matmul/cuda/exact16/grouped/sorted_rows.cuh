// Sorts the rows of a grouped product by the matrices that they choose, and rounds them into their
// places (grouped_matmul_exact16.3). The order of the rows of a matrix reaches no bit.
#pragma once
#include "ops/matmul/cuda/exact16/grouped/product.h"
#include "ops/matmul/cuda/exact16/quantize.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::kFirstMatrix;
using matmul::kMostMatrices;
constexpr int kSortThreads = 1024;

// Where the matrices begin: of each product `groups`.
struct MatrixTable {
  const uint8_t* at[kMostMatrices];
};

// The first tile of each matrix, and behind them the number of all; a warp, each lane for its run
// of matrices.
__device__ inline void number_tiles(const int* rows, int groups, int height, int* first_tile) {
  const int lane = threadIdx.x, per = (groups + kWarp - 1) / kWarp;
  const int begin = min(lane * per, groups), end = min(begin + per, groups);
  int own = 0;
  for (int g = begin; g < end; ++g) own += (rows[g] + height - 1) / height;
  int before = own;  // up to this lane's last
  for (int step = 1; step < kWarp; step *= 2) {
    const int below = __shfl_up_sync(kFullWarp, before, step);
    if (lane >= step) before += below;
  }
  if (lane == kWarp - 1) first_tile[groups] = before;
  before -= own;
  for (int g = begin; g < end; ++g) first_tile[g] = before, before += (rows[g] + height - 1) / height;
}

// Whole tiles to each block, or whole parts of each tile, where that leaves few blocks without
// work; else even parts. A warp, each lane for its number of blocks.
__device__ inline void cut_work(const GroupedExact& in, int tiles) {
  GroupedWork w{};
  const int items = tiles * in.column_end[in.products - 1];
  w.tiles = tiles, w.units = items * in.chunks;
  w.grid = min(in.most_grid, w.units);
  if (w.grid == 0) return;
  for (int most = w.grid; 20 * most >= 17 * in.most_grid; most -= kWarp) {
    const int g = most - static_cast<int>(threadIdx.x % kWarp);
    const bool even = g > 0 && 20 * g >= 17 * in.most_grid && (items % g == 0 || g % items == 0);
    const unsigned lanes = __ballot_sync(kFullWarp, even);
    if (lanes == 0) continue;
    w.grid = most - __ffs(static_cast<int>(lanes)) + 1;
    break;
  }
  w.each = w.units / w.grid, w.longer = w.units % w.grid;
  if (threadIdx.x % kWarp == 0) *in.work = w;
}

// One block. A matrix's rows are shared out evenly among its tiles.
__global__ void __launch_bounds__(kSortThreads)
    sort_rows_kernel(GroupedExact in, const __grid_constant__ MatrixTable table) {
  __shared__ int rows_of[kMostMatrices], first_tile[kMostMatrices + 1];
  trigger_and_wait();
  const int t = threadIdx.x, groups = static_cast<int>(in.groups), height = in.a.height;
  for (int g = t; g < in.products * groups; g += kSortThreads) in.matrices[g] = table.at[g];
  for (int i = t; in.counters && i < in.most_grid; i += kSortThreads) in.counters[i] = 0;
  for (int g = t; g < groups; g += kSortThreads) rows_of[g] = 0;
  __syncthreads();
  auto matrix = [&](int64_t row) { return static_cast<int>(matmul::matrix_index(in.index[row], groups)); };
  for (int64_t row = t; row < in.rows; row += kSortThreads) {
    const int g = matrix(row);
    if (g < 0) *in.fault = 1;
    in.slot[row] = atomicAdd(&rows_of[g < 0 ? 0 : g], 1);  // its rank, for now
  }
  __syncthreads();
  if (t < kWarp) number_tiles(rows_of, groups, height, first_tile);
  __syncthreads();
  if (t < kWarp) cut_work(in, first_tile[groups]);
  auto per_tile = [&](int g) {
    const int count = first_tile[g + 1] - first_tile[g];
    return (rows_of[g] + count - 1) / count;
  };
  for (int g = t; g < groups; g += kSortThreads) {
    const int first = first_tile[g], count = first_tile[g + 1] - first;
    for (int i = 0; i < count; ++i) {
      const int per = per_tile(g), left = rows_of[g] - i * per;
      in.tiles[first + i] = {g, left < 0 ? 0 : left < per ? left : per, first, count};
    }
  }
  for (int64_t row = t; row < in.rows; row += kSortThreads) {
    const int chosen = matrix(row), g = chosen < 0 ? 0 : chosen, rank = in.slot[row], per = per_tile(g);
    const int slot = (first_tile[g] + rank / per) * height + rank % per;
    const auto r = static_cast<int32_t>(row);
    in.slot[row] = slot, in.row[slot] = chosen < 0 ? -1 - r : r;
  }
}

// Rounds rows of a, a block of threads for each, into the slots of the results that share it.
// kHeld: a thread has one group and keeps it.
template <bool kHeld>
__global__ void __launch_bounds__(1024) round_sorted_kernel(GroupedExact in, const float* from) {
  trigger_and_wait();
  __shared__ uint32_t warp_largest[32];
  constexpr int kGroups = kBlockK / kGroup;
  const int t = threadIdx.x, threads = blockDim.x, groups = in.chunks * kGroups;
  const int64_t count = in.rows / in.share, block_bytes = in.a.block_bytes();
  const int shift = 31 - __clz(in.a.height);  // a power of two
  for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
    const float* x_of = from + r * in.k;
    float x[kGroup];
    uint32_t largest = 0;
    for (int g = t; g < groups; g += threads) {
      load_group<F32>(x, x_of, int64_t{g} * kGroup, in.k);
      for (const float one : x) largest = largest_of(largest, one);
      if (kHeld) break;
    }
    largest = largest_in_warp(largest);
    if (threads > kWarp) {
      __syncthreads();
      if (t % kWarp == 0) warp_largest[t / kWarp] = largest;
      __syncthreads();
      largest = largest_in_warp(t % kWarp < threads / kWarp ? warp_largest[t % kWarp] : 0);
    }
    const int32_t e = num::exact16_scale(largest);
    for (int g = t; g < groups; g += threads) {
      if (!kHeld) load_group<F32>(x, x_of, int64_t{g} * kGroup, in.k);
      for (int64_t s = 0; s < in.share; ++s) {
        const int slot = in.slot[r * in.share + s];
        uint8_t* blocks = in.a.blocks + int64_t{slot >> shift} * in.chunks * block_bytes;
        store_group(x, e, in.a, blocks + g / kGroups * block_bytes, slot & (in.a.height - 1), g % kGroups);
      }
      if (kHeld) break;
    }
    for (int64_t s = t; s < in.share; s += threads) in.a.scales[in.slot[r * in.share + s]] = e;
  }
}

void enqueue_sorted(const GroupedExact& in, const MatrixTable& table, const float* a, Stream stream) {
  launch_dependent(sort_rows_kernel, dim3(1), dim3(kSortThreads), 0, stream, in, table);
  const int64_t warps = ceil_div(int64_t{in.chunks} * (kBlockK / kGroup), kWarp);
  const bool held = warps <= 32;
  launch_dependent(held ? round_sorted_kernel<true> : round_sorted_kernel<false>,
                   dim3(grid_for(in.rows / in.share)), dim3(static_cast<unsigned>(held ? warps : 32) * kWarp),
                   0, stream, in, a);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
