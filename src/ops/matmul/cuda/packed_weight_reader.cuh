// The stored formats of b as a GPU reads them: words of 32 bits, each with kDeep consecutive k of one column, the lowest k in
// the lowest bits; and four columns of words at a time, widened (matmul.1, matmul_nbits.2).
#pragma once
#include "num/contract/schedule.h"
#include "kernels/cuda/launch.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/nbits.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kQuad = 4;  // columns that a thread reads together: 16 bytes

// weights(w, known, at): the values of k = at in four words, `at` a constant once loops are unrolled. known(k, j, n): what the
// groups of columns [j, j + 4), those below n, say at k. changes(k): whether k opens a group.

struct alignas(16) Floats {
  float v[kQuad];
};

// The elements of b[k][j] in memory, and how a word is put together of them.
struct Strides {
  int64_t k, j;
};

struct WordsF32 {
  static constexpr int kDeep = 1;
  static constexpr bool kScaled = false;
  using Word = float;
  using Quad = Floats;
  using Known = int;
  const float* p;
  Strides s;
  __host__ __device__ void move(int64_t elements) { p = &p[elements]; }
  __device__ uint32_t word(int64_t k, int64_t j, int64_t) const {
    return num::f32_bits(p[k * s.k + j * s.j]);
  }
  __device__ Known known(int64_t, int64_t, int64_t) const { return 0; }
  __device__ bool changes(int64_t) const { return false; }
  __device__ Quad weights(const uint4& w, Known, int) const {
    return {num::f32_from_bits(w.x), num::f32_from_bits(w.y), num::f32_from_bits(w.z),
            num::f32_from_bits(w.w)};
  }
};

// Two halves of 16 bits.
template <class Half>
struct WordsHalf {
  static constexpr int kDeep = 2;
  static constexpr bool kScaled = false;
  using Word = float;
  using Quad = Floats;
  using Known = int;
  const uint16_t* p;
  Strides s;
  __host__ __device__ void move(int64_t elements) { p = &p[elements]; }
  __device__ uint32_t word(int64_t k, int64_t j, int64_t end) const {
    const uint32_t high = k + 1 < end ? p[(k + 1) * s.k + j * s.j] : 0;
    return p[k * s.k + j * s.j] | high << 16;
  }
  __device__ Known known(int64_t, int64_t, int64_t) const { return 0; }
  __device__ bool changes(int64_t) const { return false; }
  __device__ Quad weights(const uint4& w, Known, int at) const {
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

// Integers with a scale and a zero point for each group of a column.
template <int kBits>
struct WordsNbits {
  static constexpr int kDeep = 32 / kBits;
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
  struct Known {
    Quad s, z;
  };
  __host__ __device__ void move(int64_t) {}  // one matrix
  __device__ uint32_t word(int64_t k, int64_t j, int64_t end) const {
    uint32_t w = 0;
    for (int i = 0; i < kDeep; ++i)
      if (k + i < end) w |= static_cast<uint32_t>(matmul::integer(l, b, j, k + i)) << kBits * i;
    return w;
  }
  __device__ float scale(int64_t j, int64_t group) const {
    const int64_t at = matmul::scale_index(l, one_scale, j, group);
    if (format == DType::f32) return static_cast<const float*>(scales)[at];
    const uint16_t h = static_cast<const uint16_t*>(scales)[at];
    return format == DType::bf16 ? num::f32_from_bf16(h) : num::f32_from_f16(h);
  }
  __device__ Known known(int64_t k, int64_t j, int64_t n) const {
    const int64_t group = l.block ? k / l.block : 0;
    Known x{};
    INVAR_UNROLL
    for (int i = 0; i < kQuad; ++i) {
      if (j + i >= n) continue;
      x.s.v[i] = scale(j + i, group);
      x.z.v[i] = static_cast<float>(zeros ? matmul::zero_point(l, zeros, one_zero, j + i, group)
                                          : matmul::zero_point(l));
    }
    return x;
  }
  __device__ bool changes(int64_t k) const {
    return l.block && static_cast<uint32_t>(k) % static_cast<uint32_t>(l.block) == 0;
  }
  __device__ Quad weights(const uint4& w, const Known& x, int at) const {
    const uint32_t words[kQuad] = {w.x, w.y, w.z, w.w};
    Quad q;
    INVAR_UNROLL
    for (int i = 0; i < kQuad; ++i) {  // matmul_nbits.2
      const auto integer = static_cast<float>(words[i] >> kBits * at & ((1u << kBits) - 1));
      q.v[i] = num::canon((integer - x.z.v[i]) * x.s.v[i]);
    }
    return q;
  }
};

// f(words) for a b that is no quantised one.
template <class Fn>
void with_words(DType t, const void* data, Strides s, Fn f) {
  if (t == DType::f32)
    f(WordsF32{static_cast<const float*>(data), s});
  else if (t == DType::bf16)
    f(WordsHalf<HalfBf16>{static_cast<const uint16_t*>(data), s});
  else
    f(WordsHalf<HalfF16>{static_cast<const uint16_t*>(data), s});
}

// A packed matrix: panels of 32 columns, the last as wide as what is left needs, a multiple of 4; in a panel row after row
// of words. So four columns of a thread are 16 bytes, a row of a panel is 128, and a chain of a panel is contiguous.
constexpr int kPanelColumns = 32;
struct PanelPlace {
  int64_t at;  // of its first word in the matrix
  int width;
};
INVAR_INLINE PanelPlace panel_place(int64_t panel, int64_t n, int64_t rows) {
  const int64_t first = panel * kPanelColumns, left = (n - first + kQuad - 1) / kQuad * kQuad;
  return {first * rows, static_cast<int>(left < kPanelColumns ? left : kPanelColumns)};
}
INVAR_INLINE int64_t packed_words(int64_t n, int64_t rows) {
  return (n + kQuad - 1) / kQuad * kQuad * rows;
}

// Each thread one word.
template <class Words>
void enqueue_words(Words w, int64_t n, int64_t k, uint32_t* to, Stream stream) {
  const int64_t rows = ceil_div(k, Words::kDeep);
  each(stream, packed_words(n, rows), [=] __device__(int64_t i) {
    const int64_t panel = i / (kPanelColumns * rows);
    const PanelPlace p = panel_place(panel, n, rows);
    const int64_t row = (i - p.at) / p.width, j = panel * kPanelColumns + (i - p.at) % p.width;
    to[i] = j < n ? w.word(row * Words::kDeep, j, k) : 0;
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
