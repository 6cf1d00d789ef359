// Few rows of a and packed columns: what a step of decoding does. A group of 8 threads sums one chain (contraction.2) of the
// 32 columns of a panel, a thread four of them. The groups of a block take the chains of a panel pass by pass, and fold them
// in between. Every warp streams what it needs through a ring of its own in shared memory.
#pragma once
#include "num/contract/lanes.h"
#include "ops/matmul/async.cuh"
#include "ops/matmul/words.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kRowWarps = 4;
constexpr int kGroupThreads = kPanelColumns / kQuad, kGroups = kWarp / kGroupThreads;  // of a warp
constexpr int kStageWords = 4;                    // that a thread reads in a stage
constexpr int kMostChains = kRowWarps * kGroups;  // of a pass

// A stage of a warp's ring: words of its four chains, and R rows of a for each, which begin 4 banks apart.
template <class Words, int R>
struct RowStage {
  static constexpr int kLength = kStageWords * Words::kDeep;  // k
  static constexpr int kRow = kLength + 4;
  static constexpr int kWordsAt = R * kGroups * kRow;  // floats before the words
  static constexpr int kFloats = kWordsAt + kStageWords * kWarp * kQuad;
  static constexpr int kOfChain = static_cast<int>(num::kChain) / kLength;
  static constexpr int kRing = R <= 4 ? 6 : 5;
};

struct Rows {
  const float* a;
  const uint32_t* packed;
  float* out;
  int64_t m, n, k, words;  // words: rows of a packed panel
};

// The weights of four k in a row times R rows of a.
template <int R, class Quad>
__device__ void add_products(F (&c)[R][kQuad], const float* x, int stride, const Quad (&w)[4]) {
  INVAR_UNROLL
  for (int r = 0; r < R; ++r) {
    const float4 a = *reinterpret_cast<const float4*>(x + r * stride);
    const float at[4] = {a.x, a.y, a.z, a.w};
    INVAR_UNROLL
    for (int i = 0; i < 4; ++i) INVAR_UNROLL
    for (int q = 0; q < kQuad; ++q) c[r][q] = fma(set1(at[i]), set1(w[i].v[q]), c[r][q]);  // contraction.2
  }
}

template <class Words, int R>
__global__ void __launch_bounds__(kRowWarps* kWarp) rows_kernel(const Rows job, const Words w) {
  using Stage = RowStage<Words, R>;
  constexpr int kOutputs = R * kPanelColumns;
  extern __shared__ __align__(16) uint32_t memory[];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, group = lane / kGroupThreads;
  const int warps = blockDim.x / kWarp, chains = warps * kGroups,
            blocks = static_cast<int>(num::contraction_blocks(job.k));
  const int column = lane % kGroupThreads * kQuad;
  const int64_t row = int64_t{blockIdx.x} % ceil_div(job.m, R) * R, panel = blockIdx.x / ceil_div(job.m, R);
  const int64_t j = panel * kPanelColumns + column;
  const PanelPlace place = panel_place(panel, job.n, job.words);
  float* ring = reinterpret_cast<float*>(memory) + warp * Stage::kRing * Stage::kFloats;
  float* sums =
      reinterpret_cast<float*>(memory) + warps * Stage::kRing * Stage::kFloats;  // [chains of a pass][R][32]
  float* segments = sums + chains * kOutputs;                                    // [8][R][32]
  const int64_t rows_of_words = ceil_div(job.k, Words::kDeep);
  const uint32_t* packed = job.packed + place.at + column;
  const bool wide = job.k % 4 == 0 && reinterpret_cast<uintptr_t>(job.a) % 16 == 0;

  // Stage s of this warp's work: of its chains, pass after pass.
  auto ask = [&](int s) {
    float* to = ring + s % Stage::kRing * Stage::kFloats;
    const int first = s / Stage::kOfChain * chains + warp * kGroups,
              k0 = s % Stage::kOfChain * Stage::kLength;
    const int64_t k = int64_t{first + group} * num::kChain + k0, at = k / Words::kDeep;
    INVAR_UNROLL
    for (int i = 0; i < kStageWords; ++i)
      copy_16(to + Stage::kWordsAt + (i * kWarp + lane) * kQuad, packed + (at + i) * place.width,
              at + i < rows_of_words && column < place.width);
    constexpr int kPieces = R * kGroups * Stage::kLength / 4;
    INVAR_UNROLL
    for (int p = lane; p < kPieces; p += kWarp) {
      const int i = p % (Stage::kLength / 4) * 4, g = p / (Stage::kLength / 4) % kGroups;
      const int r = p / (Stage::kLength / 4) / kGroups;
      const int64_t from = int64_t{first + g} * num::kChain + k0 + i;
      const float* x = job.a + (row + r) * job.k + from;
      float* y = to + (r * kGroups + g) * Stage::kRow + i;
      if (wide) {
        copy_16(y, x, from < job.k && row + r < job.m);
      } else {
        INVAR_UNROLL
        for (int e = 0; e < 4; ++e) copy_4(y + e, x + e, from + e < job.k && row + r < job.m);
      }
    }
  };

  const int passes = (blocks + chains - 1) / chains, stages = passes * Stage::kOfChain;
  for (int s = 0; s < Stage::kRing - 1; ++s) ask(s), copies_end();
  float sum[(kOutputs + kWarp - 1) / kWarp];  // of the segment, of this thread's outputs
  const int per = static_cast<int>(num::blocks_per_segment(job.k));
  for (int pass = 0, s = 0; pass < passes; ++pass) {
    const int chain = pass * chains + warp * kGroups + group;
    F c[R][kQuad];
    INVAR_UNROLL
    for (int i = 0; i < R * kQuad; ++i) c[i / kQuad][i % kQuad] = zero();
    typename Words::Known known{};
    for (int i = 0; i < Stage::kOfChain; ++i, ++s) {
      copies_wait<Stage::kRing - 2>();
      __syncwarp();
      const float* from = ring + s % Stage::kRing * Stage::kFloats;
      const float* x = from + group * Stage::kRow;
      uint4 words[kStageWords];
      INVAR_UNROLL
      for (int v = 0; v < kStageWords; ++v)
        words[v] = *reinterpret_cast<const uint4*>(from + Stage::kWordsAt + (v * kWarp + lane) * kQuad);
      const int64_t k = int64_t{chain} * num::kChain + i * Stage::kLength;
      INVAR_UNROLL
      for (int u = 0; u < Stage::kLength; u += 4) {
        if (Words::kScaled && ((u == 0 && i == 0) || (u % 16 == 0 && w.changes(k + u))))
          known = w.known(k + u < job.k ? k + u : 0, j, job.n);
        typename Words::Quad weights[4];
        INVAR_UNROLL
        for (int e = 0; e < 4; ++e) {
          weights[e] = w.weights(words[(u + e) / Words::kDeep], known, (u + e) % Words::kDeep);
          if (Words::kScaled && k + u + e >= job.k) weights[e] = {};  // takes no part, whatever its scale is
        }
        add_products<R>(c, x + u, kGroups * Stage::kRow, weights);
      }
      __syncwarp();
      if (s + Stage::kRing - 1 < stages) ask(s + Stage::kRing - 1);
      copies_end();
    }
    INVAR_UNROLL
    for (int r = 0; r < R; ++r)
      *reinterpret_cast<float4*>(sums + ((warp * kGroups + group) * R + r) * kPanelColumns + column) = {
          c[r][0].v, c[r][1].v, c[r][2].v, c[r][3].v};
    __syncthreads();
    const int first = pass * chains, last = first + chains < blocks ? first + chains : blocks;
    INVAR_UNROLL
    for (int o = 0; o < (kOutputs + kWarp - 1) / kWarp; ++o) {
      const int i = threadIdx.x + o * blockDim.x;
      if (i >= kOutputs) break;
      if (pass == 0) sum[o] = 0;
      for (int b = first, segment = first / per, end = (segment + 1) * per; b < last;) {
        sum[o] = num::add(sum[o], sums[(b - first) * kOutputs + i]);  // contraction.3
        if (++b != end && b != blocks) continue;
        segments[segment * kOutputs + i] = sum[o], sum[o] = 0;
        ++segment, end += per;
      }
    }
    __syncthreads();
  }
  const int used = num::segments_in_use(job.k);
  for (int i = threadIdx.x; i < kOutputs; i += blockDim.x) {
    float segment[num::kSegments];
    INVAR_UNROLL
    for (int s = 0; s < num::kSegments; ++s) segment[s] = s < used ? segments[s * kOutputs + i] : 0;
    const int64_t r = row + i / kPanelColumns, to = panel * kPanelColumns + i % kPanelColumns;
    if (r < job.m && to < job.n) job.out[r * job.n + to] = num::canon(num::join_segments(segment));
  }
}

template <class Words, int R>
void enqueue_rows_of(const Rows& job, const Words& w, Stream stream) {
  using Stage = RowStage<Words, R>;
  const int64_t needed = ceil_div(num::contraction_blocks(job.k), kGroups);
  const int warps = needed < kRowWarps ? static_cast<int>(needed) : kRowWarps;
  const size_t shared = static_cast<size_t>(warps * Stage::kRing * Stage::kFloats +
                                            (warps * kGroups + num::kSegments) * R * kPanelColumns) *
                        sizeof(float);
  launch(rows_kernel<Words, R>,
         dim3(static_cast<unsigned>(ceil_div(job.n, kPanelColumns) * ceil_div(job.m, R))),
         dim3(static_cast<unsigned>(warps * kWarp)), shared, stream, job, w);
}
template <class Words>
void enqueue_rows(const Rows& job, const Words& w, Stream stream) {
  if (job.m == 1)
    enqueue_rows_of<Words, 1>(job, w, stream);
  else if (job.m == 2)
    enqueue_rows_of<Words, 2>(job, w, stream);
  else if (job.m <= 4)
    enqueue_rows_of<Words, 4>(job, w, stream);
  else if (job.m <= 8)
    enqueue_rows_of<Words, 8>(job, w, stream);
  else
    enqueue_rows_of<Words, 16>(job, w, stream);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
