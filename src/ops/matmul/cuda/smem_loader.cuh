// Loaders of operands from global memory into tiles [k][outer] of words in shared memory. A
// source's Loader is a thread's share: load_async() starts to load the tile at k; store_smem()
// finishes it for sources whose words go through registers. Neither waits for asynchronous copies
// (kernels/cuda/async_copy.cuh). Elements outside of the operand arrive as zero; with kInterior
// there are none.
// k have 32 bits.
#pragma once
#include "kernels/cuda/async_copy.cuh"
#include "ops/matmul/cuda/packed_weight_reader.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The padding of a tile's rows: neither copies across rows nor reads along them have bank
// conflicts.
constexpr int kPad = 4;

// An f32 operand whose k are contiguous. A warp loads eight k of four rows at a time: 32 bytes of
// each row, and 32 banks.
struct KContiguous {
  using Word = float;
  static constexpr int kPerWord = 1;
  const float* p;
  int64_t ld, outer, k;
  __host__ __device__ void advance(int64_t elements, int64_t) { p += elements; }

  template <int kTile, int kDepth, int kThreads>
  struct Loader {
    static constexpr int kRows = kThreads / 8, kDown = kTile / kRows, kAlong = kDepth / 8;
    static_assert(kTile % kRows == 0 && kDepth % 8 == 0);
    const float* at[kDown];
    bool in[kDown];
    int k, to;
    __device__ void init(const KContiguous& s, int64_t first, int from) {
      const int i = threadIdx.x % 8, o = threadIdx.x / 8;
      k = s.k - i, to = i * (kTile + kPad) + o;
      INVAR_UNROLL
      for (int d = 0; d < kDown; ++d) {
        in[d] = first + o + d * kRows < s.outer;
        at[d] = s.p + (in[d] ? first + o + d * kRows : 0) * s.ld + from + i;
      }
    }
    template <bool kInterior>
    __device__ void load_async(float* tile, int from) {
      INVAR_UNROLL
      for (int d = 0; d < kDown; ++d) {
        INVAR_UNROLL
        for (int a = 0; a < kAlong; ++a)
          copy_async_4(tile + to + a * 8 * (kTile + kPad) + d * kRows, at[d] + a * 8,
                       kInterior || (in[d] && from + a * 8 < k));
        at[d] += kDepth;
      }
    }
    __device__ void store_smem(float*) {}
  };
};

// An f32 operand whose rows of one k are contiguous. kAligned: they are aligned to 16 bytes.
template <bool kAligned>
struct OuterContiguous {
  using Word = float;
  static constexpr int kPerWord = 1;
  const float* p;
  int64_t ld, outer, k;
  __host__ __device__ void advance(int64_t elements, int64_t) { p += elements; }

  template <int kTile, int kDepth, int kThreads>
  struct Loader {
    static constexpr int kAcross = kTile / 4, kRows = kThreads / kAcross, kDown = kDepth / kRows;
    static_assert(kThreads % kAcross == 0 && kDepth % kRows == 0);
    const float* at;
    int64_t step;
    int k, in, to;  // in: how many of four neighbours are in bounds
    __device__ void init(const OuterContiguous& s, int64_t first, int from) {
      const int i = threadIdx.x / kAcross, o = threadIdx.x % kAcross * 4;
      k = s.k - i, to = i * (kTile + kPad) + o, step = kRows * s.ld;
      const int64_t left = s.outer - first - o;
      in = left < 0 ? 0 : left > 4 ? 4 : static_cast<int>(left);
      at = s.p + (from + i) * s.ld + (in ? first + o : 0);
    }
    template <bool kInterior>
    __device__ void load_async(float* tile, int from) {
      INVAR_UNROLL
      for (int d = 0; d < kDown; ++d) {
        const bool in_bounds = kInterior || from + d * kRows < k;
        float* y = tile + to + d * kRows * (kTile + kPad);
        if constexpr (kAligned) {
          copy_async_partial(y, at, kInterior ? 4 : in_bounds ? in : 0);
        } else {
          INVAR_UNROLL
          for (int e = 0; e < 4; ++e) copy_async_4(y + e, at + e, kInterior || (in_bounds && e < in));
        }
        at += step;
      }
    }
    __device__ void store_smem(float*) {}
  };
};

// b by a reader, four columns at a time: from packed panels, or gathered from b as stored.
template <class Reader, bool kPacked>
struct WeightColumns {
  using Word = typename Reader::Word;
  static constexpr int kPerWord = Reader::kPerWord;
  Reader w;
  const uint32_t* packed;
  int64_t outer, k, rows;  // rows: rows of words of a packed panel
  // Advances to a later matrix: by `elements` of b as stored, or by so many packed matrices.
  __host__ __device__ void advance(int64_t elements, int64_t matrix) {
    if constexpr (kPacked)
      packed += matrix * packed_words(outer, rows);
    else
      w.advance(elements);
  }
  // To another matrix of the same shape.
  __device__ void move_to(const void* matrix) {
    if constexpr (kPacked)
      packed = static_cast<const uint32_t*>(matrix);
    else
      w.p = static_cast<decltype(w.p)>(matrix);
  }

  template <int kTile, int kDepth, int kThreads>
  struct Loader {
    static constexpr int kAcross = kTile / kQuad, kAll = kAcross * (kDepth / kPerWord);
    static constexpr int kPieces = (kAll + kThreads - 1) / kThreads, kStep = kThreads / kAcross;
    static constexpr bool kCopied = kPacked && Reader::kPerWord == 1;  // words are what the tile holds
    static_assert(kThreads % kAcross == 0 && kDepth % kPerWord == 0);
    WeightColumns s;
    int64_t column;
    const uint32_t* at;
    int width, row, from;  // in words; k
    bool in;
    uint4 piece[kCopied ? 1 : kPieces];
    __device__ bool has(int i) const { return kAll % kThreads == 0 || row + i * kStep < kDepth / kPerWord; }
    __device__ void init(const WeightColumns& source, int64_t first, int from_k) {
      s = source, row = threadIdx.x / kAcross;
      column = first + threadIdx.x % kAcross * kQuad, in = column < s.outer;
      if constexpr (kPacked) {
        const PanelSlice p = panel_slice(in ? column / kPanelColumns : 0, s.outer, s.rows);
        width = p.width;
        at = s.packed + p.at + int64_t{from_k / kPerWord + row} * width + column % kPanelColumns;
      }
    }
    template <bool kInterior>
    __device__ void load_async(Word* tile, int k) {
      from = k;
      INVAR_UNROLL
      for (int i = 0; i < kPieces; ++i) {
        if (!has(i)) continue;
        const int here = k + (row + i * kStep) * kPerWord;
        if constexpr (kCopied) {
          copy_async_16(tile + (row + i * kStep) * (kTile + kPad) + column % kTile, at + i * kStep * width,
                        kInterior || (in && here < s.k));
        } else if constexpr (kPacked) {
          piece[i] = kInterior || (in && here < s.k)
                         ? __ldg(reinterpret_cast<const uint4*>(at + i * kStep * width))
                         : uint4{};
        } else {
          uint32_t x[kQuad] = {};
          INVAR_UNROLL
          for (int c = 0; c < kQuad; ++c)
            if (here < s.k && column + c < s.outer) x[c] = s.w.read_word(here, column + c, s.k);
          piece[i] = {x[0], x[1], x[2], x[3]};
        }
      }
      if constexpr (kPacked) at += kDepth / kPerWord * width;
    }
    __device__ void store_smem(Word* tile) {
      INVAR_UNROLL
      for (int i = 0; i < kPieces; ++i) {
        if (kCopied || !has(i)) continue;
        const int down = (row + i * kStep) * kPerWord;
        const int here = from + down;
        const typename Reader::GroupParams group = s.w.group_params(here < s.k ? here : 0, column, s.outer);
        INVAR_UNROLL
        for (int d = 0; d < kPerWord; ++d) {
          // Elements beyond K take no part, whatever their scale is.
          const bool out = Reader::kScaled && here + d >= s.k;
          *reinterpret_cast<typename Reader::Quad*>(tile + (down + d) * (kTile + kPad) + column % kTile) =
              out ? typename Reader::Quad{} : s.w.dequantize(piece[i], group, d);
        }
      }
    }
  };
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
