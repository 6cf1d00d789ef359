// Tiled GEMM: a thread block holds a tile of outputs in registers while it goes through K, or
// through a split of K if the tiles alone are too few. The profile (fp32_profile.cuh, integer.cu)
// defines the products, the end of a chain and the epilogue.
#pragma once
#include "ops/matmul/cuda/smem_loader.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::Shape;

// A block has kRows x kColumns outputs and a thread kThreadRows x kThreadColumns of them. A stage
// in shared memory holds kDepth k, and there are kStages. Up to kKept sums of an output wait in
// memory.
template <int rows, int columns, int thread_rows, int thread_columns, int per_multiprocessor, int depth = 16,
          int stages = 3, int kept = num::kSumsKept - 1>
struct TileShape {
  static constexpr int kRows = rows, kColumns = columns, kThreadRows = thread_rows,
                       kThreadColumns = thread_columns, kDepth = depth, kStages = stages, kKept = kept;
  static constexpr int kThreads = rows / thread_rows * (columns / thread_columns),
                       kPerMultiprocessor = per_multiprocessor;
  static constexpr int kSums = thread_rows * thread_columns, kArea = rows * columns;
  static constexpr int kAWords = kDepth * (rows + kPad),
                       kStageWords = kAWords + kDepth * (columns + kPad);  // words
  static constexpr size_t kStageBytes = size_t{kStages} * kStageWords * 4;
  // A warp is 4 x 8 threads, so it reads 64 and 128 bytes of a row of the tiles.
  static constexpr int kWarpRows = 4, kWarpColumns = 8,
                       kWarpsAcross = columns / thread_columns / kWarpColumns;
  static_assert(thread_rows % 4 == 0 && thread_columns % 4 == 0 &&
                columns / thread_columns % kWarpColumns == 0 && rows / thread_rows % kWarpRows == 0);
};

// One product by tiles. A persistent block takes tiles x splits of K x batches, one after another.
struct GemmProblem {
  Shape s;
  int64_t depth;           // K in words of the operands
  int64_t rows, columns;   // tiles
  int64_t splits, chains;  // splits of K, and the chains of each
};
// Products of the same a that one kernel makes: for each its b, its results, and its first column
// of tiles among those of all products.
template <class B, class Out, int most>
struct GroupedGemm {
  static constexpr int kMaxProducts = most;
  int count;
  int64_t columns;  // of tiles, of all products
  int64_t first[most];
  GemmProblem problem[most];  // they differ in N alone
  B b[most];
  Out out[most];
  __host__ __device__ int64_t items() const {
    return problem[0].rows * columns * problem[0].splits * problem[0].s.batches;
  }
};

// The coordinates of a work item. Neighbouring blocks share columns of b, and a band of kBand tiles
// down shares rows of a, so both stay in the L2.
struct TileCoord {
  int product;
  int64_t row, column, split, batch;
};
template <class T, class P>
__device__ TileCoord tile_coord(const P& products, int64_t item) {
  constexpr int64_t kBand = 16;
  const GemmProblem& job = products.problem[0];
  const int64_t tiles = job.rows * products.columns, tile = item % tiles, other = item / tiles;
  const int64_t band = tile / (kBand * products.columns) * kBand, in_band = tile - band * products.columns;
  const int64_t tall = num::min_i64(kBand, job.rows - band), column = in_band / tall;
  int product = 0;
  if constexpr (P::kMaxProducts > 1)
    while (product + 1 < products.count && column >= products.first[product + 1]) ++product;
  return {product, (band + in_band % tall) * T::kRows, (column - products.first[product]) * T::kColumns,
          other % job.splits, other / job.splits};
}

// The memory of a thread's sums that wait at a level of the tree (contraction.4): the lowest
// `in_shared` levels, which are used most, are in shared memory, the others in global memory.
template <class T>
struct SumLevels {
  float* shared;
  int in_shared;
  float* kept;
  __device__ float4* at(int level) const {
    float* from = level < in_shared ? shared + level * T::kArea : kept + level * T::kArea;
    return reinterpret_cast<float4*>(from) + threadIdx.x;
  }
};

// Loads a thread's words of one k from shared memory: kCount words, by fours that are kSpan apart.
template <int kCount, int kSpan, class Word>
__device__ void fragment(const Word* from, Word (&to)[kCount]) {
  INVAR_UNROLL
  for (int g = 0; g < kCount / 4; ++g)
    *reinterpret_cast<uint4*>(to + 4 * g) = *reinterpret_cast<const uint4*>(from + g * kSpan);
}

// Points the loaders at the operands of a tile, from word `begin` of K on.
template <class A, class B, class LoaderA, class LoaderB>
__device__ __forceinline__ void init_loaders(const A& a, const B& b, const GemmProblem& job,
                                             const TileCoord& coord, int begin, LoaderA& loader_a,
                                             LoaderB& loader_b) {
  const matmul::Offsets at = matmul::offsets(job.s, coord.batch);
  A moved_a = a;
  B moved_b = b;
  moved_a.advance(at.a, 0), moved_b.advance(at.b, at.b_matrix);
  loader_a.init(moved_a, coord.row, begin), loader_b.init(moved_b, coord.column, begin);
}

// Long because a function of its own that stores the outputs changes the order of the registers
// with nvcc 13: f32 products of 4096 and 8192 took 2 % longer on an H100.
template <class T, class S, class A, class B, class Out, int most>
__global__ void __launch_bounds__(T::kThreads, T::kPerMultiprocessor)
    gemm_kernel(const __grid_constant__ GroupedGemm<B, Out, most> products, const A a, float* kept,
                int in_shared) {
  using Word = typename S::Word;
  extern __shared__ __align__(16) uint32_t memory[];
  auto* const stages = reinterpret_cast<Word*>(memory);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int y = (warp / T::kWarpsAcross * T::kWarpRows + lane / T::kWarpColumns) * 4;
  const int x = (warp % T::kWarpsAcross * T::kWarpColumns + lane % T::kWarpColumns) * 4;
  const SumLevels<T> levels{reinterpret_cast<float*>(stages + T::kStages * T::kStageWords), in_shared,
                            kept + int64_t{blockIdx.x} * T::kKept * T::kArea};
  const int64_t items = products.items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const TileCoord coord = tile_coord<T>(products, item);
    if constexpr (requires { a.is_empty(coord.row); })  // a's rows are sorted (grouped.cu)
      if (a.is_empty(coord.row / T::kRows)) continue;
    const GemmProblem& job = products.problem[coord.product];
    const Out& out = products.out[coord.product];
    const int64_t row = coord.row, column = coord.column;
    const int64_t first = coord.split * job.chains,
                  last = num::min_i64(first + job.chains, ceil_div(job.depth, S::kChain));
    const int begin = static_cast<int>(first * S::kChain);
    const int end = static_cast<int>(num::min_i64(last * S::kChain, job.depth));
    const bool interior = row + T::kRows <= job.s.m && column + T::kColumns <= job.s.n;
    typename A::template Loader<T::kRows, T::kDepth, T::kThreads> loader_a;
    typename B::template Loader<T::kColumns, T::kDepth, T::kThreads> loader_b;
    init_loaders(a, products.b[coord.product], job, coord, begin, loader_a, loader_b);
    S sums;
    sums.open();
    auto load_stage = [&](Word* stage, int k) {
      if (interior && k + T::kDepth <= end) {
        loader_a.template load_async<true>(stage, k),
            loader_b.template load_async<true>(stage + T::kAWords, k);
      } else if (k < end) {
        loader_a.template load_async<false>(stage, k),
            loader_b.template load_async<false>(stage + T::kAWords, k);
      }
      commit_copies();
    };
    auto store_stage = [&](Word* stage, int k) {
      if (k < end) loader_a.store_smem(stage), loader_b.store_smem(stage + T::kAWords);
    };
    constexpr int kAhead = (T::kStages - 1) * T::kDepth;
    __syncthreads();  // the previous item is done with the stages
    INVAR_UNROLL
    for (int s = 0; s < T::kStages - 1; ++s) {
      load_stage(stages + s * T::kStageWords, begin + s * T::kDepth);
      store_stage(stages + s * T::kStageWords, begin + s * T::kDepth);
    }
    wait_copies<T::kStages - 2>();
    __syncthreads();
    Word *now = stages, *free = stages + (T::kStages - 1) * T::kStageWords;
    Word u[2][T::kThreadRows], v[2][T::kThreadColumns];
    auto fetch = [&](const Word* stage, int i) {
      fragment<T::kThreadRows, T::kRows * 4 / T::kThreadRows>(stage + i * (T::kRows + kPad) + y, u[i % 2]);
      fragment<T::kThreadColumns, T::kColumns * 4 / T::kThreadColumns>(
          stage + T::kAWords + i * (T::kColumns + kPad) + x, v[i % 2]);
    };
    fetch(now, 0);
    for (int chain = begin; chain < end;) {
      const int stop = S::kChain < end - chain ? chain + static_cast<int>(S::kChain) : end;
      for (int k = chain; k < stop; k += T::kDepth) {
        load_stage(free, k + kAhead);
        INVAR_UNROLL
        for (int i = 0; i < T::kDepth; ++i) {
          if (i + 1 < T::kDepth) {
            fetch(now, i + 1);
          } else {  // all threads have read this stage, and the next one has arrived
            store_stage(free, k + kAhead);
            wait_copies<T::kStages - 2>();
            __syncthreads();
            free = now;
            now = now == stages + (T::kStages - 1) * T::kStageWords ? stages : now + T::kStageWords;
            fetch(now, 0);
          }
          sums.add_products(u[i % 2], v[i % 2]);
        }
      }
      sums.close(chain, job, levels);
      chain = stop;
    }
    typename Out::Element* const corner =
        out.matrix(job, coord.split, coord.batch) + (row + y) * job.s.n + column + x;
    INVAR_UNROLL
    for (int r = 0; r < T::kThreadRows; ++r) {
      const int down = r / 4 * (T::kRows * 4 / T::kThreadRows) + r % 4;
      if (row + y + down >= job.s.m) continue;
      INVAR_UNROLL
      for (int c = 0; c < T::kThreadColumns; c += 4) {
        const int across = c / 4 * (T::kColumns * 4 / T::kThreadColumns);
        if (column + x + across >= job.s.n) continue;
        const typename S::Sum four[4] = {sums.result(r, c), sums.result(r, c + 1), sums.result(r, c + 2),
                                         sums.result(r, c + 3)};
        out.store(job, corner + down * job.s.n + across, row + y + down, column + x + across, four);
      }
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
