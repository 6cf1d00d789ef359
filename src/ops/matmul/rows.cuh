// Few rows of a and packed columns: what a step of decoding does. A group of 8 threads sums one chain (contraction.2) of the
// columns of a panel or two, a thread four of each. The groups of a block take the chains pass by pass, and fold them in
// between. Every warp streams what it needs through a ring of its own in shared memory.
#pragma once
#include "num/contract/lanes.h"
#include "ops/matmul/async.cuh"
#include "ops/matmul/words.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGroupThreads = kPanelColumns / kQuad, kGroups = kWarp / kGroupThreads;  // of a warp

// What a block is for R rows and kPanels panels.
template <class Words, int R, int kPanels, int ring>
struct RowsShape {
  static constexpr int kMostWarps = R * kPanels >= 16 ? 4 : 8, kRing = ring;
  static constexpr int kColumns = kPanels * kPanelColumns, kOutputs = R * kColumns;
  // A stage of a warp's ring: R rows of a for each of its chains, which begin in different banks; then words, so many of a
  // panel for a thread.
  static constexpr int kWords = R <= 4 || Words::kDeep <= 2 ? 4 : 8 / Words::kDeep;
  static constexpr int kLength = kWords * Words::kDeep;  // k
  static constexpr int kRow = kLength > 8 ? kLength + 4 : kLength;
  static constexpr int kWordsAt = R * kGroups * kRow;
  static constexpr int kFloats = kWordsAt + kPanels * kWords * kWarp * kQuad;
  static constexpr int kOfChain = static_cast<int>(num::kChain) / kLength;
  // Rows whose chains are folded at once, and what is kept of every output from pass to pass.
  static constexpr int kFold = R < 4 ? R : 4, kKept = num::kSumsKept * kOutputs;
  static size_t bytes(int warps) {
    return static_cast<size_t>(warps * (kRing * kFloats + kGroups * kFold * kColumns) + kKept) *
           sizeof(float);
  }
};

struct Rows {
  const float* a;
  const uint32_t* packed;
  float* out;
  int64_t m, n, k, words;  // words: rows of a packed panel
};

// The chains [first, last) of an output after those before: chain(b) is that of block b, kept(s) where sum s of kSumsKept
// stands. True where these were the last: *y is the contraction then.
template <class Chain, class Kept>
__device__ bool fold(int first, int last, int blocks, int per, Chain chain, Kept kept, float* y) {
  float sum = first ? *kept(0) : 0.0f;
  for (int b = first, segment = first / per, end = (segment + 1) * per; b < last;) {
    sum = num::add(sum, chain(b));  // contraction.3
    if (++b != end && b != blocks) continue;
    climb(
        segment, b == blocks, [&](int level) { sum = num::add(*kept(1 + level), sum); },
        [&](int level) { *kept(1 + level) = sum, sum = 0; });
    ++segment, end += per;
  }
  *kept(0) = *y = sum;
  return last == blocks;
}

template <class Words, int R, int kPanels, int ring>
__global__ void __launch_bounds__(RowsShape<Words, R, kPanels, ring>::kMostWarps* kWarp)
    rows_kernel(const Rows job, const Words w) {
  using S = RowsShape<Words, R, kPanels, ring>;
  extern __shared__ __align__(16) uint32_t memory[];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, group = lane / kGroupThreads;
  const int warps = blockDim.x / kWarp, chains = warps * kGroups;
  const int blocks = static_cast<int>(num::contraction_blocks(job.k));
  const int per = static_cast<int>(num::blocks_per_segment(job.k)), column = lane % kGroupThreads * kQuad;
  const int64_t row_blocks = ceil_div(job.m, R), row = blockIdx.x % row_blocks * R;
  const int64_t first_column = blockIdx.x / row_blocks * S::kColumns;
  const uint32_t* packed[kPanels];
  int width[kPanels];  // 0: no such columns
  INVAR_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    const PanelPlace place = panel_place(first_column / kPanelColumns + p, job.n, job.words);
    packed[p] = job.packed + place.at + column;
    width[p] = column < place.width ? place.width : 0;
  }
  float* const stages = reinterpret_cast<float*>(memory) + warp * ring * S::kFloats;
  float* const sums =
      reinterpret_cast<float*>(memory) + warps * ring * S::kFloats;  // [chains][kFold][kColumns]
  float* const kept = sums + chains * S::kFold * S::kColumns;
  const int64_t rows_of_words = ceil_div(job.k, Words::kDeep);
  const bool wide = job.k % 4 == 0 && reinterpret_cast<uintptr_t>(job.a) % 16 == 0;

  // Stage s of this warp's work: of its chains, pass after pass.
  auto ask_words = [&](int s, float* to) {
    const int first = s / S::kOfChain * chains + warp * kGroups, k0 = s % S::kOfChain * S::kLength;
    const int64_t at = (int64_t{first + group} * num::kChain + k0) / Words::kDeep;
    INVAR_UNROLL
    for (int p = 0; p < kPanels; ++p) INVAR_UNROLL
    for (int i = 0; i < S::kWords; ++i)
      copy_16(to + S::kWordsAt + ((p * S::kWords + i) * kWarp + lane) * kQuad,
              packed[p] + (at + i) * width[p], at + i < rows_of_words && width[p]);
  };
  auto ask_rows = [&](int s, float* to) {
    const int first = s / S::kOfChain * chains + warp * kGroups, k0 = s % S::kOfChain * S::kLength;
    constexpr int kAcross = S::kLength / 4, kPieces = R * kGroups * kAcross;
    INVAR_UNROLL
    for (int p = lane; p < kPieces; p += kWarp) {
      const int i = p % kAcross * 4, g = p / kAcross % kGroups, r = p / kAcross / kGroups;
      const int64_t from = int64_t{first + g} * num::kChain + k0 + i;
      const float* x = job.a + (row + r) * job.k + from;
      float* y = to + (r * kGroups + g) * S::kRow + i;
      if (wide) {
        copy_16(y, x, from < job.k && row + r < job.m);
      } else {
        INVAR_UNROLL
        for (int e = 0; e < 4; ++e) copy_4(y + e, x + e, from + e < job.k && row + r < job.m);
      }
    }
  };
  auto next = [&](float*& stage) {
    stage = stage == stages + (ring - 1) * S::kFloats ? stages : stage + S::kFloats;
  };

  const int passes = (blocks + chains - 1) / chains, all = passes * S::kOfChain;
  // Weights are nobody's results.
  release_next();
  for (int s = 0; s < ring - 1; ++s) ask_words(s, stages + s * S::kFloats);
  await_previous();
  for (int s = 0; s < ring - 1; ++s) ask_rows(s, stages + s * S::kFloats), copies_end();
  float *now = stages, *free = stages + (ring - 1) * S::kFloats;
  for (int pass = 0, s = 0; pass < passes; ++pass) {
    const int64_t first_k = int64_t{pass * chains + warp * kGroups + group} * num::kChain;
    F c[R][kPanels][kQuad];
    INVAR_UNROLL
    for (int i = 0; i < R * kPanels * kQuad; ++i)
      c[i / kQuad / kPanels][i / kQuad % kPanels][i % kQuad] = zero();
    typename Words::Known known[kPanels] = {};
    for (int i = 0; i < S::kOfChain; ++i, ++s) {
      copies_wait<ring - 2>();
      __syncwarp();
      uint4 words[kPanels][S::kWords];
      INVAR_UNROLL
      for (int p = 0; p < kPanels; ++p) INVAR_UNROLL
      for (int v = 0; v < S::kWords; ++v)
        words[p][v] =
            *reinterpret_cast<const uint4*>(now + S::kWordsAt + ((p * S::kWords + v) * kWarp + lane) * kQuad);
      const int64_t k = first_k + i * S::kLength;
      INVAR_UNROLL
      for (int u = 0; u < S::kLength; u += 4) {
        typename Words::Quad weights[kPanels][4];
        INVAR_UNROLL
        for (int p = 0; p < kPanels; ++p) {
          if (Words::kScaled && ((u == 0 && i == 0) || (u % 16 == 0 && w.changes(k + u))))
            known[p] = w.known(k + u < job.k ? k + u : 0, first_column + p * kPanelColumns + column, job.n);
          INVAR_UNROLL
          for (int e = 0; e < 4; ++e) {
            weights[p][e] = w.weights(words[p][(u + e) / Words::kDeep], known[p], (u + e) % Words::kDeep);
            if (Words::kScaled && k + u + e >= job.k)
              weights[p][e] = {};  // takes no part, whatever its scale is
          }
        }
        INVAR_UNROLL
        for (int r = 0; r < R; ++r) {
          const float4 x = *reinterpret_cast<const float4*>(now + (r * kGroups + group) * S::kRow + u);
          const float a[4] = {x.x, x.y, x.z, x.w};
          INVAR_UNROLL
          for (int e = 0; e < 4; ++e) INVAR_UNROLL
          for (int q = 0; q < kPanels * kQuad; ++q)
            c[r][q / kQuad][q % kQuad] = fma(set1(a[e]), set1(weights[q / kQuad][e].v[q % kQuad]),
                                             c[r][q / kQuad][q % kQuad]);  // contraction.2
        }
      }
      __syncwarp();
      if (s + ring - 1 < all) ask_words(s + ring - 1, free), ask_rows(s + ring - 1, free);
      copies_end();
      next(now), next(free);
    }
    const int first = pass * chains, last = first + chains < blocks ? first + chains : blocks;
    INVAR_UNROLL
    for (int f = 0; f < R; f += S::kFold) {
      INVAR_UNROLL
      for (int r = 0; r < S::kFold; ++r) INVAR_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        const F* x = c[f + r][p];
        *reinterpret_cast<float4*>(sums + ((warp * kGroups + group) * S::kFold + r) * S::kColumns +
                                   p * kPanelColumns + column) = {x[0].v, x[1].v, x[2].v, x[3].v};
      }
      __syncthreads();
      for (int i = threadIdx.x; i < S::kFold * S::kColumns; i += blockDim.x) {
        const int64_t to_row = row + f + i / S::kColumns, to = first_column + i % S::kColumns;
        float y;
        const bool done = fold(
            first, last, blocks, per, [&](int b) { return sums[(b - first) * S::kFold * S::kColumns + i]; },
            [&](int s) { return kept + s * S::kOutputs + f * S::kColumns + i; }, &y);
        if (done && to_row < job.m && to < job.n) job.out[to_row * job.n + to] = num::canon(y);
      }
      __syncthreads();
    }
  }
}

template <class Words, int R, int kPanels, int ring>
void enqueue_rows_of(const Rows& job, const Words& w, Stream stream) {
  using S = RowsShape<Words, R, kPanels, ring>;
  // As few passes as the warps allow, and no more warps than those need.
  const int64_t groups = ceil_div(num::contraction_blocks(job.k), kGroups);
  const int64_t passes = ceil_div(groups, S::kMostWarps);
  auto warps = static_cast<unsigned>(ceil_div(groups, passes));
  const auto most = static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  while (warps > 1 && S::bytes(static_cast<int>(warps)) > most) --warps;
  launch_early(rows_kernel<Words, R, kPanels, ring>,
               dim3(static_cast<unsigned>(ceil_div(job.n, S::kColumns) * ceil_div(job.m, R))),
               dim3(warps * kWarp), S::bytes(static_cast<int>(warps)), stream, job, w);
}

// Where the panels are few, each block streams more at once; where many, blocks do.
template <class Words>
void enqueue_rows(const Rows& job, const Words& w, Stream stream) {
  const bool few = ceil_div(job.n, kPanelColumns) <= 2 * processors();
  if (job.m == 1)
    few ? enqueue_rows_of<Words, 1, 1, 8>(job, w, stream) : enqueue_rows_of<Words, 1, 1, 5>(job, w, stream);
  else if (job.m <= 4)
    enqueue_rows_of<Words, 4, 1, 5>(job, w, stream);
  else if (job.m <= 8)
    few ? enqueue_rows_of<Words, 8, 1, 6>(job, w, stream) : enqueue_rows_of<Words, 8, 1, 3>(job, w, stream);
  else
    few || Words::kScaled
        ? enqueue_rows_of<Words, 16, 1, 5>(job, w, stream)
        : enqueue_rows_of<Words, 16, Words::kScaled ? 1 : 2, Words::kScaled ? 5 : 3>(job, w, stream);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
