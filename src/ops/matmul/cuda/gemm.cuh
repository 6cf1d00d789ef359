// Products by tiles: a block of threads holds a tile of outputs in registers while it goes through K, or through a part of
// it where tiles alone are too few. What a product is, what is done at the end of a chain and how results are stored is the
// profile's (fp32.cuh, integer.cu).
#pragma once
#include "ops/matmul/cuda/smem_loader.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::Shape;

// kRows x kColumns outputs of a block, kTall x kWide of a thread, kDepth k in shared memory, kStages times; sums of an output
// that may wait in memory.
template <int rows, int columns, int tall, int wide, int per_processor, int depth = 16, int stages = 3,
          int kept = num::kSumsKept - 1>
struct Tile {
  static constexpr int kRows = rows, kColumns = columns, kTall = tall, kWide = wide, kDepth = depth,
                       kStages = stages, kKept = kept;
  static constexpr int kThreads = rows / tall * (columns / wide), kPerProcessor = per_processor;
  static constexpr int kSums = tall * wide, kArea = rows * columns;
  static constexpr int kLeft = kDepth * (rows + kPad), kStage = kLeft + kDepth * (columns + kPad);  // words
  static constexpr size_t kStageBytes = size_t{kStages} * kStage * 4;
  // A warp's threads: 4 down, 8 across; so it reads 64 and 128 bytes of a row of the tiles.
  static constexpr int kDown = 4, kAcross = 8, kWarpsAcross = columns / wide / kAcross;
  static_assert(tall % 4 == 0 && wide % 4 == 0 && columns / wide % kAcross == 0 && rows / tall % kDown == 0);
};

// What a block does: tiles x parts of K x products, one after another.
struct Job {
  Shape s;
  int64_t depth;          // K in steps of the tiles
  int64_t rows, columns;  // tiles
  int64_t parts, blocks;  // of K: how many, and the chains of each
};
// Products of the same a that one kernel makes: for each its b, its results, and where its columns of tiles begin among all.
template <class B, class Out, int most>
struct Tiled {
  static constexpr int kMost = most;
  int count;
  int64_t columns;  // of tiles, of all
  int64_t first[most];
  Job job[most];  // which differ in N
  B b[most];
  Out out[most];
  __host__ __device__ int64_t items() const {
    return job[0].rows * columns * job[0].parts * job[0].s.batches;
  }
};

// Where an item stands. Neighbouring blocks share columns of b, and a band of kBand tiles down shares rows of a: both stay in
// the L2.
struct Place {
  int product;
  int64_t row, column, part, batch;
};
template <class T, class P>
__device__ Place place_of(const P& products, int64_t item) {
  constexpr int64_t kBand = 16;
  const Job& job = products.job[0];
  const int64_t tiles = job.rows * products.columns, tile = item % tiles, other = item / tiles;
  const int64_t band = tile / (kBand * products.columns) * kBand, in_band = tile - band * products.columns;
  const int64_t tall = num::min_i64(kBand, job.rows - band), column = in_band / tall;
  int product = 0;
  if constexpr (P::kMost > 1)
    while (product + 1 < products.count && column >= products.first[product + 1]) ++product;
  return {product, (band + in_band % tall) * T::kRows, (column - products.first[product]) * T::kColumns,
          other % job.parts, other / job.parts};
}

// Where a thread keeps sums that wait at a level of a tree: the lowest `in_shared` levels, which are used most, in
// shared memory, the others in memory that the L2 holds.
template <class T>
struct Levels {
  float* shared;
  int in_shared;
  float* kept;
  __device__ float4* at(int level) const {
    float* from = level < in_shared ? shared + level * T::kArea : kept + level * T::kArea;
    return reinterpret_cast<float4*>(from) + threadIdx.x;
  }
};

// The words of one k of a thread: kCount in fours, kSpan apart.
template <int kCount, int kSpan, class Word>
__device__ void fragment(const Word* from, Word (&to)[kCount]) {
  INVAR_UNROLL
  for (int g = 0; g < kCount / 4; ++g)
    *reinterpret_cast<uint4*>(to + 4 * g) = *reinterpret_cast<const uint4*>(from + g * kSpan);
}

template <class T, class S, class A, class B, class Out, int most>
__global__ void __launch_bounds__(T::kThreads, T::kPerProcessor)
    gemm_kernel(const __grid_constant__ Tiled<B, Out, most> products, const A a, float* kept, int in_shared) {
  using Word = typename S::Word;
  extern __shared__ __align__(16) uint32_t memory[];
  auto* const stages = reinterpret_cast<Word*>(memory);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int y = (warp / T::kWarpsAcross * T::kDown + lane / T::kAcross) * 4;
  const int x = (warp % T::kWarpsAcross * T::kAcross + lane % T::kAcross) * 4;
  const Levels<T> levels{reinterpret_cast<float*>(stages + T::kStages * T::kStage), in_shared,
                         kept + int64_t{blockIdx.x} * T::kKept * T::kArea};
  const int64_t items = products.items();
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const Place place = place_of<T>(products, item);
    const Job& job = products.job[place.product];
    const Out& out = products.out[place.product];
    const int64_t row = place.row, column = place.column, batch = place.batch, part = place.part;
    const int64_t first = part * job.blocks,
                  last = num::min_i64(first + job.blocks, ceil_div(job.depth, S::kChain));
    const int begin = static_cast<int>(first * S::kChain);
    const int end = static_cast<int>(num::min_i64(last * S::kChain, job.depth));
    const bool whole = row + T::kRows <= job.s.m && column + T::kColumns <= job.s.n;
    typename A::template Loader<T::kRows, T::kDepth, T::kThreads> from_a;
    typename B::template Loader<T::kColumns, T::kDepth, T::kThreads> from_b;
    {
      const matmul::Offsets at = matmul::offsets(job.s, batch);
      A moved_a = a;
      B moved_b = products.b[place.product];
      moved_a.move(at.a, 0), moved_b.move(at.b, at.b_matrix);
      from_a.begin(moved_a, row, begin), from_b.begin(moved_b, column, begin);
    }
    S sums;
    sums.open();
    auto ask = [&](Word* stage, int k) {
      if (whole && k + T::kDepth <= end) {
        from_a.template ask<true>(stage, k), from_b.template ask<true>(stage + T::kLeft, k);
      } else if (k < end) {
        from_a.template ask<false>(stage, k), from_b.template ask<false>(stage + T::kLeft, k);
      }
      copies_end();
    };
    auto put = [&](Word* stage, int k) {
      if (k < end) from_a.put(stage), from_b.put(stage + T::kLeft);
    };
    constexpr int kAhead = (T::kStages - 1) * T::kDepth;
    __syncthreads();  // the last item is done with the stages
    INVAR_UNROLL
    for (int s = 0; s < T::kStages - 1; ++s) {
      ask(stages + s * T::kStage, begin + s * T::kDepth);
      put(stages + s * T::kStage, begin + s * T::kDepth);
    }
    copies_wait<T::kStages - 2>();
    __syncthreads();
    Word *now = stages, *free = stages + (T::kStages - 1) * T::kStage;
    Word u[2][T::kTall], v[2][T::kWide];
    auto fetch = [&](const Word* stage, int i) {
      fragment<T::kTall, T::kRows * 4 / T::kTall>(stage + i * (T::kRows + kPad) + y, u[i % 2]);
      fragment<T::kWide, T::kColumns * 4 / T::kWide>(stage + T::kLeft + i * (T::kColumns + kPad) + x,
                                                     v[i % 2]);
    };
    fetch(now, 0);
    for (int chain = begin; chain < end;) {
      const int stop = S::kChain < end - chain ? chain + static_cast<int>(S::kChain) : end;
      for (int k = chain; k < stop; k += T::kDepth) {
        ask(free, k + kAhead);
        INVAR_UNROLL
        for (int i = 0; i < T::kDepth; ++i) {
          if (i + 1 < T::kDepth) {
            fetch(now, i + 1);
          } else {  // all have read this stage, and what the next needs is there
            put(free, k + kAhead);
            copies_wait<T::kStages - 2>();
            __syncthreads();
            free = now;
            now = now == stages + (T::kStages - 1) * T::kStage ? stages : now + T::kStage;
            fetch(now, 0);
          }
          sums.add_products(u[i % 2], v[i % 2]);
        }
      }
      sums.close(chain, job, levels);
      chain = stop;
    }
    typename Out::Element* const corner = out.matrix(job, part, batch) + (row + y) * job.s.n + column + x;
    INVAR_UNROLL
    for (int r = 0; r < T::kTall; ++r) {
      const int down = r / 4 * (T::kRows * 4 / T::kTall) + r % 4;
      if (row + y + down >= job.s.m) continue;
      INVAR_UNROLL
      for (int c = 0; c < T::kWide; c += 4) {
        const int across = c / 4 * (T::kColumns * 4 / T::kWide);
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
