// The numbers of codes (layout.h), made in registers. Each kind has kDeep codes in kWords
// words of a column; constants(at) of a group, from its scale S and addend A of kTileColumns
// columns each; unit(word, constants, sink), which calls sink(k, w), k ascending, with code k of
// the columns of each vector. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/coded/layout.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <int NV>
INVAR_INLINE void load_words(const uint32_t* word, I (&x)[NV]) {
#pragma GCC unroll 32
  for (int v = 0; v < NV; ++v) x[v] = bits(load(reinterpret_cast<const float*>(word + v * kW)));
}
// S and A of a group.
template <int NV>
struct ScaleAndAddend {
  F scale[NV], addend[NV];
};
struct WithScaleAndAddend {
  using Word = uint32_t;
  template <int NV>
  INVAR_INLINE ScaleAndAddend<NV> constants(const float* at) {
    ScaleAndAddend<NV> c;
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v)
      c.scale[v] = load(at + v * kW), c.addend[v] = load(at + kTileColumns + v * kW);
    return c;
  }
};

// Integers: q S + A with one rounding. Fields of the lower half of a word are used in place, field
// i as 2^(kBits i) q, so their scale is S / 2^(kBits i); then the upper half is shifted down.
template <int kBits>
struct Integers {
  using Word = uint32_t;
  static constexpr CodeUnit kUnit = code_unit(kBits);
  static constexpr int kDeep = kUnit.deep, kWords = kUnit.words;
  static constexpr int kFields = kUnit.fields(), kHalf = (kFields + 1) / 2;
  template <int NV>
  struct Constants {
    F scale[kHalf][NV], addend[NV];
  };
  template <int NV>
  INVAR_INLINE Constants<NV> constants(const float* at) {
    Constants<NV> c;
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) {
      c.scale[0][v] = load(at + v * kW), c.addend[v] = load(at + kTileColumns + v * kW);
#pragma GCC unroll 8
      for (int i = 1; i < kHalf; ++i)
        c.scale[i][v] = mul(c.scale[0][v], set1(1.0f / static_cast<float>(1 << kBits * i)));
    }
    return c;
  }

  template <int NV, class Sink>
  INVAR_INLINE void unit(const uint32_t* word, const Constants<NV>& c, Sink sink) {
    I last[NV];  // the highest bits of the words, those of the last word highest
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) last[v] = set1_i(0);
#pragma GCC unroll 1
    for (int i = 0; i < kWords; ++i) {
      I x[NV];
      F w[NV];
      load_words(word + i * kTileColumns, x);
#pragma GCC unroll 32
      for (int v = 0; v < NV && kWords > 1; ++v)
        last[v] = bit_or(shift_right<2>(last[v]), bit_and(x[v], set1_i(static_cast<int32_t>(0xc0000000))));
#pragma GCC unroll 8
      for (int j = 0; j < kFields; ++j) {
        const I mask = set1_i(((1 << kBits) - 1) << kBits * (j % kHalf));
#pragma GCC unroll 32
        for (int v = 0; v < NV; ++v) {
          if (j == kHalf) x[v] = shift_right<kBits * kHalf>(x[v]);
          w[v] = fma(to_float(bit_and(x[v], mask)), c.scale[j % kHalf][v], c.addend[v]);
        }
        sink(i * kFields + j, w);
      }
    }
    if constexpr (kWords > 1) {
      F w[NV];
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) last[v] = shift_right<32 - 2 * kWords>(last[v]);
#pragma GCC unroll 2
      for (int k = kFields * kWords; k < kDeep; ++k) {
#pragma GCC unroll 32
        for (int v = 0; v < NV; ++v) {
          w[v] = fma(to_float(bit_and(last[v], set1_i((1 << kBits) - 1))), c.scale[0][v], c.addend[v]);
          last[v] = shift_right<kBits>(last[v]);
        }
        sink(k, w);
      }
    }
  }
};

// Integers of two or three bits: q S + A with one rounding. A place in a table has the codes above
// it, too, so that no mask is needed, and a table for the next code no shift.
template <int kBits>
struct FewBits : WithScaleAndAddend {
  static constexpr CodeUnit kUnit = code_unit(kBits);
  using Word = std::conditional_t<kUnit.word_bits == 16, uint16_t, uint32_t>;
  static constexpr int kDeep = kUnit.deep, kWords = kUnit.words, kFields = kUnit.fields();
  static_assert(kUnit.spare() * kWords == (kDeep - kFields * kWords) * kBits);
  struct Numbers {
    alignas(64) float at[32];
    alignas(64) uint16_t high[32];  // the higher halves of their bits
  };
  template <int kField>
  static constexpr Numbers kNumbers = [] {
    Numbers t{};
    for (int i = 0; i < 32; ++i) {
      t.at[i] = static_cast<float>(i >> kBits * kField & ((1 << kBits) - 1));
      t.high[i] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, t.at[i]) >> 16);
    }
    return t;
  }();
  // Words of 16 bits lie in the higher half of the lanes.
  template <int NV>
  INVAR_INLINE void load(const Word* word, I (&x)[NV]) {
    if constexpr (kUnit.word_bits == 32) {
      load_words(word, x);
    } else {
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) x[v] = bits(load_bf16(word + v * kW));
    }
  }
#if INVAR_ISA_AVX512
  // Of the code kField above the lowest bits, and above those of the higher halves.
  template <int kField>
  INVAR_INLINE F low(I x) {
    return {_mm512_permutexvar_ps(x.v, _mm512_load_ps(kNumbers<kField>.at))};
  }
  template <int kField>
  INVAR_INLINE F high(I x) {
    return {_mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, x.v, _mm512_load_si512(kNumbers<kField>.high)))};
  }
#else
  INVAR_INLINE F number(I x) {
    if constexpr (kTable >= 1 << kBits) return pick(kNumbers<0>.at, x);
    return to_float(bit_and(x, set1_i((1 << kBits) - 1)));
  }
#endif

  template <int NV, class Sink>
  INVAR_INLINE void unit(const Word* word, const ScaleAndAddend<NV>& c, Sink sink) {
    const auto give = [&](int k, auto number) __attribute__((always_inline)) {
      F w[NV];
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) w[v] = fma(number(v), c.scale[v], c.addend[v]);
      sink(k, w);
    };
    I x[NV], last[NV];  // the highest bits of the words, that of the last word highest
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) last[v] = set1_i(0);
#pragma GCC unroll 3
    for (int i = 0; i < kWords; ++i) {
      load<NV>(word + i * kTileColumns, x);
      if constexpr (kUnit.spare() > 0) {
#pragma GCC unroll 32
        for (int v = 0; v < NV; ++v)
          last[v] = bit_or(shift_right<1>(last[v]), bit_and(x[v], set1_i(INT32_MIN)));
      }
#if INVAR_ISA_AVX512
#pragma GCC unroll 5
      for (int j = 0; j < kFields; j += kBits == 2 ? 4 : 1) {
        if constexpr (kBits == 2) {
          give(
              j, [&](int v) __attribute__((always_inline)) { return low<0>(x[v]); });
          give(
              j + 1, [&](int v) __attribute__((always_inline)) { return low<1>(x[v]); });
          give(
              j + 2, [&](int v) __attribute__((always_inline)) { return high<0>(x[v]); });
          give(
              j + 3, [&](int v) __attribute__((always_inline)) { return high<1>(x[v]); });
        } else {
          give(
              i * kFields + j, [&](int v) __attribute__((always_inline)) { return high<0>(x[v]); });
        }
#pragma GCC unroll 32
        for (int v = 0; v < NV; ++v) x[v] = shift_right < kBits == 2 ? 4 : 3 > (x[v]);
      }
#else
      if constexpr (kUnit.word_bits == 16) {
#pragma GCC unroll 32
        for (int v = 0; v < NV; ++v) x[v] = shift_right<16>(x[v]);
      }
#pragma GCC unroll 16
      for (int j = 0; j < kFields; ++j) {
        give(
            i * kFields + j, [&](int v) __attribute__((always_inline)) { return number(x[v]); });
#pragma GCC unroll 32
        for (int v = 0; v < NV; ++v) x[v] = shift_right<kBits>(x[v]);
      }
#endif
    }
    if constexpr (kUnit.spare()) {
      give(
          kDeep - 1, [&](int v) __attribute__((always_inline)) {
#if INVAR_ISA_AVX512
            return high<0>(shift_right<16 - kBits>(last[v]));
#else
        return number(shift_right<32 - kBits>(last[v]));
#endif
          });
    }
  }
};

// Floats of kBits bits, kExponent of them the exponent's, without infinity.
template <int kBits, int kExponent>
struct SmallFloat : WithScaleAndAddend {
  static constexpr int kDeep = 32 / kBits, kWords = 1;
  static constexpr int kMantissa = kBits - 1 - kExponent, kBias = (1 << (kExponent - 1)) - 1;

  // The number in the highest bits of x: exact. Its bits moved to those of a binary32 number, with
  // the bias added, are its size y, but for a subnormal one, whose size is 2y less the smallest
  // normal number. Of the two the smaller one is right, since 2y - n >= y for normal y.
  INVAR_INLINE F number(I x) {
    constexpr int kMask = ((1 << (kBits - 1)) - 1) << (23 - kMantissa);
    constexpr int kLeast = (127 + 1 - kBias) << 23;  // the smallest normal number
    const I size = add(bit_and(shift_right<8 - kExponent>(x), set1_i(kMask)), set1_i((127 - kBias) << 23));
    const F y = from_bits(size);
    const F exact = smaller(y, fma(y, set1(2.0f), neg(from_bits(set1_i(kLeast)))));
    return from_bits(bit_xor(bits(exact), bit_and(x, set1_i(INT32_MIN))));
  }

  template <int NV, class Sink>
  INVAR_INLINE void unit(const uint32_t* word, const ScaleAndAddend<NV>& c, Sink sink) {
    I x[NV];
    F w[NV];
    load_words(word, x);
#pragma GCC unroll 8
    for (int j = 0; j < kDeep; ++j) {
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) {
        w[v] = mul(number(x[v]), c.scale[v]);
        x[v] = shift_left<kBits>(x[v]);
      }
      sink(j, w);
    }
  }
};

constexpr float kSixteen[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr float kE2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// Places in a table of sixteen numbers t, plus kMore: t S + A with one rounding. kShort: numbers
// are those of bfloat16, too.
template <const float (&kNumbers)[16], bool kShort = true, int kMore = 0>
struct TableOf16 : WithScaleAndAddend {
  static constexpr int kDeep = 8, kWords = 1;
  struct Numbers {
    alignas(64) float at[32];
    alignas(64) uint16_t high[32];  // the higher halves of their bits
  };
  static constexpr Numbers kTables = [] {
    Numbers t{};
    for (int i = 0; i < 32; ++i) {
      t.at[i] = kNumbers[i % 16] + kMore;
      t.high[i] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, t.at[i]) >> 16);
    }
    return t;
  }();
  INVAR_INLINE F number(I x) {
    if constexpr (kTable == 8)
      return select(gt(bit_and(x, set1_i(8)), set1_i(0)), pick(kTables.at + 8, x), pick(kTables.at, x));
    if constexpr (kTable >= 16) return pick(kTables.at, x);
    alignas(64) float lane[kW];
    store(lane, from_bits(bit_and(x, set1_i(15))));
    for (int i = 0; i < kW; ++i) lane[i] = kTables.at[__builtin_bit_cast(int32_t, lane[i])];
    return load(lane);
  }
#if INVAR_ISA_AVX512
  // Of places in the lowest bits of words, and of their higher halves.
  INVAR_INLINE F low(I x) {
    return {_mm512_permutexvar_ps(x.v, _mm512_load_ps(kTables.at))};
  }
  INVAR_INLINE F high(I x) {
    if (!kShort) return low(shift_right<16>(x));
    return {_mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, x.v, _mm512_load_si512(kTables.high)))};
  }
#endif

  template <int NV, class Sink>
  INVAR_INLINE void unit(const uint32_t* word, const ScaleAndAddend<NV>& c, Sink sink) {
    I x[NV];
    F w[NV];
    load_words(word, x);
#if INVAR_ISA_AVX512
    static_assert(kNibbleTables);
#pragma GCC unroll 4
    for (int j = 0; j < kDeep; j += 2) {
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) w[v] = fma(low(x[v]), c.scale[v], c.addend[v]);
      sink(j, w);
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) {
        w[v] = fma(high(x[v]), c.scale[v], c.addend[v]);
        x[v] = shift_right<4>(x[v]);
      }
      sink(j + 1, w);
    }
#else
    for (int j = 0; j < kDeep; ++j) {
      for (int v = 0; v < NV; ++v) {
        w[v] = fma(number(x[v]), c.scale[v], c.addend[v]);
        x[v] = shift_right<4>(x[v]);
      }
      sink(j, w);
    }
#endif
  }
};

#if INVAR_ISA_AVX512
using Integers4 = TableOf16<kSixteen>;
using FloatsE2m1 = TableOf16<kE2m1>;
#else
using Integers4 = Integers<4>;
using FloatsE2m1 = SmallFloat<4, 2>;
#endif

struct RoundToBf16 {  // formats.6, of a number that is normal or 0
  INVAR_INLINE F round(F x) {
    const I u = bits(x), odd = bit_and(shift_right<16>(u), set1_i(1));
    return from_bits(bit_and(add(add(u, set1_i(0x7fff)), odd), set1_i(static_cast<int32_t>(0xffff0000))));
  }
};
struct RoundToF16 {
  INVAR_INLINE F round(F x) { return widen_f16(narrow_f16(x)); }
};
struct AsItIs {
  INVAR_INLINE F round(F x) { return x; }
};

// The numbers of Q, each rounded. A K block is made at once for any number of rows.
template <class Q, class To>
struct Rounded : Q {
  template <int NV, class C, class Sink>
  INVAR_INLINE void unit(const uint32_t* word, const C& c, Sink sink) {
    Q::template unit<NV>(
        word, c, [&](int k, F(&w)[NV]) __attribute__((always_inline)) {
#pragma GCC unroll 32
          for (int v = 0; v < NV; ++v) w[v] = To::round(w[v]);
          sink(k, w);
        });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
