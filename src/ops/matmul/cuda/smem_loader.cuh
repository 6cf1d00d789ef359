// From an operand in device memory to tiles [k][outer] of words in shared memory. A source's Loader is a thread's share of
// that: ask() starts what tile k needs, put() ends it, for sources whose words go through registers. Neither waits for copies
// (async.cuh). What lies outside of the operand arrives as zero; where kWhole, nothing does. k have 32 bits.
#pragma once
#include "ops/matmul/cuda/async_copy.cuh"
#include "ops/matmul/cuda/packed_weight_reader.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Rows of a tile are this much longer, so that neither copies across them nor reads along them meet in a bank.
constexpr int kPad = 4;

// f32 whose k lie one after another. Eight k of four rows at a time: 32 bytes of each, and 32 banks.
struct AlongK {
  using Word = float;
  static constexpr int kDeep = 1;
  const float* p;
  int64_t ld, outer, k;
  __host__ __device__ void move(int64_t elements, int64_t) { p = &p[elements]; }

  template <int kTile, int kDepth, int kThreads>
  struct Loader {
    static constexpr int kRows = kThreads / 8, kDown = kTile / kRows, kAlong = kDepth / 8;
    static_assert(kTile % kRows == 0 && kDepth % 8 == 0);
    const float* at[kDown];
    bool in[kDown];
    int k, to;
    __device__ void begin(const AlongK& s, int64_t first, int from) {
      const int i = threadIdx.x % 8, o = threadIdx.x / 8;
      k = s.k - i, to = i * (kTile + kPad) + o;
      INVAR_UNROLL
      for (int d = 0; d < kDown; ++d) {
        in[d] = first + o + d * kRows < s.outer;
        at[d] = s.p + (in[d] ? first + o + d * kRows : 0) * s.ld + from + i;
      }
    }
    template <bool kWhole>
    __device__ void ask(float* tile, int from) {
      INVAR_UNROLL
      for (int d = 0; d < kDown; ++d) {
        INVAR_UNROLL
        for (int a = 0; a < kAlong; ++a)
          copy_4(tile + to + a * 8 * (kTile + kPad) + d * kRows, at[d] + a * 8,
                 kWhole || (in[d] && from + a * 8 < k));
        at[d] = &at[d][kDepth];
      }
    }
    __device__ void put(float*) {}
  };
};

// f32 whose rows of k lie one after another, aligned to 16 bytes or not.
template <bool kAligned>
struct AlongOuter {
  using Word = float;
  static constexpr int kDeep = 1;
  const float* p;
  int64_t ld, outer, k;
  __host__ __device__ void move(int64_t elements, int64_t) { p = &p[elements]; }

  template <int kTile, int kDepth, int kThreads>
  struct Loader {
    static constexpr int kAcross = kTile / 4, kRows = kThreads / kAcross, kDown = kDepth / kRows;
    static_assert(kThreads % kAcross == 0 && kDepth % kRows == 0);
    const float* at;
    int64_t step;
    int k, in, to;  // of four neighbours, how many are there
    __device__ void begin(const AlongOuter& s, int64_t first, int from) {
      const int i = threadIdx.x / kAcross, o = threadIdx.x % kAcross * 4;
      k = s.k - i, to = i * (kTile + kPad) + o, step = kRows * s.ld;
      const int64_t left = s.outer - first - o;
      in = left < 0 ? 0 : left > 4 ? 4 : static_cast<int>(left);
      at = s.p + (from + i) * s.ld + (in ? first + o : 0);
    }
    template <bool kWhole>
    __device__ void ask(float* tile, int from) {
      INVAR_UNROLL
      for (int d = 0; d < kDown; ++d) {
        const bool there = kWhole || from + d * kRows < k;
        float* y = tile + to + d * kRows * (kTile + kPad);
        if constexpr (kAligned) {
          copy_part(y, at, kWhole ? 4 : there ? in : 0);
        } else {
          INVAR_UNROLL
          for (int e = 0; e < 4; ++e) copy_4(y + e, at + e, kWhole || (there && e < in));
        }
        at = &at[step];
      }
    }
    __device__ void put(float*) {}
  };
};

// Words of b by four columns: packed panels, or gathered from where b lies.
template <class Words, bool kPacked>
struct Columns4 {
  using Word = typename Words::Word;
  static constexpr int kDeep = Words::kDeep;  // k of a word
  Words w;
  const uint32_t* packed;
  int64_t outer, k, rows;  // rows: of words in a packed panel
  // To a matrix behind so many elements where b lies, so many matrices where it is packed.
  __host__ __device__ void move(int64_t elements, int64_t matrix) {
    if constexpr (kPacked)
      packed += matrix * packed_words(outer, rows);
    else
      w.move(elements);
  }

  template <int kTile, int kDepth, int kThreads>
  struct Loader {
    static constexpr int kAcross = kTile / kQuad, kAll = kAcross * (kDepth / kDeep);
    static constexpr int kPieces = (kAll + kThreads - 1) / kThreads, kStep = kThreads / kAcross;
    static constexpr bool kCopied = kPacked && Words::kDeep == 1;  // words are what the tile holds
    static_assert(kThreads % kAcross == 0 && kDepth % kDeep == 0);
    Columns4 s;
    int64_t column;
    const uint32_t* at;
    int width, row, from;  // in words; k
    bool in;
    uint4 piece[kCopied ? 1 : kPieces];
    __device__ bool has(int i) const { return kAll % kThreads == 0 || row + i * kStep < kDepth / kDeep; }
    __device__ void begin(const Columns4& source, int64_t first, int from_k) {
      s = source, row = threadIdx.x / kAcross;
      column = first + threadIdx.x % kAcross * kQuad, in = column < s.outer;
      if constexpr (kPacked) {
        const PanelPlace p = panel_place(in ? column / kPanelColumns : 0, s.outer, s.rows);
        width = p.width;
        at = s.packed + p.at + int64_t{from_k / kDeep + row} * width + column % kPanelColumns;
      }
    }
    template <bool kWhole>
    __device__ void ask(Word* tile, int k) {
      from = k;
      INVAR_UNROLL
      for (int i = 0; i < kPieces; ++i) {
        if (!has(i)) continue;
        const int here = k + (row + i * kStep) * kDeep;
        if constexpr (kCopied) {
          copy_16(tile + (row + i * kStep) * (kTile + kPad) + column % kTile, at + i * kStep * width,
                  kWhole || (in && here < s.k));
        } else if constexpr (kPacked) {
          piece[i] = kWhole || (in && here < s.k)
                         ? __ldg(reinterpret_cast<const uint4*>(at + i * kStep * width))
                         : uint4{};
        } else {
          uint32_t x[kQuad] = {};
          INVAR_UNROLL
          for (int c = 0; c < kQuad; ++c)
            if (here < s.k && column + c < s.outer) x[c] = s.w.word(here, column + c, s.k);
          piece[i] = {x[0], x[1], x[2], x[3]};
        }
      }
      if constexpr (kPacked) at = &at[kDepth / kDeep * width];
    }
    __device__ void put(Word* tile) {
      INVAR_UNROLL
      for (int i = 0; i < kPieces; ++i) {
        if (kCopied || !has(i)) continue;
        const int down = (row + i * kStep) * kDeep;
        const int here = from + down;
        const typename Words::Known known = s.w.known(here < s.k ? here : 0, column, s.outer);
        INVAR_UNROLL
        for (int d = 0; d < kDeep; ++d) {
          // What lies beyond K takes no part, whatever its scale is.
          const bool out = Words::kScaled && here + d >= s.k;
          *reinterpret_cast<typename Words::Quad*>(tile + (down + d) * (kTile + kPad) + column % kTile) =
              out ? typename Words::Quad{} : s.w.weights(piece[i], known, d);
        }
      }
    }
  };
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
