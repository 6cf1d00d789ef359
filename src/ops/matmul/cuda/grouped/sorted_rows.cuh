// Rows sorted by the matrices that they choose, in tiles of one matrix each (grouped_matmul.3).
#pragma once
#include "ops/matmul/cuda/float_b.cuh"
#include "ops/matmul/cuda/grouped/matrix_table.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

static_assert(kMaxProducts <= kMostStacks);

// The rows of a in the order of their matrices; each tile of rows has one matrix. k are contiguous.
struct SortedRows : KContiguous {
  const int32_t* row;          // of a slot
  const int32_t* tile_matrix;  // of a tile, or -1
  const void* const* matrices;
  int64_t share;
  __device__ bool is_empty(int64_t tile) const { return tile_matrix[tile] < 0; }

  template <int kTile, int kDepth, int kThreads>
  struct Loader : KContiguous::Loader<kTile, kDepth, kThreads> {
    __device__ void init(const SortedRows& s, int64_t first, int from) {
      const int i = threadIdx.x % 8, o = threadIdx.x / 8;
      this->k = s.k - i, this->to = i * (kTile + kPad) + o;
      INVAR_UNROLL
      for (int d = 0; d < this->kDown; ++d) {
        const int32_t row = s.row[first + o + d * this->kRows];
        this->in[d] = row >= 0;
        this->at[d] = s.p + (row >= 0 ? row / s.share : 0) * s.ld + from + i;
      }
    }
  };
};
template <class B, class LoaderA, class LoaderB>
__device__ __forceinline__ void init_loaders(const SortedRows& a, const B& b, const GemmProblem& job,
                                             const TileCoord& coord, int begin, LoaderA& loader_a,
                                             LoaderB& loader_b) {
  B moved = b;
  moved.move_to(a.matrices[a.tile_matrix[coord.row / (job.s.m / job.rows)]]);
  loader_a.init(a, coord.row, begin), loader_b.init(moved, coord.column, begin);
}

// Stores the rows of a tile where they belong.
struct SortedOut {
  float* to;
  const int32_t* row;
  bool aligned;  // rows of four are aligned to 16 bytes
  using Element = float;
  __device__ float* matrix(const GemmProblem&, int64_t, int64_t) const { return to; }
  __device__ void store(const GemmProblem& job, float*, int64_t i, int64_t j, const F (&y)[4]) const {
    const int32_t r = row[i];
    if (r == kNoRow) return;
    float* const at = to + int64_t{r < 0 ? without_matrix(r) : r} * job.s.n + j;
    float x[4];
    INVAR_UNROLL
    for (int e = 0; e < 4; ++e) x[e] = r < 0 ? num::f32_from_bits(0x7fc00000) : num::canonicalize(y[e].v);
    if (aligned) {
      *reinterpret_cast<float4*>(at) = {x[0], x[1], x[2], x[3]};
    } else {
      INVAR_UNROLL
      for (int e = 0; e < 4; ++e)
        if (j + e < job.s.n) at[e] = x[e];
    }
  }
};

// Call::shared: the list of matrices, what a block's shared memory does not hold of more than
// kMostMatrices (SortCounts), the matrix of each tile, the row of each slot, kept sums.
struct Sorted {
  const void** matrices;
  unsigned* next;
  int* first_tile;
  int32_t *tile_matrix, *row;
  float* kept;
};
int64_t most_tiles(const GroupedShape& s, int64_t tile_rows) {
  return ceil_div(s.rows, tile_rows) + num::min_i64(s.groups, s.rows);
}
Sorted sorted_in(void* memory, const GroupedShape& s, int64_t tile_rows) {
  Sorted w{};
  w.matrices = static_cast<const void**>(memory);
  w.next = reinterpret_cast<unsigned*>(w.matrices + matrices_listed(s));
  const int64_t counts = counts_fit_block(s) ? 0 : (s.groups + 16) / 16 * 16;  // one more than matrices
  w.first_tile = reinterpret_cast<int*>(w.next + counts);
  w.tile_matrix = reinterpret_cast<int32_t*>(w.first_tile + counts);
  const int64_t tiles = (most_tiles(s, tile_rows) + 15) / 16 * 16;
  w.row = w.tile_matrix + tiles;
  w.kept = reinterpret_cast<float*>(w.row + tiles * tile_rows);
  return w;
}
// Without the kept sums.
size_t sorted_bytes(const GroupedShape& s, int64_t tile_rows) {
  const char* const none = nullptr;
  return static_cast<size_t>(reinterpret_cast<const char*>(sorted_in(nullptr, s, tile_rows).kept) - none);
}

// One block. The order of the rows of a matrix reaches no bit. kMany: more than kMostMatrices,
// whose rows are counted in global memory.
constexpr int kSortThreads = 1024;
template <bool kMany>
__global__ void __launch_bounds__(kSortThreads)
    sort_kernel(GroupedShape s, int products, int tile_rows, int tiles, const int64_t* index, uint32_t* fault,
                Sorted to, const __grid_constant__ MatrixTable table) {
  __shared__ unsigned block_next[kMany ? 1 : kMostMatrices];
  __shared__ int block_first_tile[kMany ? 1 : kMostMatrices + 1];
  unsigned* const next = kMany ? to.next : block_next;
  int* const first_tile = kMany ? to.first_tile : block_first_tile;
  trigger_and_wait();
  for (int p = 0; p < products; ++p)
    for (int64_t g = threadIdx.x; g < s.groups; g += kSortThreads)
      to.matrices[p * s.groups + g] = table.matrix(p, g);
  for (int g = threadIdx.x; g < s.groups; g += kSortThreads) next[g] = 0;
  for (int i = threadIdx.x; i < tiles; i += kSortThreads) to.tile_matrix[i] = -1;
  for (int64_t i = threadIdx.x; i < int64_t{tiles} * tile_rows; i += kSortThreads) to.row[i] = kNoRow;
  __syncthreads();
  auto matrix = [&](int64_t row) { return static_cast<int>(matmul::matrix_index(index[row], s.groups)); };
  for (int64_t row = threadIdx.x; row < s.rows; row += kSortThreads) {
    const int g = matrix(row);
    if (g < 0) *fault = 1;
    atomicAdd(&next[g < 0 ? 0 : g], 1u);
  }
  __syncthreads();
  if (threadIdx.x < kWarp) number_tiles(next, static_cast<int>(s.groups), tile_rows, first_tile);
  __syncthreads();
  for (int g = threadIdx.x; g < s.groups; g += kSortThreads) {
    for (int t = first_tile[g]; t < first_tile[g + 1]; ++t) to.tile_matrix[t] = g;
    next[g] = static_cast<unsigned>(first_tile[g] * tile_rows);
  }
  __syncthreads();
  for (int64_t row = threadIdx.x; row < s.rows; row += kSortThreads) {
    const int g = matrix(row);
    const auto r = static_cast<int32_t>(row);
    to.row[atomicAdd(&next[g < 0 ? 0 : g], 1u)] = g < 0 ? without_matrix(r) : r;
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
