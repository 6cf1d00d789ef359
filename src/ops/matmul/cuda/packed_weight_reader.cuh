// Readers of the stored formats of b. A reader makes words of 32 bits, each with kPerWord
// consecutive k of one column, the lowest k in the lowest bits, and dequantizes four columns of
// words at a time (matmul.1, matmul_nbits.2).
#pragma once
#include "kernels/cuda/launch.h"
#include "num/contract/schedule.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/nbits.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kQuad = 4;  // columns that a thread reads together: 16 bytes

// A reader has
//   read_word(k, j, end): the word of b that begins at k, of column j; k >= end are 0
//   dequantize(w, group, at): the values of the at-th k in four words; `at` is a constant when
//   unrolled group_params(k, j, n): scales and zero points at k of the columns [j, j + 4) that are
//   below n starts_group(k): whether a quantisation group starts at k

struct alignas(16) Floats {
  float v[kQuad];
};

// The strides of b[k][j] in memory, from which read_word() reads.
struct Strides {
  int64_t k, j;
};

struct ReaderF32 {
  static constexpr int kPerWord = 1;
  static constexpr bool kScaled = false;
  using Word = float;
  using Quad = Floats;
  using GroupParams = int;
  const float* p;
  Strides s;
  __host__ __device__ void advance(int64_t elements) { p += elements; }
  __device__ uint32_t read_word(int64_t k, int64_t j, int64_t) const {
    return num::f32_bits(p[k * s.k + j * s.j]);
  }
  __device__ GroupParams group_params(int64_t, int64_t, int64_t) const { return 0; }
  __device__ bool starts_group(int64_t) const { return false; }
  __device__ Quad dequantize(const uint4& w, GroupParams, int) const {
    return {num::f32_from_bits(w.x), num::f32_from_bits(w.y), num::f32_from_bits(w.z),
            num::f32_from_bits(w.w)};
  }
};

// bf16 or f16: two elements in a word.
template <class Half>
struct ReaderHalf {
  static constexpr int kPerWord = 2;
  static constexpr bool kScaled = false;
  using Word = float;
  using Quad = Floats;
  using GroupParams = int;
  const uint16_t* p;
  Strides s;
  __host__ __device__ void advance(int64_t elements) { p += elements; }
  __device__ uint32_t read_word(int64_t k, int64_t j, int64_t end) const {
    const uint32_t high = k + 1 < end ? p[(k + 1) * s.k + j * s.j] : 0;
    return p[k * s.k + j * s.j] | high << 16;
  }
  __device__ GroupParams group_params(int64_t, int64_t, int64_t) const { return 0; }
  __device__ bool starts_group(int64_t) const { return false; }
  __device__ Quad dequantize(const uint4& w, GroupParams, int at) const {
    return {Half::widen(w.x, at), Half::widen(w.y, at), Half::widen(w.z, at), Half::widen(w.w, at)};
  }
};
struct HalfBf16 {
  static __device__ float widen(uint32_t w, int at) {
    return num::f32_from_bits(at ? w & 0xffff0000u : w << 16);
  }
};
struct HalfF16 {
  static __device__ float widen(uint32_t w, int at) {
    float x;  // exact for every number; a NaN may change its payload, which never matters (formats.2)
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<uint16_t>(w >> 16 * at)));
    return x;
  }
};

// Quantised integers, with a scale and a zero point for each group of a column.
template <int kBits>
struct ReaderNbits {
  static constexpr int kPerWord = 32 / kBits;
  static constexpr bool kScaled = true;
  using Word = float;
  using Quad = Floats;
  matmul::Nbits l;
  View b;
  const void* scales;
  DType format;
  bool one_scale;
  const uint8_t* zeros;  // null: l.zero
  bool one_zero;
  struct GroupParams {
    Quad s, z;
  };
  __host__ __device__ void advance(int64_t) {}  // one matrix
  __device__ uint32_t read_word(int64_t k, int64_t j, int64_t end) const {
    uint32_t w = 0;
    for (int i = 0; i < kPerWord; ++i)
      if (k + i < end) w |= static_cast<uint32_t>(matmul::integer(l, b, j, k + i)) << kBits * i;
    return w;
  }
  __device__ float scale(int64_t j, int64_t group) const {
    const int64_t at = matmul::scale_index(l, one_scale, j, group);
    if (format == DType::f32) return static_cast<const float*>(scales)[at];
    const uint16_t h = static_cast<const uint16_t*>(scales)[at];
    return format == DType::bf16 ? num::f32_from_bf16(h) : num::f32_from_f16(h);
  }
  __device__ GroupParams group_params(int64_t k, int64_t j, int64_t n) const {
    const int64_t group = l.block ? k / l.block : 0;
    GroupParams x{};
    INVAR_UNROLL
    for (int i = 0; i < kQuad; ++i) {
      if (j + i >= n) continue;
      x.s.v[i] = scale(j + i, group);
      x.z.v[i] = static_cast<float>(zeros ? matmul::zero_point(l, zeros, one_zero, j + i, group)
                                          : matmul::zero_point(l));
    }
    return x;
  }
  __device__ bool starts_group(int64_t k) const {
    return l.block && static_cast<uint32_t>(k) % static_cast<uint32_t>(l.block) == 0;
  }
  __device__ Quad dequantize(const uint4& w, const GroupParams& x, int at) const {
    const uint32_t words[kQuad] = {w.x, w.y, w.z, w.w};
    Quad q;
    INVAR_UNROLL
    for (int i = 0; i < kQuad; ++i) {  // matmul_nbits.2
      const auto integer = static_cast<float>(words[i] >> kBits * at & ((1u << kBits) - 1));
      q.v[i] = num::canonicalize((integer - x.z.v[i]) * x.s.v[i]);
    }
    return q;
  }
};

// Calls f with the reader of a b that is not quantised.
template <class Fn>
void with_reader(DType t, const void* data, Strides s, Fn f) {
  if (t == DType::f32)
    f(ReaderF32{static_cast<const float*>(data), s});
  else if (t == DType::bf16)
    f(ReaderHalf<HalfBf16>{static_cast<const uint16_t*>(data), s});
  else
    f(ReaderHalf<HalfF16>{static_cast<const uint16_t*>(data), s});
}

// The packed layout of b: panels of 32 columns; the last panel is narrower, a multiple of 4. A
// panel is stored row of words after row of words. So a thread's four columns are 16 bytes, a row
// of a panel is 128 bytes, and a chain of a panel is contiguous.
constexpr int kPanelColumns = 32;
struct PanelSlice {
  int64_t at;  // its first word in the matrix
  int width;
};
INVAR_INLINE PanelSlice panel_slice(int64_t panel, int64_t n, int64_t rows) {
  const int64_t first = panel * kPanelColumns, left = (n - first + kQuad - 1) / kQuad * kQuad;
  return {first * rows, static_cast<int>(left < kPanelColumns ? left : kPanelColumns)};
}
INVAR_INLINE int64_t packed_words(int64_t n, int64_t rows) {
  return (n + kQuad - 1) / kQuad * kQuad * rows;
}

// Packs b; each thread writes one word.
template <class Reader>
void enqueue_pack_words(Reader w, int64_t n, int64_t k, uint32_t* to, Stream stream) {
  const int64_t rows = ceil_div(k, Reader::kPerWord);
  launch_for_each(stream, packed_words(n, rows), [=] __device__(int64_t i) {
    const int64_t panel = i / (kPanelColumns * rows);
    const PanelSlice p = panel_slice(panel, n, rows);
    const int64_t row = (i - p.at) / p.width, j = panel * kPanelColumns + (i - p.at) % p.width;
    to[i] = j < n ? w.read_word(row * Reader::kPerWord, j, k) : 0;
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
