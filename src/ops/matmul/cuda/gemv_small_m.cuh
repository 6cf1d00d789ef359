// Products of few rows of a with packed weights, as in a step of decoding: split-K GEMV. Eight
// neighbouring threads sum one chain (contraction.2) of the columns of a panel or more, four
// columns each; a warp has several chains, or several groups of rows. The warps of a block take the
// chains pass by pass and fold them in between. Each warp streams its operands through a circular
// pipeline of its own in shared memory.
#pragma once
#include "num/contract/lanes.h"
#include "kernels/cuda/async_copy.cuh"
#include "ops/matmul/cuda/packed_weight_reader.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The shape of a block: rows x panels, with thread_rows rows a thread; about `length` k in each of
// the `stages` stages; at most `warps` warps.
template <class Reader, int rows, int thread_rows, int panels, int length, int stages, int warps>
struct GemvShape {
  static constexpr int kRows = rows, kThreadRows = thread_rows, kPanels = panels, kStages = stages;
  static constexpr int kMaxWarps = warps, kColumnThreads = kPanelColumns / kQuad;
  static constexpr int kRowGroups = rows / thread_rows;
  static constexpr int kChains = kWarp / kColumnThreads / kRowGroups;                          // of a warp
  static constexpr int kThreadColumns = panels * kQuad, kSums = thread_rows * kThreadColumns;  // of a thread
  static constexpr int kColumns = panels * kPanelColumns, kOutputs = rows * kColumns;
  // A stage: the rows of a for each chain, padded so that chains begin in different banks; then the
  // words of each column.
  static constexpr int kFit = length / Reader::kPerWord < 8 ? length / Reader::kPerWord : 8;
  static constexpr int kWords = kFit < kRowGroups ? kRowGroups : kFit;
  static constexpr int kLength = kWords * Reader::kPerWord, kRow = kLength > 8 ? kLength + 4 : kLength;  // k
  static constexpr int kWordsAt = rows * kChains * kRow;
  static constexpr int kFloats = kWordsAt + panels * kWords * kChains * kPanelColumns;
  static constexpr int kChainStages = static_cast<int>(num::kChain) / kLength;
  // The rows of a come by copies of 16 bytes: kPieces for each chain of a row, kRowsAtOnce rows at
  // once.
  static constexpr int kPieces = kLength / 4, kRowsAtOnce = kWarp / (kPieces * kChains);
  static_assert(kChains > 0 && kWords % kRowGroups == 0 && kRowsAtOnce > 0 && kLength % 4 == 0);
};

struct GemvProblem {
  const float* a;
  const uint32_t* packed;
  float* out;
  int64_t m, n, k, word_rows;  // word_rows: of a packed panel
};
// Products that one kernel makes, all of the same M and K. Product i has the blocks [end[i - 1],
// end[i]).
constexpr int kMaxProducts = 4;
template <class Reader>
struct GroupedGemv {
  int count, passes;
  unsigned end[kMaxProducts];
  GemvProblem problem[kMaxProducts];
  Reader reader[kMaxProducts];
};

// A slot of sorted rows has a row, none, or one without a matrix, whose results are NaN.
constexpr int32_t kNoRow = -1;
__host__ __device__ inline int32_t without_matrix(int32_t row) {  // its own inverse
  return -2 - row;
}

inline __device__ Floats add(const Floats& a, const Floats& b) {
  return {num::add(a.v[0], b.v[0]), num::add(a.v[1], b.v[1]), num::add(a.v[2], b.v[2]),
          num::add(a.v[3], b.v[3])};
}

// Stores a thread's sums of chain `which` of a pass to shared memory, [chain][row][column].
template <class S>
__device__ __forceinline__ void store_chains(const F (&chain)[S::kSums], int which, int row_group, int column,
                                             float* sums) {
  INVAR_UNROLL
  for (int r = 0; r < S::kThreadRows; ++r) INVAR_UNROLL
  for (int p = 0; p < S::kPanels; ++p) {
    const F* x = chain + r * S::kThreadColumns + p * kQuad;
    *reinterpret_cast<float4*>(sums + which * S::kOutputs + (row_group * S::kThreadRows + r) * S::kColumns +
                               p * kPanelColumns + column) = {x[0].v, x[1].v, x[2].v, x[3].v};
  }
}

// Long because loaders, products and folds in functions of their own change the registers: for 16
// rows of bf16 nvcc 13 kept 248 instead of 255, and f32[16,4096] x bf16[14336,4096] took 4 % longer
// on an H100.
// P: GroupedGemv; or products whose rows choose their matrices (grouped.cu): single rows by an
// index, or rows that are sorted by their matrices, each block of them with one.
template <class Reader, class S, class P>
__global__ void __launch_bounds__(S::kMaxWarps* kWarp) gemv_kernel(const __grid_constant__ P products) {
  constexpr bool kIndexed = requires {
    products.index;
  };
  constexpr bool kSorted = requires {
    products.sorted;
  };
  int product = 0;
  while (blockIdx.x >= products.end[product]) ++product;
  const GemvProblem& job = products.problem[product];
  const Reader& reader = products.reader[product];
  const unsigned block = blockIdx.x - (product ? products.end[product - 1] : 0);
  extern __shared__ __align__(16) uint32_t memory[];
  auto* const floats = reinterpret_cast<float*>(memory);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  // This thread's columns in each panel, its group of kThreadRows rows, its chain of the warp's.
  const int column = lane % S::kColumnThreads * kQuad, row_group = lane / S::kColumnThreads % S::kRowGroups,
            own = lane / S::kColumnThreads / S::kRowGroups;
  const int chains = blockDim.x / kWarp * S::kChains, warp_chain = warp * S::kChains;  // of a pass
  const int k_end = static_cast<int>(job.k), blocks = static_cast<int>(num::contraction_blocks(job.k));
  const int64_t row_blocks = ceil_div(job.m, S::kRows), row = block % row_blocks * S::kRows;
  const int64_t first_column = block / row_blocks * S::kColumns;
  const auto* packed = job.packed;
  int64_t row_of_a = row;
  bool has_matrix = true, is_empty = false;  // is_empty: no row in this block of sorted ones
  if constexpr (kIndexed) {
    static_assert(S::kRows == 1);
    wait_for_previous_grid();  // kernels write the index
    const int64_t matrix = matmul::matrix_index(products.index[row], products.groups);
    has_matrix = matrix >= 0, row_of_a = row / products.share;
    if (!has_matrix) *products.fault = 1;
    packed = static_cast<const uint32_t*>(products.matrices.matrix(product, has_matrix ? matrix : 0));
  }
  if constexpr (kSorted) {
    wait_for_previous_grid();  // a kernel sorts the rows
    const int32_t matrix = products.sorted.tile_matrix[row / S::kRows];
    is_empty = matrix < 0;
    if (!is_empty)
      packed = static_cast<const uint32_t*>(products.sorted.matrices[product * products.groups + matrix]);
  }
  float* const stages = floats + warp * S::kStages * S::kFloats;

  // The words of b: of each stage a thread copies every kRowGroups-th word row of four columns of a
  // chain.
  const int word_chain = lane / S::kColumnThreads % S::kChains,
            word_at = lane / S::kColumnThreads / S::kChains;
  const uint32_t* words_from[S::kPanels];
  int width[S::kPanels], words_left, words_stage = 0;  // width 0: no such columns
  {
    const int64_t at = int64_t{warp_chain + word_chain} * num::kChain / Reader::kPerWord + word_at;
    words_left = static_cast<int>(job.word_rows - at);
    INVAR_UNROLL
    for (int p = 0; p < S::kPanels; ++p) {
      const PanelSlice slice = panel_slice(first_column / kPanelColumns + p, job.n, job.word_rows);
      width[p] = column < slice.width ? slice.width : 0;
      words_from[p] = packed + slice.at + column + at * width[p];
    }
  }
  auto load_words = [&](float* stage) {
    float* const to = stage + S::kWordsAt + lane * kQuad;
    INVAR_UNROLL
    for (int p = 0; p < S::kPanels; ++p) {
      INVAR_UNROLL
      for (int i = 0; i < S::kWords / S::kRowGroups; ++i)
        copy_async_16(to + (p * S::kWords / S::kRowGroups + i) * kWarp * kQuad,
                      words_from[p] + i * S::kRowGroups * width[p],
                      i * S::kRowGroups < words_left && width[p]);
      words_from[p] += S::kWords * width[p];
    }
    words_left -= S::kWords;
    if (++words_stage < S::kChainStages) return;
    const int skip = (chains - 1) * static_cast<int>(num::kChain) / Reader::kPerWord;  // to the next pass
    words_stage = 0, words_left -= skip;
    INVAR_UNROLL
    for (int p = 0; p < S::kPanels; ++p) words_from[p] += int64_t{skip} * width[p];
  };

  // The rows of a: of each stage a thread copies four k of every kRowsAtOnce-th row, of one chain.
  const bool aligned = job.k % 4 == 0 && reinterpret_cast<uintptr_t>(job.a) % 16 == 0;
  const int piece = lane % S::kPieces, row_chain = lane / S::kPieces % S::kChains,
            row_at = lane / S::kPieces / S::kChains;
  const int rows_left = static_cast<int>(num::min_i64(job.m - row, S::kRows)) - row_at;
  const int64_t rows_step = S::kRowsAtOnce * job.k;
  int k_left = k_end - (warp_chain + row_chain) * static_cast<int>(num::kChain) - piece * 4, rows_stage = 0;
  const float* rows_from = job.a + (kSorted ? 0 : (row_of_a + row_at) * job.k) + (k_end - k_left);
  constexpr int kRowCopies = kSorted ? (S::kRows + S::kRowsAtOnce - 1) / S::kRowsAtOnce : 1;
  const float* sorted_from[kRowCopies];  // the rows that the thread copies; null: none
  if constexpr (kSorted) {
    INVAR_UNROLL
    for (int i = 0; i < kRowCopies; ++i) {
      const int r = i * S::kRowsAtOnce + row_at;
      const int32_t from = r < S::kRows ? products.sorted.row[row + r] : kNoRow;
      sorted_from[i] = from < 0 ? nullptr : job.a + from / products.share * job.k;
    }
  }
  auto load_rows = [&](float* stage) {
    float* const to = stage + (row_at * S::kChains + row_chain) * S::kRow + piece * 4;
    constexpr int kStep = S::kRowsAtOnce * S::kChains * S::kRow;
    if constexpr (kSorted) {
      const int64_t at = rows_from - job.a;
      INVAR_UNROLL
      for (int i = 0; i < kRowCopies; ++i) {
        if (S::kRows % S::kRowsAtOnce != 0 && i * S::kRowsAtOnce + row_at >= S::kRows) continue;
        const float* const from = sorted_from[i] ? sorted_from[i] + at : job.a;
        if (aligned) {
          copy_async_16(to + i * kStep, from, sorted_from[i] && k_left > 0);
        } else {
#pragma unroll 1
          for (int e = 0; e < 4; ++e)
            copy_async_4(to + i * kStep + e, from + e, sorted_from[i] && e < k_left);
        }
      }
    } else if (aligned) {
      INVAR_UNROLL
      for (int r = 0; r < S::kRows; r += S::kRowsAtOnce)
        if (S::kRows % S::kRowsAtOnce == 0 || r + row_at < S::kRows)
          copy_async_16(to + r / S::kRowsAtOnce * kStep, rows_from + r / S::kRowsAtOnce * rows_step,
                        r < rows_left && k_left > 0);
    } else {
#pragma unroll 1
      for (int i = 0; i < 4 * S::kRows; ++i) {
        const int r = i / 4, e = i % 4;
        if (r % S::kRowsAtOnce == 0 && r + row_at < S::kRows)
          copy_async_4(to + r / S::kRowsAtOnce * kStep + e, rows_from + r / S::kRowsAtOnce * rows_step + e,
                       r < rows_left && e < k_left);
      }
    }
    rows_from += S::kLength, k_left -= S::kLength;
    if (++rows_stage < S::kChainStages) return;
    const int skip = (chains - 1) * static_cast<int>(num::kChain);  // to the next pass
    rows_stage = 0, k_left -= skip, rows_from += skip;
  };

  const int all = products.passes * S::kChainStages;
  // Kernels never write weights, so their loads need not wait.
  INVAR_UNROLL
  for (int s = 0; s < S::kStages - 1 && !is_empty; ++s) load_words(stages + s * S::kFloats);
  wait_for_previous_grid();
  if (is_empty) return;
  INVAR_UNROLL
  for (int s = 0; s < S::kStages - 1; ++s) load_rows(stages + s * S::kFloats), commit_copies();
  float *now = stages, *free = stages + (S::kStages - 1) * S::kFloats;
  // The chains of a pass, in place of the stages if there is but one pass; then the segments.
  float* const sums = floats + (products.passes > 1 ? blockDim.x / kWarp * S::kStages * S::kFloats : 0);
  float* const segments = sums + chains * S::kOutputs;
  for (int pass = 0, s = 0; pass < products.passes; ++pass) {
    const int first_k = (pass * chains + warp_chain + own) * static_cast<int>(num::kChain);
    F chain[S::kSums];
    INVAR_UNROLL
    for (int i = 0; i < S::kSums; ++i) chain[i] = zero();
    typename Reader::GroupParams group[S::kPanels] = {};
    for (int i = 0; i < S::kChainStages; ++i, ++s) {
      wait_copies<S::kStages - 2>();
      __syncwarp();
      const float* const own_rows = now + (row_group * S::kThreadRows * S::kChains + own) * S::kRow;
      const float* const own_words = now + S::kWordsAt + own * kPanelColumns + column;
      const int k = first_k + i * S::kLength;
      uint4 words[S::kPanels][S::kWords];
      INVAR_UNROLL
      for (int u = 0; u < S::kLength; u += 4) {
        typename Reader::Quad weights[S::kPanels][4];
        INVAR_UNROLL
        for (int p = 0; p < S::kPanels; ++p) {
          if (Reader::kScaled && ((u == 0 && i == 0) || (u % 16 == 0 && reader.starts_group(k + u))))
            group[p] = reader.group_params(k + u < k_end ? k + u : 0,
                                           first_column + p * kPanelColumns + column, job.n);
          INVAR_UNROLL
          for (int e = 0; e < 4; ++e) {
            const int v = (u + e) / Reader::kPerWord;
            if ((u + e) % Reader::kPerWord == 0)
              words[p][v] = *reinterpret_cast<const uint4*>(own_words +
                                                            (p * S::kWords + v) * S::kChains * kPanelColumns);
            weights[p][e] = reader.dequantize(words[p][v], group[p], (u + e) % Reader::kPerWord);
            if (Reader::kScaled && k + u + e >= k_end)
              weights[p][e] = {};  // takes no part, whatever its scale is
          }
        }
        float4 x[S::kThreadRows];
        INVAR_UNROLL
        for (int r = 0; r < S::kThreadRows; ++r)
          x[r] = *reinterpret_cast<const float4*>(own_rows + r * S::kChains * S::kRow + u);
        if (u == 0) {  // while those come; all lanes have left the stage before, which is loaded again
          // Blocks of the next grid that start sooner crowd the multiprocessors that have room, and
          // take three times as long.
          if (s + S::kStages == all) trigger_next_grid();
          if (s + S::kStages - 1 < all) load_words(free), load_rows(free);
          commit_copies();
        }
        INVAR_UNROLL
        for (int e = 0; e < 4; ++e) {  // in the serpentine order of fp32_profile.cuh
          INVAR_UNROLL
          for (int i = 0; i < S::kSums; ++i) {
            const int r = i / S::kThreadColumns,
                      q = r % 2 ? S::kThreadColumns - 1 - i % S::kThreadColumns : i % S::kThreadColumns;
            const float a[4] = {x[r].x, x[r].y, x[r].z, x[r].w};
            F& sum = chain[r * S::kThreadColumns + q];
            sum = fma(set1(a[e]), set1(weights[q / kQuad][e].v[q % kQuad]), sum);  // contraction.2
          }
        }
      }
      free = now;
      now = now == stages + (S::kStages - 1) * S::kFloats ? stages : now + S::kFloats;
    }
    const int first = pass * chains, last = first + chains < blocks ? first + chains : blocks;
    if (products.passes == 1) __syncthreads();  // all warps are done with their stages
    store_chains<S>(chain, warp_chain + own, row_group, column, sums);
    __syncthreads();
    const int per = static_cast<int>(num::blocks_per_segment(job.k));
    for (int i = threadIdx.x * kQuad; i < S::kOutputs; i += blockDim.x * kQuad) {
      auto at = [&](float* from, int which) -> Floats& {
        return *reinterpret_cast<Floats*>(from + which * S::kOutputs + i);
      };
#pragma unroll 2
      for (int b = first, segment = first / per; b < last; ++segment) {
        const int end = (segment + 1) * per < last ? (segment + 1) * per : last;
        Floats sum = b > segment * per ? at(segments, segment) : Floats{};
#pragma unroll 2
        for (; b < end; ++b) sum = add(sum, at(sums, b - first));  // contraction.3
        at(segments, segment) = sum;
      }
      if (last < blocks) continue;
      const int used = num::segments_in_use(job.k);
      Floats segment[num::kSegments];
      INVAR_UNROLL
      for (int g = 0; g < num::kSegments; ++g) segment[g] = g < used ? at(segments, g) : Floats{};
      const Floats y = num::join_segments(segment);
      int64_t to_row = row + i / S::kColumns;
      const int64_t to = first_column + i % S::kColumns;
      if constexpr (kSorted) {
        const int32_t r = products.sorted.row[to_row];
        has_matrix = r >= 0, to_row = r == kNoRow ? job.m : has_matrix ? r : without_matrix(r);
      }
      float* const out = job.out + to_row * job.n + to;
      INVAR_UNROLL
      for (int e = 0; e < kQuad; ++e)
        if (to_row < job.m && to + e < job.n)
          out[e] = (kIndexed || kSorted) && !has_matrix ? num::f32_from_bits(0x7fc00000)
                                                        : num::canonicalize(y.v[e]);
    }
    if (last < blocks) __syncthreads();
  }
}

template <class S, class Reader, class P>
void enqueue_gemv_shape(P& products, Stream stream) {
  // As few passes as the warps allow, and no more warps than those passes need.
  const int64_t groups = ceil_div(num::contraction_blocks(products.problem[0].k), S::kChains);
  auto bytes = [&](int64_t warps) {
    const int64_t stages = warps * S::kStages * S::kFloats, sums = warps * S::kChains * S::kOutputs;
    const int64_t folded = sums + num::kSegments * S::kOutputs;
    return sizeof(float) * static_cast<size_t>(groups > warps    ? stages + folded
                                               : stages > folded ? stages
                                                                 : folded);
  };
  const auto most = static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  int64_t warps = ceil_div(groups, ceil_div(groups, S::kMaxWarps));
  while (warps > 1 && bytes(warps) > most) --warps;
  products.passes = static_cast<int>(ceil_div(groups, warps));
  unsigned blocks = 0;
  for (int i = 0; i < products.count; ++i) {
    const GemvProblem& job = products.problem[i];
    blocks += static_cast<unsigned>(ceil_div(job.n, S::kColumns) * ceil_div(job.m, S::kRows));
    products.end[i] = blocks;
  }
  launch_dependent(gemv_kernel<Reader, S, P>, dim3(blocks), dim3(static_cast<unsigned>(warps * kWarp)),
                   bytes(warps), stream, products);
}

// If there are few panels, each block has more stages in flight; 16-bit weights with many panels
// give a block two. Loops are 64 to 1024 multiply-adds long: at 2048 they leave the instruction
// cache and take three times as long.
template <class Reader>
void enqueue_gemv(GroupedGemv<Reader> products, Stream stream) {
  const int64_t m = products.problem[0].m;
  int64_t panels = 0;
  for (int i = 0; i < products.count; ++i) panels += ceil_div(products.problem[i].n, kPanelColumns);
  if constexpr (Reader::kPerWord == 2) {
    if (panels > 2 * multiprocessors()) {
      if (m == 1) return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 16, 3, 8>, Reader>(products, stream);
      if (m > 4 && m <= 8)
        return enqueue_gemv_shape<GemvShape<Reader, 8, 8, 2, 16, 3, 4>, Reader>(products, stream);
      if (m > 8 && m <= 16)
        return enqueue_gemv_shape<GemvShape<Reader, 16, 16, 2, 8, 4, 4>, Reader>(products, stream);
    }
  }
  if (m == 1) return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 8, 8, 8>, Reader>(products, stream);
  if (m <= 4) return enqueue_gemv_shape<GemvShape<Reader, 4, 4, 1, 16, 4, 8>, Reader>(products, stream);
  if (m <= 8) return enqueue_gemv_shape<GemvShape<Reader, 8, 8, 1, 16, 4, 8>, Reader>(products, stream);
  if (m <= 16) return enqueue_gemv_shape<GemvShape<Reader, 16, 8, 1, 16, 4, 8>, Reader>(products, stream);
  enqueue_gemv_shape<GemvShape<Reader, 32, 16, 1, 16, 3, 8>, Reader>(products, stream);
}
template <class Reader>
void enqueue_gemv(const GemvProblem& job, const Reader& reader, Stream stream) {
  enqueue_gemv(GroupedGemv<Reader>{1, 0, {}, {job}, {reader}}, stream);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
