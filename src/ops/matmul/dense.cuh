// A product from its operands' sources: the choice of its kernel, its workspace, its launch.
#pragma once
#include "ops/matmul/choice.h"
#include "ops/matmul/fp32.cuh"
#include "ops/matmul/rows.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::Choice;
using matmul::Route;
using Large = Tile<matmul::kLargeTile[0], matmul::kLargeTile[1], 8, 8, matmul::kLargeTile[2]>;
using Largest = Tile<matmul::kLargestTile[0], matmul::kLargestTile[1], 16, 8, matmul::kLargestTile[2], 8, 4,
                     num::kSumsKept>;
using Small = Tile<matmul::kSmallTile[0], matmul::kSmallTile[1], 4, 4, matmul::kSmallTile[2]>;

inline bool is_large(const Choice& c) {
  return c.route == Route::large || c.route == Route::large_segments;
}

// Blocks of threads that a launch has: so many run at once, and each takes tile after tile.
template <class T>
int64_t blocks_of(const Job& job) {
  const int64_t most = int64_t{T::kPerProcessor} * processors();
  return job.items() < most ? job.items() : most;
}
// Levels of the tree for which a processor's shared memory has room beside the stages of the blocks it holds.
template <class T>
int shared_levels() {
  const int64_t all = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / T::kPerProcessor;
  const int64_t left =
      all - device_attribute(cudaDevAttrReservedSharedMemoryPerBlock) - int64_t{T::kStageBytes};
  const int64_t levels = left / static_cast<int64_t>(T::kArea * sizeof(float));
  return static_cast<int>(levels < 0 ? 0 : levels > T::kKept ? T::kKept : levels);
}
template <class T>
Job job_of(const Shape& s, const Choice& c) {
  return {s, s.k, ceil_div(s.m, T::kRows), ceil_div(s.n, T::kColumns), c.parts, c.blocks};
}

template <class T>
size_t workspace_of(const Shape& s, const Choice& c) {
  if (c.parts > 1) return static_cast<size_t>(c.parts * s.batches * s.m * s.n) * sizeof(float);
  if (num::segments_in_use(s.k) < 2) return 0;
  return static_cast<size_t>(blocks_of<T>(job_of<T>(s, c)) * T::kKept * T::kArea) * sizeof(float);
}
inline size_t workspace(const Shape& s, const Choice& c) {
  if (c.route == Route::few_rows || s.k == 0) return 0;
  if (c.route == Route::largest) return workspace_of<Largest>(s, c);
  return is_large(c) ? workspace_of<Large>(s, c) : workspace_of<Small>(s, c);
}

// Whether the kernel of few rows can take it: rows of a one after another, and one b.
inline bool fits_rows(const Shape& s, bool packed) {
  constexpr int64_t kMost = int64_t{1} << 30;  // its indices of k have 32 bits, and go a pass beyond
  return packed && !s.trans_a && s.batches == 1 && s.k > 0 && s.k < kMost;
}

template <class T, class A, class B>
void enqueue_tiles(const Shape& s, const Choice& c, const A& a, const B& b, float* out, void* shared,
                   Stream stream) {
  const Job job = job_of<T>(s, c);
  auto* memory = static_cast<float*>(shared);
  float* to = c.parts > 1 ? memory : out;
  const bool wide = s.n % 4 == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0;
  const int in_shared = c.parts > 1 || num::segments_in_use(s.k) < 2 ? 0 : shared_levels<T>();
  const size_t bytes = T::kStageBytes + static_cast<size_t>(in_shared) * T::kArea * sizeof(float);
  launch(gemm_kernel<T, Fp32SumsOf<T>, A, B, F32Out>, dim3(static_cast<unsigned>(blocks_of<T>(job))),
         dim3(T::kThreads), bytes, stream, job, a, b, F32Out{out, memory, wide}, memory, in_shared);
  if (c.parts > 1)
    enqueue_join(memory, s.batches * s.m * s.n, s.k, c.route == Route::small_chains, out, stream);
}

// kLarge: whether it is worth large tiles. A choice of tiles that a source has not goes to smaller ones, which need less memory.
template <bool kLarge, class B>
void enqueue_product(const Shape& s, const Choice& c, const float* a, const B& b, float* out, void* shared,
                     Stream stream) {
  const AlongK rows{a, s.k, s.m, s.k};
  if (s.trans_a)
    return enqueue_tiles<Small>(s, c, AlongOuter<false>{a, s.m, s.m, s.k}, b, out, shared, stream);
  if constexpr (kLarge && B::kDeep <= 2)
    if (c.route == Route::largest) return enqueue_tiles<Largest>(s, c, rows, b, out, shared, stream);
  if constexpr (kLarge)
    if (is_large(c) || c.route == Route::largest)
      return enqueue_tiles<Large>(s, c, rows, b, out, shared, stream);
  enqueue_tiles<Small>(s, c, rows, b, out, shared, stream);
}

// matmul.4: nothing to sum.
inline bool enqueue_zeros(const Shape& s, float* out, Stream stream) {
  if (s.k > 0) return false;
  each(stream, s.batches * s.m * s.n, [=] __device__(int64_t i) { out[i] = 0; });
  return true;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
