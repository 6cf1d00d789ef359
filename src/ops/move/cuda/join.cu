// Joins of ranks on several GPUs, in lines or in pieces (kernels/cuda/join_lines.cuh).
#include "ops/move/cuda/join.h"

#include "kernels/cuda/join_lines.cuh"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/move/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kLineThreads = 256, kMaxLineBlocks = 256;
constexpr int kPieceThreads = 512;
constexpr int kAtOnce = 4;                         // loads of a thread
constexpr int64_t kPieceWords = 4;                 // pieces begin at multiples of so many words
constexpr int64_t kLeastPiece = int64_t{1} << 14;  // words: a fence takes as long as some of them

// The word of the result that word i of a part is.
__device__ int64_t place_in(const JoinWork& w, const JoinPart& part, int64_t i) {
  int64_t row = i;
  const int64_t column = part.width.remainder(row);
  return row * w.width + part.first + column;
}

// A rank without a part sends one line, so that the others know that it has come here.
__device__ int64_t lines_of(const JoinPart& part) {
  return part.words > 0 ? part.words : 1;
}

__global__ void __launch_bounds__(kLineThreads) join_lines_kernel(const __grid_constant__ JoinWork w) {
  trigger_and_wait();
  const uint32_t mark = *w.base + w.number;
  const int64_t first = blockIdx.x * int64_t{kLineThreads} + threadIdx.x,
                step = int64_t{gridDim.x} * kLineThreads;
  const JoinPart& own = w.part[w.rank];
  for (int64_t i = first; i < lines_of(own); i += step) {
    const uint32_t word = i < own.words ? w.own[i] : 0;
    const uint64_t line = uint64_t{mark} << 32 | word;
    for (int r = 0; r < w.ranks; ++r)
      if (r != w.rank) store_line(reinterpret_cast<uint64_t*>(w.to[r]) + i, line);
    if (i < own.words) store_sum(w, place_in(w, own, i), word);
  }
  for (int r = 0; r < w.ranks; ++r) {
    if (r == w.rank) continue;
    const JoinPart& part = w.part[r];
    for (int64_t i = first; i < lines_of(part); i += step) {
      const auto* const from = reinterpret_cast<const uint64_t*>(w.from[r]) + i;
      uint64_t line = 0;
      wait_until(w, r, [&] { return (line = load_line(from)) >> 32 == mark; });
      if (i < part.words) store_sum(w, place_in(w, part, i), static_cast<uint32_t>(line));
    }
  }
}

// The same of whole quads, which lie in one row each. A thread sends all of its own first, and
// looks for some others at once.
__global__ void __launch_bounds__(kLineThreads) join_quads_kernel(const __grid_constant__ JoinWork w) {
  trigger_and_wait();
  const uint32_t mark = *w.base + w.number;
  const int64_t first = (blockIdx.x * int64_t{kLineThreads} + threadIdx.x) * 4,
                step = int64_t{gridDim.x} * kLineThreads * 4;
  const JoinPart& own = w.part[w.rank];
  for (int64_t i = first; i < own.words; i += step) {
    const uint4 x = *reinterpret_cast<const uint4*>(w.own + i);
    send_quad(w, i, x, mark);
    store_sum(w, place_in(w, own, i), x);
  }
  for (int r = 0; r < w.ranks; ++r)
    for (int64_t i = first; r != w.rank && i < w.part[r].words; i += step)
      store_sum(w, place_in(w, w.part[r], i), receive_quad(w, r, i, mark));
}

// The words of a piece, of all those of a part.
struct PieceRange {
  int64_t begin, end;
};
__device__ PieceRange piece_range(int64_t words, int piece, int all) {
  const int64_t groups = (words + kPieceWords - 1) / kPieceWords;
  const int64_t begin = groups * piece / all * kPieceWords, end = groups * (piece + 1) / all * kPieceWords;
  return {begin < words ? begin : words, end < words ? end : words};
}
// Calls store(i, load(i)) for a thread's part of a piece, several loads at once.
template <class T, class Load, class Store>
__device__ void copy_piece(const PieceRange& piece, Load load, Store store) {
  constexpr int64_t kUnit = sizeof(T) / sizeof(uint32_t), kStep = kPieceThreads * kUnit;
  for (int64_t i = piece.begin + threadIdx.x * kUnit; i < piece.end; i += kAtOnce * kStep) {
    T words[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (i + k * kStep < piece.end) words[k] = load(i + k * kStep);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (i + k * kStep < piece.end) store(i + k * kStep, words[k]);
  }
}

// T: a word, or four of them where all rows are so aligned. All blocks run at once: no block waits
// for one of its own GPU.
template <class T>
__global__ void __launch_bounds__(kPieceThreads, 2)
    join_pieces_kernel(const __grid_constant__ JoinWork w, int pieces) {
  trigger_and_wait();
  const uint32_t mark = *w.base + w.number;
  const JoinPart& own = w.part[w.rank];
  const bool sends = blockIdx.x < kSenders;
  const int first = static_cast<int>(blockIdx.x) % kSenders * pieces, all = kSenders * pieces;
  for (int piece = first; sends && piece < first + pieces; ++piece) {
    copy_piece<T>(
        piece_range(own.words, piece, all), [&](int64_t i) { return *reinterpret_cast<const T*>(w.own + i); },
        [&](int64_t i, const T& words) {
          for (int r = 0; r < w.ranks; ++r)
            if (r != w.rank) *reinterpret_cast<T*>(w.to[r] + i * 4) = words;
          store_sum(w, place_in(w, own, i), words);
        });
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
      for (int r = 0; r < w.ranks; ++r)
        if (r != w.rank) release_flag(w.flag_to[r] + piece, mark);
  }
  for (int piece = first; !sends && piece < first + pieces; ++piece)
    for (int r = 0; r < w.ranks; ++r) {
      if (r == w.rank) continue;
      if (threadIdx.x == 0) wait_until(w, r, [&] { return acquire_flag(w.flag_from[r] + piece) == mark; });
      __syncthreads();
      const JoinPart& part = w.part[r];
      copy_piece<T>(
          piece_range(part.words, piece, all),
          [&](int64_t i) { return __ldcg(reinterpret_cast<const T*>(w.from[r] + i * 4)); },
          [&](int64_t i, const T& words) { store_sum(w, place_in(w, part, i), words); });
    }
}

}  // namespace

size_t join_mailbox_bytes(int ranks, int64_t part_bytes) {
  return static_cast<size_t>(mailbox_layout(ranks, part_bytes).size);
}

void enqueue_join(const Call& call, const GpuJoin& join, Stream stream) {
  const JoinWork w = join_work(call, join, ConcatAttributes(call).axis);
  bool aligned = w.width % kPieceWords == 0 && are_quads(w.out) && are_quads(w.own) && are_quads(w.addend);
  for (int r = 0; r < w.ranks; ++r) aligned &= w.part[r].columns % kPieceWords == 0;
  const auto blocks_for = [](int64_t threads) {
    const int64_t blocks = ceil_div(threads, kLineThreads);
    return dim3(static_cast<unsigned>(blocks < kMaxLineBlocks ? blocks : kMaxLineBlocks));
  };
  if (w.in_lines) {
    const bool quads = joins_quads(w) && are_quads(w.out) && w.most >= kLineThreads * 64;
    if (quads)
      return launch_dependent(join_quads_kernel, blocks_for(w.most / 4), dim3(kLineThreads), 0, stream, w);
    return launch_dependent(join_lines_kernel, blocks_for(w.most), dim3(kLineThreads), 0, stream, w);
  }
  const int64_t of_block = w.most / kSenders / kLeastPiece;
  const int pieces = static_cast<int>(of_block < 1 ? 1 : of_block > kPieces ? kPieces : of_block);
  const auto kernel = aligned ? join_pieces_kernel<uint4> : join_pieces_kernel<uint32_t>;
  launch_dependent(kernel, dim3(2 * kSenders), dim3(kPieceThreads), 0, stream, w, pieces);
}

}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
