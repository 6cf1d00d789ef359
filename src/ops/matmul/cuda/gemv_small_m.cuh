// Few rows of a and packed columns: what a step of decoding does. Eight threads side by side sum one chain (contraction.2) of
// the columns of a panel or more, four of each a thread; a warp has several chains, or several rows of such threads. The warps
// of a block take the chains pass by pass, and fold them in between. Every warp streams what it needs through a ring of its
// own in shared memory.
#pragma once
#include "num/contract/lanes.h"
#include "ops/matmul/cuda/async_copy.cuh"
#include "ops/matmul/cuda/packed_weight_reader.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// What a block does: rows x panels, `tall` rows a thread; k of a stage, about; stages of a ring, warps at most.
template <class Words, int rows, int tall, int panels, int length, int ring, int warps>
struct RowsShape {
  static constexpr int kRows = rows, kTall = tall, kPanels = panels, kRing = ring;
  static constexpr int kMostWarps = warps, kAcross = kPanelColumns / kQuad;     // threads
  static constexpr int kDown = rows / tall, kChains = kWarp / kAcross / kDown;  // of a warp
  static constexpr int kWide = panels * kQuad;                                  // columns of a thread
  static constexpr int kColumns = panels * kPanelColumns, kOutputs = rows * kColumns;
  // A stage: the rows of a for each chain, so far apart that chains begin in different banks; then words of each column.
  static constexpr int kFit = length / Words::kDeep < 8 ? length / Words::kDeep : 8;
  static constexpr int kWords = kFit < kDown ? kDown : kFit;
  static constexpr int kLength = kWords * Words::kDeep, kRow = kLength > 8 ? kLength + 4 : kLength;  // k
  static constexpr int kWordsAt = rows * kChains * kRow;
  static constexpr int kFloats = kWordsAt + panels * kWords * kChains * kPanelColumns;
  static constexpr int kOfChain = static_cast<int>(num::kChain) / kLength;
  // Copies of 16 bytes that bring the rows of a: so many of a row's chains, so many rows at once.
  static constexpr int kPieces = kLength / 4, kRowsAtOnce = kWarp / (kPieces * kChains);
  static_assert(kChains > 0 && kWords % kDown == 0 && kRowsAtOnce > 0 && kLength % 4 == 0);
};

struct Rows {
  const float* a;
  const uint32_t* packed;
  float* out;
  int64_t m, n, k, words;  // words: rows of a packed panel
};
// Products that one kernel makes, all of as many rows and as long; product i has the blocks from end[i - 1] to end[i].
constexpr int kMostProducts = 4;
template <class Words>
struct Products {
  int count, passes;
  unsigned end[kMostProducts];
  Rows rows[kMostProducts];
  Words words[kMostProducts];
};

inline __device__ Floats add(const Floats& a, const Floats& b) {
  return {num::add(a.v[0], b.v[0]), num::add(a.v[1], b.v[1]), num::add(a.v[2], b.v[2]),
          num::add(a.v[3], b.v[3])};
}

template <class Words, class S>
__global__ void __launch_bounds__(S::kMostWarps* kWarp)
    rows_kernel(const __grid_constant__ Products<Words> products) {
  int product = 0;
  while (blockIdx.x >= products.end[product]) ++product;
  const Rows& job = products.rows[product];
  const Words& w = products.words[product];
  const unsigned block = blockIdx.x - (product ? products.end[product - 1] : 0);
  extern __shared__ __align__(16) uint32_t memory[];
  auto* const floats = reinterpret_cast<float*>(memory);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int column = lane % S::kAcross * kQuad, down = lane / S::kAcross % S::kDown,
            own = lane / S::kAcross / S::kDown;
  const int chains = blockDim.x / kWarp * S::kChains, warp_chain = warp * S::kChains;
  const int k_end = static_cast<int>(job.k), blocks = static_cast<int>(num::contraction_blocks(job.k));
  const int64_t row_blocks = ceil_div(job.m, S::kRows), row = block % row_blocks * S::kRows;
  const int64_t first_column = block / row_blocks * S::kColumns;
  float* const ring = floats + warp * S::kRing * S::kFloats;

  // The words of a stage: a thread copies every kDown-th of four columns of a chain.
  const int word_chain = lane / S::kAcross % S::kChains, word_at = lane / S::kAcross / S::kChains;
  const uint32_t* words_from[S::kPanels];
  int width[S::kPanels], words_left, words_stage = 0;  // width 0: no such columns
  {
    const int64_t at = int64_t{warp_chain + word_chain} * num::kChain / Words::kDeep + word_at;
    words_left = static_cast<int>(job.words - at);
    INVAR_UNROLL
    for (int p = 0; p < S::kPanels; ++p) {
      const PanelPlace place = panel_place(first_column / kPanelColumns + p, job.n, job.words);
      width[p] = column < place.width ? place.width : 0;
      words_from[p] = job.packed + place.at + column + at * width[p];
    }
  }
  auto ask_words = [&](float* stage) {
    float* const to = stage + S::kWordsAt + lane * kQuad;
    INVAR_UNROLL
    for (int p = 0; p < S::kPanels; ++p) {
      INVAR_UNROLL
      for (int i = 0; i < S::kWords / S::kDown; ++i)
        copy_16(to + (p * S::kWords / S::kDown + i) * kWarp * kQuad, words_from[p] + i * S::kDown * width[p],
                i * S::kDown < words_left && width[p]);
      words_from[p] += S::kWords * width[p];
    }
    words_left -= S::kWords;
    if (++words_stage < S::kOfChain) return;
    const int over = (chains - 1) * static_cast<int>(num::kChain) / Words::kDeep;  // to the next pass
    words_stage = 0, words_left -= over;
    INVAR_UNROLL
    for (int p = 0; p < S::kPanels; ++p) words_from[p] += int64_t{over} * width[p];
  };

  // The rows of a: a thread copies four k of every kRowsAtOnce-th row, of one chain.
  const bool wide = job.k % 4 == 0 && reinterpret_cast<uintptr_t>(job.a) % 16 == 0;
  const int piece = lane % S::kPieces, row_chain = lane / S::kPieces % S::kChains,
            row_at = lane / S::kPieces / S::kChains;
  const int rows_left = static_cast<int>(num::min_i64(job.m - row, S::kRows)) - row_at;
  const int64_t rows_step = S::kRowsAtOnce * job.k;
  int k_left = k_end - (warp_chain + row_chain) * static_cast<int>(num::kChain) - piece * 4, rows_stage = 0;
  const float* rows_from = job.a + (row + row_at) * job.k + (k_end - k_left);
  auto ask_rows = [&](float* stage) {
    float* const to = stage + (row_at * S::kChains + row_chain) * S::kRow + piece * 4;
    constexpr int kStep = S::kRowsAtOnce * S::kChains * S::kRow;
    if (wide) {
      INVAR_UNROLL
      for (int r = 0; r < S::kRows; r += S::kRowsAtOnce)
        if (S::kRows % S::kRowsAtOnce == 0 || r + row_at < S::kRows)
          copy_16(to + r / S::kRowsAtOnce * kStep, rows_from + r / S::kRowsAtOnce * rows_step,
                  r < rows_left && k_left > 0);
    } else {
#pragma unroll 1
      for (int i = 0; i < 4 * S::kRows; ++i) {
        const int r = i / 4, e = i % 4;
        if (r % S::kRowsAtOnce == 0 && r + row_at < S::kRows)
          copy_4(to + r / S::kRowsAtOnce * kStep + e, rows_from + r / S::kRowsAtOnce * rows_step + e,
                 r < rows_left && e < k_left);
      }
    }
    rows_from = &rows_from[S::kLength], k_left -= S::kLength;
    if (++rows_stage < S::kOfChain) return;
    const int over = (chains - 1) * static_cast<int>(num::kChain);
    rows_stage = 0, k_left -= over, rows_from = &rows_from[over];
  };

  const int all = products.passes * S::kOfChain;
  // Weights are nobody's results.
  INVAR_UNROLL
  for (int s = 0; s < S::kRing - 1; ++s) ask_words(ring + s * S::kFloats);
  await_previous();
  INVAR_UNROLL
  for (int s = 0; s < S::kRing - 1; ++s) ask_rows(ring + s * S::kFloats), copies_end();
  float *now = ring, *free = ring + (S::kRing - 1) * S::kFloats;
  // Chains of a pass where the ring was, if there is but one pass; then segments.
  float* const sums = floats + (products.passes > 1 ? blockDim.x / kWarp * S::kRing * S::kFloats : 0);
  float* const segments = sums + chains * S::kOutputs;
  for (int pass = 0, s = 0; pass < products.passes; ++pass) {
    const int first_k = (pass * chains + warp_chain + own) * static_cast<int>(num::kChain);
    F c[S::kTall * S::kWide];
    INVAR_UNROLL
    for (int i = 0; i < S::kTall * S::kWide; ++i) c[i] = zero();
    typename Words::Known known[S::kPanels] = {};
    for (int i = 0; i < S::kOfChain; ++i, ++s) {
      copies_wait<S::kRing - 2>();
      __syncwarp();
      const float* const own_rows = now + (down * S::kTall * S::kChains + own) * S::kRow;
      const float* const own_words = now + S::kWordsAt + own * kPanelColumns + column;
      const int k = first_k + i * S::kLength;
      uint4 words[S::kPanels][S::kWords];
      INVAR_UNROLL
      for (int u = 0; u < S::kLength; u += 4) {
        typename Words::Quad weights[S::kPanels][4];
        INVAR_UNROLL
        for (int p = 0; p < S::kPanels; ++p) {
          if (Words::kScaled && ((u == 0 && i == 0) || (u % 16 == 0 && w.changes(k + u))))
            known[p] = w.known(k + u < k_end ? k + u : 0, first_column + p * kPanelColumns + column, job.n);
          INVAR_UNROLL
          for (int e = 0; e < 4; ++e) {
            const int v = (u + e) / Words::kDeep;
            if ((u + e) % Words::kDeep == 0)
              words[p][v] = *reinterpret_cast<const uint4*>(own_words +
                                                            (p * S::kWords + v) * S::kChains * kPanelColumns);
            weights[p][e] = w.weights(words[p][v], known[p], (u + e) % Words::kDeep);
            if (Words::kScaled && k + u + e >= k_end)
              weights[p][e] = {};  // takes no part, whatever its scale is
          }
        }
        float4 x[S::kTall];
        INVAR_UNROLL
        for (int r = 0; r < S::kTall; ++r)
          x[r] = *reinterpret_cast<const float4*>(own_rows + r * S::kChains * S::kRow + u);
        if (u == 0) {  // while those come; all lanes have left the stage before, which is filled again
          // Blocks that start sooner crowd the processors with room to spare, and take three times as long.
          if (s + S::kRing == all) release_next();
          if (s + S::kRing - 1 < all) ask_words(free), ask_rows(free);
          copies_end();
        }
        INVAR_UNROLL
        for (int e = 0; e < 4; ++e) {  // there and back, as in fp32.cuh
          INVAR_UNROLL
          for (int i = 0; i < S::kTall * S::kWide; ++i) {
            const int r = i / S::kWide, q = r % 2 ? S::kWide - 1 - i % S::kWide : i % S::kWide;
            const float a[4] = {x[r].x, x[r].y, x[r].z, x[r].w};
            F& sum = c[r * S::kWide + q];
            sum = fma(set1(a[e]), set1(weights[q / kQuad][e].v[q % kQuad]), sum);  // contraction.2
          }
        }
      }
      free = now;
      now = now == ring + (S::kRing - 1) * S::kFloats ? ring : now + S::kFloats;
    }
    const int first = pass * chains, last = first + chains < blocks ? first + chains : blocks;
    if (products.passes == 1) __syncthreads();  // all are done with their rings
    INVAR_UNROLL
    for (int r = 0; r < S::kTall; ++r) INVAR_UNROLL
    for (int p = 0; p < S::kPanels; ++p) {
      const F* x = c + r * S::kWide + p * kQuad;
      *reinterpret_cast<float4*>(sums + (warp_chain + own) * S::kOutputs +
                                 (down * S::kTall + r) * S::kColumns + p * kPanelColumns +
                                 column) = {x[0].v, x[1].v, x[2].v, x[3].v};
    }
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
      const int64_t to_row = row + i / S::kColumns, to = first_column + i % S::kColumns;
      float* const out = job.out + to_row * job.n + to;
      INVAR_UNROLL
      for (int e = 0; e < kQuad; ++e)
        if (to_row < job.m && to + e < job.n) out[e] = num::canon(y.v[e]);
    }
    if (last < blocks) __syncthreads();
  }
}

template <class S, class Words>
void enqueue_rows_of(Products<Words>& products, Stream stream) {
  // As few passes as the warps allow, and no more warps than those need.
  const int64_t groups = ceil_div(num::contraction_blocks(products.rows[0].k), S::kChains);
  auto bytes = [&](int64_t warps) {
    const int64_t ring = warps * S::kRing * S::kFloats, sums = warps * S::kChains * S::kOutputs;
    const int64_t folded = sums + num::kSegments * S::kOutputs;
    return sizeof(float) * static_cast<size_t>(groups > warps  ? ring + folded
                                               : ring > folded ? ring
                                                               : folded);
  };
  const auto most = static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  int64_t warps = ceil_div(groups, ceil_div(groups, S::kMostWarps));
  while (warps > 1 && bytes(warps) > most) --warps;
  products.passes = static_cast<int>(ceil_div(groups, warps));
  unsigned blocks = 0;
  for (int i = 0; i < products.count; ++i) {
    const Rows& job = products.rows[i];
    blocks += static_cast<unsigned>(ceil_div(job.n, S::kColumns) * ceil_div(job.m, S::kRows));
    products.end[i] = blocks;
  }
  launch_early(rows_kernel<Words, S>, dim3(blocks), dim3(static_cast<unsigned>(warps * kWarp)), bytes(warps),
               stream, products);
}

// Where panels are few, each block streams more at once; where halves have many, a block takes two. Loops are 64 to 1024
// multiply-adds long: at 2048 they leave the instruction cache, and take three times as long.
template <class Words>
void enqueue_rows(Products<Words> products, Stream stream) {
  const int64_t m = products.rows[0].m;
  int64_t panels = 0;
  for (int i = 0; i < products.count; ++i) panels += ceil_div(products.rows[i].n, kPanelColumns);
  if constexpr (Words::kDeep == 2) {
    if (panels > 2 * processors()) {
      if (m == 1) return enqueue_rows_of<RowsShape<Words, 1, 1, 1, 16, 3, 8>>(products, stream);
      if (m > 4 && m <= 8) return enqueue_rows_of<RowsShape<Words, 8, 8, 2, 16, 3, 4>>(products, stream);
      if (m > 8 && m <= 16) return enqueue_rows_of<RowsShape<Words, 16, 16, 2, 8, 4, 4>>(products, stream);
    }
  }
  if (m == 1) return enqueue_rows_of<RowsShape<Words, 1, 1, 1, 8, 8, 8>>(products, stream);
  if (m <= 4) return enqueue_rows_of<RowsShape<Words, 4, 4, 1, 16, 4, 8>>(products, stream);
  if (m <= 8) return enqueue_rows_of<RowsShape<Words, 8, 8, 1, 16, 4, 8>>(products, stream);
  if (m <= 16) return enqueue_rows_of<RowsShape<Words, 16, 8, 1, 16, 4, 8>>(products, stream);
  enqueue_rows_of<RowsShape<Words, 32, 16, 1, 16, 3, 8>>(products, stream);
}
template <class Words>
void enqueue_rows(const Rows& job, const Words& w, Stream stream) {
  enqueue_rows(Products<Words>{1, 0, {}, {job}, {w}}, stream);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
