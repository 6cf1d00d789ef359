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

// What makes the words of several places from bytes at once: an instruction set's permutations.
#if INVAR_BYTE_QUADS && (INVAR_ISA_AVX512 || INVAR_ISA_AVX2)
#define INVAR_WORD_PERMUTATIONS 1
#else
#define INVAR_WORD_PERMUTATIONS 0
#endif
#if INVAR_WORD_PERMUTATIONS
// Words of 4 * kW places, of whose four bytes one is in each row.
INVAR_INLINE void words_of_rows(const uint8_t* const (&row)[4], I (&word)[4]) {
#if INVAR_ISA_AVX512
  // Unpacking is within lanes of 16 bytes, so each gets its four bytes of each vector first.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(row[i]));
  const __m512i ab[2] = {_mm512_unpacklo_epi8(r[0], r[1]), _mm512_unpackhi_epi8(r[0], r[1])};
  const __m512i cd[2] = {_mm512_unpacklo_epi8(r[2], r[3]), _mm512_unpackhi_epi8(r[2], r[3])};
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    word[2 * i].v = _mm512_unpacklo_epi16(ab[i], cd[i]);
    word[2 * i + 1].v = _mm512_unpackhi_epi16(ab[i], cd[i]);
  }
#else
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  __m256i r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    r[i] = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row[i])), order);
  const __m256i ab[2] = {_mm256_unpacklo_epi8(r[0], r[1]), _mm256_unpackhi_epi8(r[0], r[1])};
  const __m256i cd[2] = {_mm256_unpacklo_epi8(r[2], r[3]), _mm256_unpackhi_epi8(r[2], r[3])};
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    word[2 * i].v = _mm256_unpacklo_epi16(ab[i], cd[i]);
    word[2 * i + 1].v = _mm256_unpackhi_epi16(ab[i], cd[i]);
  }
#endif
}
// Words of kW places whose bytes are the four from each place on. Reads less than 64 bytes.
INVAR_INLINE I slid_words(const uint8_t* x) {
  const __m128i quads = _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
#if INVAR_ISA_AVX512
  const __m512i order = _mm512_setr_epi32(0, 1, 0, 0, 1, 2, 1, 1, 2, 3, 2, 2, 3, 4, 3, 3);
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return {_mm512_shuffle_epi8(_mm512_permutexvar_epi32(order, _mm512_castsi256_si512(bytes)),
                              _mm512_broadcast_i32x4(quads))};
#else
  const auto* at = reinterpret_cast<const __m128i*>(x);
  const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at)),
                                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 4)), 1);
  return {_mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(quads))};
#endif
}
#endif

// What all bytes of a word are xored with, or the first `tall`.
INVAR_INLINE int32_t moved_word(const WordsOfX& as, int64_t tall = 4) {
  return static_cast<int32_t>(static_cast<uint32_t>(as.moved) * (0x01010101u >> 8 * (4 - tall)));
}

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
  return bit_xor(bit_or(first, second), set1_i(moved_word(as, tall)));
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

INVAR_INLINE bool is_depthwise(const conv_integer::Weights& p) {
  return p.channels == 1 && p.rows == 1;
}
// Whether a word has channels of one tap, so that each place of x becomes words once for all taps:
// if there are several, and the channels nearly fill their words.
INVAR_INLINE bool has_channel_words(const conv_integer::Weights& w) {
  const int64_t filled = (w.channels + kWordBytes - 1) / kWordBytes * kWordBytes;
  return w.taps > 1 && w.channels > 0 && !is_depthwise(w) && filled * 8 <= w.channels * 9;
}
// Packed weights: [group][tile of rows][word][row of the tile], then the sum of each row. A line is
// what words do not cross: the channels of a tap; for one channel to a group the taps of a line of
// the kernel, whose places follow one another; else all k.
constexpr int64_t kWordRows = kMaxRows;
struct WordLayout {
  int64_t line, each, words, stride, tiles;  // k of a line, words of it, words in all
  explicit WordLayout(const conv_integer::Weights& w)
      : line(is_depthwise(w) && w.last > 0 ? w.last
             : has_channel_words(w)        ? w.channels
             : w.k > 0                     ? w.k
                                           : 1),
        each((line + kWordBytes - 1) / kWordBytes),
        words(w.k / line * each),
        stride(num::min_i64(w.rows, kWordRows)),
        tiles(w.rows ? (w.rows + kWordRows - 1) / kWordRows : 0) {}
  // The first k of a word, and how many it has.
  int64_t first(int64_t word) const { return word / each * line + word % each * kWordBytes; }
  int64_t tall(int64_t word) const { return num::min_i64(kWordBytes, line - word % each * kWordBytes); }
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
  for (int64_t j = 0; j < l.words; ++j, to += l.stride) {
    const int64_t k = l.first(j), tall = l.tall(j);
    uint32_t word = 0;
    for (int64_t i = 0; i < tall; ++i) {
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
