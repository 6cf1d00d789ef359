// A product with a float b, from the readers of its operands: choice of tiles, workspace, launch.
#pragma once
#include "ops/matmul/cuda/fp32_profile.cuh"
#include "ops/matmul/cuda/gemv_small_m.cuh"
#include "ops/matmul/cuda/select_kernel.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::KernelChoice;
using matmul::Route;
using Large = TileShape<matmul::kLargeTile[0], matmul::kLargeTile[1], 8, 8, matmul::kLargeTile[2]>;
using Largest = TileShape<matmul::kLargestTile[0], matmul::kLargestTile[1], 16, 8, matmul::kLargestTile[2], 8,
                          4, num::kSumsKept>;
using Small = TileShape<matmul::kSmallTile[0], matmul::kSmallTile[1], 4, 4, matmul::kSmallTile[2]>;

inline bool is_large(const KernelChoice& c) {
  return c.route == Route::large || c.route == Route::large_segments;
}

// The grid of persistent blocks: those that run at once. Each takes tile after tile.
template <class T>
int64_t blocks_of(int64_t items) {
  const int64_t most = int64_t{T::kPerMultiprocessor} * multiprocessors();
  return items < most ? items : most;
}
// How many levels of the tree fit in a multiprocessor's shared memory beside the stages of its
// blocks.
template <class T>
int shared_levels() {
  const int64_t all = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / T::kPerMultiprocessor;
  const int64_t left =
      all - device_attribute(cudaDevAttrReservedSharedMemoryPerBlock) - int64_t{T::kStageBytes};
  const int64_t levels = left / static_cast<int64_t>(T::kArea * sizeof(float));
  return static_cast<int>(levels < 0 ? 0 : levels > T::kKept ? T::kKept : levels);
}
template <class T>
GemmProblem problem_of(const Shape& s, const KernelChoice& c) {
  return {s, s.k, ceil_div(s.m, T::kRows), ceil_div(s.n, T::kColumns), c.splits, c.chains};
}

template <class T>
size_t workspace_of(const Shape& s, const KernelChoice& c) {
  if (c.splits > 1) return static_cast<size_t>(c.splits * s.batches * s.m * s.n) * sizeof(float);
  if (num::segments_in_use(s.k) < 2) return 0;
  const GemmProblem job = problem_of<T>(s, c);
  return static_cast<size_t>(blocks_of<T>(job.rows * job.columns * s.batches) * T::kKept * T::kArea) *
         sizeof(float);
}
inline size_t workspace(const Shape& s, const KernelChoice& c) {
  if (c.route == Route::gemv || s.k == 0) return 0;
  if (c.route == Route::largest) return workspace_of<Largest>(s, c);
  return is_large(c) ? workspace_of<Large>(s, c) : workspace_of<Small>(s, c);
}

// Whether the GEMV kernel can take a product: rows of a are contiguous, and there is one packed b.
inline bool fits_gemv(const Shape& s, bool packed) {
  constexpr int64_t kMaxK = int64_t{1} << 30;  // its indices of k have 32 bits and run a pass beyond K
  return packed && !s.trans_a && s.batches == 1 && s.k > 0 && s.k < kMaxK;
}

// Products of one a: `shapes` differ in N alone; b and out are those of each product.
template <class T, int most, class A, class B>
void enqueue_tiles(std::span<const Shape> shapes, const KernelChoice& c, const A& a, const B* b,
                   float* const* out, void* shared, Stream stream) {
  auto* const memory = static_cast<float*>(shared);
  GroupedGemm<B, F32Out, most> products{};
  float* splits = memory;
  for (const Shape& s : shapes) {
    const int p = products.count++;
    float* const to = c.splits > 1 ? splits : out[p];
    products.first[p] = products.columns, products.problem[p] = problem_of<T>(s, c), products.b[p] = b[p];
    products.out[p] = {out[p], splits, s.n % 4 == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0};
    products.columns += products.problem[p].columns, splits += c.splits * s.batches * s.m * s.n;
  }
  const int in_shared = c.splits > 1 || num::segments_in_use(shapes[0].k) < 2 ? 0 : shared_levels<T>();
  const size_t bytes = T::kStageBytes + static_cast<size_t>(in_shared) * T::kArea * sizeof(float);
  launch(gemm_kernel<T, Fp32SumsOf<T>, A, B, F32Out, most>,
         dim3(static_cast<unsigned>(blocks_of<T>(products.items()))), dim3(T::kThreads), bytes, stream,
         products, a, memory, in_shared);
  if (c.splits > 1) enqueue_split_k_sum(products, c.route == Route::small_chains, stream);
}
template <class T, class A, class B>
void enqueue_tiles(const Shape& s, const KernelChoice& c, const A& a, const B& b, float* out, void* shared,
                   Stream stream) {
  enqueue_tiles<T, 1>({&s, 1}, c, a, &b, &out, shared, stream);
}

// The tile of the choice; if it is not instantiated, a smaller one, which needs less
// memory.
template <bool kLarge, class A, class B>
void enqueue_chosen_tiles(const Shape& s, const KernelChoice& c, const A& a, const B& b, float* out,
                          void* shared, Stream stream) {
  if constexpr (kLarge && B::kPerWord <= 2)
    if (c.route == Route::largest) return enqueue_tiles<Largest>(s, c, a, b, out, shared, stream);
  if constexpr (kLarge)
    if (is_large(c) || c.route == Route::largest)
      return enqueue_tiles<Large>(s, c, a, b, out, shared, stream);
  enqueue_tiles<Small>(s, c, a, b, out, shared, stream);
}
// kLarge: whether kernels with large tiles are instantiated for this b.
template <bool kLarge, class B>
void enqueue_product(const Shape& s, const KernelChoice& c, const float* a, const B& b, float* out,
                     void* shared, Stream stream) {
  if (!s.trans_a)
    return enqueue_chosen_tiles<kLarge>(s, c, KContiguous{a, s.k, s.m, s.k}, b, out, shared, stream);
  // Of gradients of weights. Only plain f32 has kernels with large tiles for them.
  constexpr bool kPlain = std::is_same_v<B, KContiguous> || std::is_same_v<B, OuterContiguous<true>>;
  if constexpr (kLarge && kPlain)
    if (s.m % 4 == 0 && reinterpret_cast<uintptr_t>(a) % 16 == 0)
      return enqueue_chosen_tiles<true>(s, c, OuterContiguous<true>{a, s.m, s.m, s.k}, b, out, shared,
                                        stream);
  enqueue_tiles<Small>(s, c, OuterContiguous<false>{a, s.m, s.m, s.k}, b, out, shared, stream);
}

// matmul.4: nothing to sum.
inline bool enqueue_zeros(const Shape& s, float* out, Stream stream) {
  if (s.k > 0) return false;
  launch_for_each(stream, s.batches * s.m * s.n, [=] __device__(int64_t i) { out[i] = 0; });
  return true;
}

// Rows of words of one packed matrix of b.
inline int64_t word_rows(int64_t k, DType t) {
  return t == DType::f32 ? k : ceil_div(k, 2);
}
// The shape of a constant b: its matrices are packed one after another (packed_weight_reader.cuh).
inline Shape constant_shape(const View& b, const Attributes& attrs) {
  Shape s{};
  s.trans_b = MatmulAttributes(attrs).trans_b != 0;
  s.k = b.dim[b.rank - (s.trans_b ? 1 : 2)], s.n = b.dim[b.rank - (s.trans_b ? 2 : 1)];
  s.matrices_b = 1;
  for (int i = 0; i + 2 < b.rank; ++i) s.matrices_b *= b.dim[i];
  return s;
}
inline size_t packed_bytes(const View& b, const Attributes& attrs) {
  const Shape s = constant_shape(b, attrs);
  return static_cast<size_t>(s.matrices_b * packed_words(s.n, word_rows(s.k, b.dtype))) * sizeof(uint32_t);
}
inline void enqueue_pack_floats(const View& b, int, const Attributes& attrs, void* packed, Stream stream) {
  const Shape s = constant_shape(b, attrs);
  auto* to = static_cast<uint32_t*>(packed);
  with_reader(b.dtype, b.data, s.trans_b ? Strides{1, s.k} : Strides{s.n, 1}, [&](auto reader) {
    for (int64_t i = 0; i < s.matrices_b; ++i, reader.advance(s.k * s.n))
      enqueue_pack_words(reader, s.n, s.k, to + i * packed_words(s.n, word_rows(s.k, b.dtype)), stream);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
