// Sorts the rows of a grouped product by the matrices that they choose, and rounds them into their
// places (grouped_matmul_exact16.3). The order of the rows of a matrix reaches no bit.
#pragma once
#include "ops/matmul/cuda/exact16/grouped/product.h"
#include "ops/matmul/cuda/exact16/quantize.cuh"
#include "ops/matmul/cuda/grouped/matrix_table.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

static_assert(kMostGroupedProducts <= kMostStacks);
constexpr int kSortThreads = 1024;

// How few rows are cut. Where not every block gets an item: whole parts of each, where that leaves
// few blocks without work. A warp, each lane for its number of blocks.
__device__ inline void cut_work(const GroupedExact& in, int tiles) {
  const int items = tiles * in.column_end[in.products - 1], units = items * in.chunks;
  GroupedWork w{};
  w.tiles = tiles, w.grid = min(in.most_grid, units);
  if (w.grid == 0) return;
  w.rounds = items / w.grid;
  for (int most = w.grid; w.rounds == 0 && 20 * most >= 17 * in.most_grid; most -= kWarp) {
    const int g = most - static_cast<int>(threadIdx.x % kWarp);
    const bool even = g > 0 && 20 * g >= 17 * in.most_grid && g % items == 0;
    const unsigned lanes = __ballot_sync(kFullWarp, even);
    if (lanes == 0) continue;
    w.grid = most - __ffs(static_cast<int>(lanes)) + 1;
    break;
  }
  const int rest = units - w.rounds * w.grid * in.chunks;
  w.each = rest / w.grid, w.longer = rest % w.grid;
  if (threadIdx.x % kWarp == 0) *in.work = w;
}

// How many rows chose each matrix, and the tiles these make: in a block's shared memory, or of more
// matrices in global memory.
struct GroupedCounts {
  unsigned* rows;
  int* first_tile;
  // A matrix's rows are shared out evenly among its tiles.
  __device__ int per_tile(int g) const {
    const int tiles = first_tile[g + 1] - first_tile[g];
    return (static_cast<int>(rows[g]) + tiles - 1) / tiles;
  }
  __device__ int slot(int g, int rank, int height) const {
    const int per = per_tile(g);
    return (first_tile[g] + rank / per) * height + rank % per;
  }
};
__device__ inline int chosen_matrix(const GroupedExact& in, int row) {
  return static_cast<int>(matmul::matrix_index(in.index[row], in.groups));
}
__device__ inline int32_t row_of_slot(int chosen, int row) {
  return chosen < 0 ? -1 - row : row;
}
// Calls f(row, matrix or -1) for a thread's rows; several indices are under way at once.
template <class Fn>
__device__ inline void for_rows(const GroupedExact& in, Fn f) {
  constexpr int kAtOnce = 8;
  const int rows = static_cast<int>(in.rows), threads = blockDim.x;
  for (int first = threadIdx.x; first < rows; first += kAtOnce * threads) {
    int chosen[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      chosen[i] = first + i * threads < rows ? chosen_matrix(in, first + i * threads) : 0;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * threads < rows) f(first + i * threads, chosen[i]);
  }
}
// One block: what kernels of the product read beside the rows. `counts` has the rows and tiles.
__device__ inline void store_tiles(const GroupedExact& in, const MatrixTable& table,
                                   const GroupedCounts& counts) {
  const int t = threadIdx.x, threads = blockDim.x, groups = static_cast<int>(in.groups);
  if (t < kWarp) cut_work(in, counts.first_tile[groups]);
  for (int p = 0; p < in.products; ++p)
    for (int g = t; g < groups; g += threads)
      in.matrices[p * groups + g] = static_cast<const uint8_t*>(table.matrix(p, g));
  for (int i = t; in.counters && i < in.most_grid; i += threads) in.counters[i] = 0;
  for (int g = t; g < groups; g += threads) {
    const int first = counts.first_tile[g], count = counts.first_tile[g + 1] - first;
    for (int i = 0; i < count; ++i) {
      const int per = counts.per_tile(g), left = static_cast<int>(counts.rows[g]) - i * per;
      in.tiles[first + i] = {g, max(0, min(left, per)), first, count};
    }
  }
}

// Places many rows, or those of many matrices (kMany). One block.
template <bool kMany>
__global__ void __launch_bounds__(kSortThreads)
    place_all_rows_kernel(GroupedExact in, const __grid_constant__ MatrixTable table) {
  __shared__ unsigned block_rows[kMany ? 1 : kMostMatrices];
  __shared__ int block_first_tile[kMany ? 1 : kMostMatrices + 1];
  const GroupedCounts counts{kMany ? in.rows_of_matrix : block_rows,
                             kMany ? in.first_tile : block_first_tile};
  trigger_and_wait();
  const int groups = static_cast<int>(in.groups), height = in.a.height;
  for (int g = threadIdx.x; g < groups; g += kSortThreads) counts.rows[g] = 0;
  __syncthreads();
  for_rows(in, [&](int row, int chosen) {
    if (chosen < 0) *in.fault = 1;
    in.slot[row] = static_cast<int>(atomicAdd(&counts.rows[max(chosen, 0)], 1u));  // its rank
  });
  __syncthreads();
  if (threadIdx.x < kWarp) number_tiles(counts.rows, groups, height, counts.first_tile);
  __syncthreads();
  store_tiles(in, table, counts);
  for_rows(in, [&](int row, int chosen) {
    const int slot = counts.slot(max(chosen, 0), in.slot[row], height);
    in.slot[row] = slot, in.row[slot] = row_of_slot(chosen, row);
  });
}
// Places the rows that share row `source` of a; each block does the counting again.
constexpr int kMostPlaced = 1024, kMostSharing = 64;
__device__ inline void place_sharing_rows(const GroupedExact& in, const MatrixTable& table, int source,
                                          int (&slots)[kMostSharing]) {
  __shared__ unsigned rows_of_matrix[kMostMatrices], before[kMostMatrices];
  __shared__ int first_tile[kMostMatrices + 1];
  const GroupedCounts counts{rows_of_matrix, first_tile};
  __shared__ int chosen[kMostSharing];
  const int t = threadIdx.x, threads = blockDim.x, groups = static_cast<int>(in.groups);
  const int share = static_cast<int>(in.share), first = source * share;
  for (int g = t; g < groups; g += threads) counts.rows[g] = before[g] = 0;
  __syncthreads();
  for_rows(in, [&](int row, int matrix) {
    if (matrix < 0 && source == 0) *in.fault = 1;
    atomicAdd(&counts.rows[max(matrix, 0)], 1u);
    if (row < first) atomicAdd(&before[max(matrix, 0)], 1u);
    if (row >= first && row < first + share) chosen[row - first] = matrix;
  });
  __syncthreads();
  if (t < kWarp) number_tiles(counts.rows, groups, in.a.height, counts.first_tile);
  __syncthreads();
  for (int s = t; s < share; s += threads) {
    const int g = max(chosen[s], 0);
    int rank = static_cast<int>(before[g]);
    for (int i = 0; i < s; ++i) rank += max(chosen[i], 0) == g ? 1 : 0;
    slots[s] = counts.slot(g, rank, in.a.height);
    in.row[slots[s]] = row_of_slot(chosen[s], first + s);
  }
  if (source == 0) store_tiles(in, table, counts);
  __syncthreads();
}

// Rounds rows of a, a block of threads for each, into the slots of the results that share it.
// kHeld: a thread has one group and keeps it. kPlaces: it also places them.
template <bool kHeld, bool kPlaces>
__global__ void __launch_bounds__(1024)
    round_sorted_kernel(GroupedExact in, const float* from, const __grid_constant__ MatrixTable table) {
  trigger_and_wait();
  __shared__ uint32_t warp_largest[32];
  __shared__ int placed[kMostSharing];
  constexpr int kGroups = kBlockK / kGroup;
  const int t = threadIdx.x, threads = blockDim.x, groups = in.chunks * kGroups;
  const int r = static_cast<int>(blockIdx.x), share = static_cast<int>(in.share);
  const float* x_of = from + r * in.k;
  float x[kGroup];
  if (kHeld && t < groups) load_group<F32>(x, x_of, int64_t{t} * kGroup, in.k);
  const int* slots = in.slot + int64_t{r} * share;
  if constexpr (kPlaces) place_sharing_rows(in, table, r, placed), slots = placed;
  uint32_t largest = 0;
  for (int g = t; g < groups; g += threads) {
    if (!kHeld) load_group<F32>(x, x_of, int64_t{g} * kGroup, in.k);
    for (const float one : x) largest = largest_of(largest, one);
    if (kHeld) break;
  }
  largest = largest_in_warp(largest);
  if (threads > kWarp) {
    if (t % kWarp == 0) warp_largest[t / kWarp] = largest;
    __syncthreads();
    largest = largest_in_warp(t % kWarp < threads / kWarp ? warp_largest[t % kWarp] : 0);
  }
  const int32_t e = num::exact16_scale(largest);
  const int64_t block_bytes = in.a.block_bytes();
  const int shift = 31 - __clz(in.a.height);  // a power of two
  for (int g = t; g < groups; g += threads) {
    if (!kHeld) load_group<F32>(x, x_of, int64_t{g} * kGroup, in.k);
    for (int s = 0; s < share; ++s) {
      const int slot = slots[s];
      uint8_t* blocks = in.a.blocks + int64_t{slot >> shift} * in.chunks * block_bytes;
      store_group(x, e, in.a, blocks + g / kGroups * block_bytes, slot & (in.a.height - 1), g % kGroups);
    }
    if (kHeld) break;
  }
  for (int s = t; s < share; s += threads) in.a.scales[slots[s]] = e;
}

void enqueue_sorted(const GroupedExact& in, const MatrixTable& table, const float* a, Stream stream) {
  const bool many = in.rows_of_matrix != nullptr;
  const bool places = in.rows <= kMostPlaced && in.share <= kMostSharing && !many;
  if (!places) {
    const auto kernel = many ? place_all_rows_kernel<true> : place_all_rows_kernel<false>;
    launch_dependent(kernel, dim3(1), dim3(kSortThreads), 0, stream, in, table);
  }
  const int64_t warps = ceil_div(int64_t{in.chunks} * (kBlockK / kGroup), kWarp);
  const bool held = warps <= 32;
  auto kernel = held ? round_sorted_kernel<true, false> : round_sorted_kernel<false, false>;
  if (places) kernel = held ? round_sorted_kernel<true, true> : round_sorted_kernel<false, true>;
  launch_dependent(kernel, dim3(grid_for(in.rows / in.share)),
                   dim3(static_cast<unsigned>(held ? warps : 32) * kWarp), 0, stream, in, a, table);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
