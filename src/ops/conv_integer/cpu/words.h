// Bytes as words of int32 lanes, several k in each, and what an instruction set multiplies and adds
// them with. Sums are exact modulo 2^32 (conv_integer.2), so their order is free. With extensions a
// word is four bytes, x unsigned on x86 and signed on NEON, weights signed; both moved by 128 where
// their type is the other one. Else it is two int16, x minus its zero point and weights as they
// are. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_microkernel.h"
#include "kernels/cpu/pair_sums.h"
#include "ops/conv_integer/conv_integer.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using conv_integer::Geometry;

#if INVAR_EXTENSION_AVX512_VNNI || INVAR_EXTENSION_AVX512_AMX || INVAR_EXTENSION_AVX2_VNNI || \
    INVAR_EXTENSION_NEON_DOT || INVAR_EXTENSION_NEON_I8MM
#define INVAR_BYTE_QUADS 1
#else
#define INVAR_BYTE_QUADS 0
#endif
constexpr int kWordBytes = INVAR_BYTE_QUADS ? 4 : 2;  // k of a word
constexpr bool kSignedWords = kW == 4;                // quads of x are signed

#if INVAR_BYTE_QUADS
INVAR_INLINE I add_word_products(I sum, I x, I w) {  // in assembly: see add_pair_products
#if INVAR_ISA_NEON
  __asm__ volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum.v) : "w"(x.v), "w"(w.v));
#else
  __asm__ volatile(INVAR_VEX "vpdpbusd %2, %1, %0" : "+v"(sum.v) : "v"(x.v), "v"(w.v));
#endif
  return sum;
}
constexpr int32_t kWordOfOnes = 0x01010101;
#else
INVAR_INLINE I add_word_products(I sum, I x, I w) {
  return add_pair_products(sum, x, w);
}
constexpr int32_t kWordOfOnes = 0x00010001;
#endif

INVAR_INLINE I load_words(const int32_t* p) {
  return bits(load(reinterpret_cast<const float*>(p)));
}

// How x becomes words: what its bytes are xored with, what pairs subtract then, and the zero point
// that is left in them.
struct WordsOfX {
  int32_t moved, subtracted, zero;
  explicit WordsOfX(const Call& call) {
    const bool is_signed = call.in[0].dtype == DType::i8;
    moved = INVAR_BYTE_QUADS ? (is_signed != kSignedWords ? 0x80 : 0) : (is_signed ? 0x80 : 0);
    const auto byte = static_cast<uint8_t>(conv_integer::zero_byte(call, 0, 0) ^ moved);
    subtracted = byte;
    zero = !INVAR_BYTE_QUADS ? 0 : kSignedWords ? static_cast<int8_t>(byte) : byte;
  }
};

// The word of lanes at + 0, 1, ... of `tall` rows of bytes; lanes from `left` on are of no matter.
INVAR_INLINE I word_of(const uint8_t* const (&row)[kWordBytes], int64_t at, int64_t tall, int64_t left,
                       const WordsOfX& as) {
  auto bytes = [&](int64_t i) __attribute__((always_inline))->I {
    if (i >= tall || left <= 0) return set1_i(0);
    return left >= kW ? load_u8(row[i] + at) : load_u8_n(row[i] + at, static_cast<int>(left));
  };
#if INVAR_BYTE_QUADS
  const I first = bit_or(bytes(0), shift_left<8>(bytes(1)));
  const I second = bit_or(shift_left<16>(bytes(2)), shift_left<24>(bytes(3)));
  const uint32_t some = 0x01010101u >> 8 * (4 - tall);
  return bit_xor(bit_or(first, second), set1_i(static_cast<int32_t>(static_cast<uint32_t>(as.moved) * some)));
#else
  const I moved = set1_i(as.moved), zero = set1_i(as.subtracted);
  const I low = bit_and(sub(bit_xor(bytes(0), moved), zero), set1_i(0xffff));
  return tall < 2 ? low : bit_or(low, shift_left<16>(sub(bit_xor(bytes(1), moved), zero)));
#endif
}

// The weights' integers in words, from their bytes.
INVAR_INLINE int32_t word_weight(uint8_t byte, DType dtype) {
  if (!INVAR_BYTE_QUADS) return conv_integer::integer_of(byte, dtype);
  return static_cast<int8_t>(dtype == DType::i8 ? byte : byte ^ 0x80);
}

// Packed weights: [group][tile of rows][word][row of the tile], then the sum of each row.
constexpr int64_t kWordRows = kMaxRows;
struct WordLayout {
  int64_t words, stride, tiles;
  explicit WordLayout(const conv_integer::Weights& w)
      : words((w.k + kWordBytes - 1) / kWordBytes),
        stride(num::min_i64(w.rows, kWordRows)),
        tiles(w.rows ? (w.rows + kWordRows - 1) / kWordRows : 0) {}
  int64_t group() const { return tiles * words * stride; }
  int64_t all(const conv_integer::Weights& w) const { return w.groups * group() + w.groups * w.rows; }
};
// Packs output channel m.
INVAR_INLINE void pack_row_of_weights(const View& v, const conv_integer::Weights& w, int64_t m,
                                      int32_t* packed) {
  const WordLayout l(w);
  const int64_t row = m % w.rows, group = m / w.rows;
  int32_t* to = packed + group * l.group() + row / kWordRows * l.words * l.stride + row % kWordRows;
  const uint8_t* from = v.as<const uint8_t>() + m * w.k;
  uint32_t sum = 0;
  for (int64_t k = 0; k < l.words * kWordBytes; k += kWordBytes, to += l.stride) {
    uint32_t word = 0;
    for (int64_t i = 0; i < kWordBytes && k + i < w.k; ++i) {
      const int64_t tap = (k + i) / w.channels, channel = (k + i) % w.channels;
      const int32_t q = word_weight(from[channel * w.taps + tap], v.dtype);
      sum += static_cast<uint32_t>(q);
      word |= (static_cast<uint32_t>(q) & (INVAR_BYTE_QUADS ? 0xff : 0xffff)) << 32 / kWordBytes * i;
    }
    *to = static_cast<int32_t>(word);
  }
  packed[w.groups * l.group() + m] = static_cast<int32_t>(sum);
}

size_t pack_bytes_of_weights(const View& v, int i, const Attributes& attrs) {
  if (i != 1) return 0;
  const conv_integer::Weights w = conv_integer::weights_of(v, attrs);
  return static_cast<size_t>(WordLayout(w).all(w)) * sizeof(int32_t);
}
void pack_weights(const View& v, int, const Attributes& attrs, void* packed) {
  const conv_integer::Weights w = conv_integer::weights_of(v, attrs);
  const WordLayout l(w);
  auto* to = static_cast<int32_t*>(packed);
  for (int64_t i = 0; i < w.groups * l.group(); ++i) to[i] = 0;
  for (int64_t m = 0; m < w.groups * w.rows; ++m) pack_row_of_weights(v, w, m, to);
}

// What a row's sums lack: result = sum + base - zero * (sum of the column's x).
struct RowEnd {
  int32_t base, zero;
};
INVAR_INLINE RowEnd row_end(const Call& call, const Geometry& p, const WordsOfX& as, const int32_t* sums,
                            int64_t m) {
  const int32_t zero = word_weight(conv_integer::zero_byte(call, 1, m), call.in[1].dtype);
  auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
  return {static_cast<int32_t>(u(call.in[2].as<const int32_t>()[m]) - u(as.zero) * u(sums[m]) +
                               u(zero) * u(p.k) * u(as.zero)),
          zero};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
