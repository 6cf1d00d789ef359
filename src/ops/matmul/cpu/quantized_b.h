// B of 4 or 8 bits: panels of integers, dequantized to w = (q - z) s where they are used
// (matmul_nbits.2). A few rows consume each weight from the register that holds it; for more rows a
// K block is dequantized once. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/blocked_product.h"
#include "ops/matmul/nbits.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::Nbits;

// Says how w is computed. exact: z s and the scaled s are exact in binary32 and far from its range
// limits, so one fma, q s - z s, rounds (q - z) s once (a zero difference may have the other sign,
// which no contraction shows: contraction.5). plain: (q - z), which is exact, times s. tiny: the
// same, then the store rule, which changes only subnormals.
enum class Dequantization { exact, plain, tiny };

// Hides the origin of p from the compiler, so that data there is reloaded as a memory operand. GCC
// would keep it in registers, of which there are too few, and spill it.
template <class T>
INVAR_INLINE const T* reread(const T* p) {
#if defined(__x86_64__)
  __asm__("" : "+r"(p));
#endif
  return p;
}

// Integers of kBits bits: k ... k + kDeep - 1 are the fields of a word, lowest first. Fields of the
// lower half are used in place, field i as 2^(kBits i) q, so their scale is s / 2^(kBits i); then
// the upper half is shifted down.
template <int kBits>
struct PackedIntegers {
  static constexpr int kDeep = 32 / kBits, kHalf = kDeep / 2, kConstants = kHalf + 1;
  INVAR_INLINE void exact(F s, F minus_zs, F (&c)[kConstants]) {
    for (int i = 0; i < kHalf; ++i) c[i] = mul(s, set1(1.0f / static_cast<float>(1 << kBits * i)));
    c[kHalf] = minus_zs;
  }

  // The masks that select field i.
  INVAR_INLINE void masks(float* out) {
    for (int i = 0; i < kHalf; ++i) store(out + i * kW, from_bits(set1_i(((1 << kBits) - 1) << kBits * i)));
  }

  // Calls sink(k, w) for n rows of k: w[v] from the words at word(v), the masks, and the constants
  // at at(constants, i, v).
  template <int NV, bool kExact, class Word, class At, class Sink>
  INVAR_INLINE void rows(int64_t k, int n, const float* masks, Word word, const float* constants, At at,
                         Sink sink) {
    auto constant = [&](int i, int v) __attribute__((always_inline)) {
      return load(at(constants, i, v));
    };
    I x[NV];
    F last[NV], w[NV];
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) x[v] = bits(load(reinterpret_cast<const float*>(word(v))));
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) last[v] = constant(kHalf, v);
#pragma GCC unroll 8
    for (int j = 0; j < kDeep; ++j) {
      if (j >= n) break;
      constants = reread(constants);
      if (kW != 16) masks = reread(masks);  // with 32 registers of 64 bytes they stay there
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) {
        if (kExact) {
          if (j == kHalf) x[v] = shift_right<16>(x[v]);
          const I q = bit_and(x[v], bits(load(masks + j % kHalf * kW)));
          w[v] = fma(to_float(q), constant(j % kHalf, v), last[v]);
        } else {
          w[v] = mul(sub(to_float(bit_and(x[v], bits(load(masks)))), last[v]), constant(0, v));
          x[v] = shift_right<kBits>(x[v]);
        }
      }
      sink(k + j, w);
    }
  }
};

constexpr int64_t kGroupsOfChain = kChain / 16 + 1;  // groups are multiples of 16 (matmul_nbits.1)

// The quantized B operand of one tile: the integers and the constants of the quantization groups of
// a K block. The first group ends at k = first, and each further one `block` later.
template <class Q, bool kExact>
struct QuantizedPanels {
  static constexpr int kRows = kMaxRows < 4 ? kMaxRows : 4, kMaxVectors = 4;
  static constexpr bool kUnpackedA = true;  // few rows of A, which are not packed
  static constexpr int64_t kConstants = kGroupsOfChain * Q::kConstants * kPanel;  // floats per panel
  const uint32_t* data;
  int64_t panel;
  const float* constants;
  int64_t first, block;
  INVAR_INLINE QuantizedPanels skip(const QuantizedPanels& g, int64_t v) {
    return {g.data + v / kVectorsPerPanel * g.panel + v % kVectorsPerPanel * kW, g.panel,
            g.constants + v / kVectorsPerPanel * kConstants + v % kVectorsPerPanel * kW, g.first, g.block};
  }
};

// Calls sink(k, w) for k in [0, end), ascending. w[v] holds row k of the columns of vector v.
template <int NV, class Q, bool kExact, class Sink>
INVAR_INLINE void each_weight(const QuantizedPanels<Q, kExact>& g, int64_t end, Sink sink) {
  alignas(64) float masks[Q::kHalf * kW];
  Q::masks(masks);
  const float* group = g.constants;
  auto at = [](const float* p, int c, int v) __attribute__((always_inline)) {
    return p + c * kPanel + v / kVectorsPerPanel * QuantizedPanels<Q, kExact>::kConstants +
           v % kVectorsPerPanel * kW;
  };
  for (int64_t k = 0, stop = g.first, i = 1; k < end; stop += g.block, ++i) {
    const int64_t to = num::min_i64(stop, end);
    for (; k < to; k += Q::kDeep) {
      auto word = [&](int v) __attribute__((always_inline)) {
        return g.data + static_cast<uint64_t>(k) / Q::kDeep * kPanel + v / kVectorsPerPanel * g.panel +
               v % kVectorsPerPanel * kW;
      };
      if (k + Q::kDeep <= to)
        Q::template rows<NV, kExact>(k, Q::kDeep, masks, word, group, at, sink);
      else
        Q::template rows<NV, kExact>(k, static_cast<int>(to - k), masks, word, group, at, sink);
    }
    k = to;
    group = g.constants + i * Q::kConstants * kPanel;
  }
}

template <int MR, int NV, class Q, bool kExact>
INVAR_INLINE void microkernel(const float* a, int64_t lda, const QuantizedPanels<Q, kExact>& g, int64_t,
                              int64_t end, F (&c)[MR * NV]) {
  multiply_made<MR, NV>(
      a, lda, c, [&](auto sink) __attribute__((always_inline)) { each_weight<NV>(g, end, sink); });
}

// Dequantizes one K block of a panel to floats.
template <class Q, bool kExact>
[[gnu::noinline]] void widen(QuantizedPanels<Q, kExact> g, int64_t k, bool tiny, float* to) {
  each_weight<kVectorsPerPanel>(
      g, k, [&](int64_t i, F(&w)[kVectorsPerPanel]) __attribute__((always_inline)) {
        for (int v = 0; v < kVectorsPerPanel; ++v)
          store(to + i * kPanel + v * kW, tiny ? canonicalize(w[v]) : w[v]);
      });
}

// Packs bytes unchanged, or with the sign bit flipped: the offset added to a signed q and its z
// cancels in q - z.
template <int kFlip>
struct PackBytes {
  using In = uint8_t;
  using Out = uint8_t;
  static constexpr int kColumns = kW;
  INVAR_INLINE I read(const In* p, int n, const In*, int) {
    return bit_xor(n >= kW ? load_u8(p) : load_u8_n(p, n), set1_i(kFlip));
  }
  INVAR_INLINE void write(Out* out, I x) { store_u8(out, x); }
};
// Packs 32-bit words of a column of 4-bit integers, at any alignment; byte by byte in the scalar
// build, where byte order matters.
struct PackNibbleWords {
  using In = uint32_t;
  using Out = uint32_t;
  static constexpr int kColumns = kW;
  INVAR_INLINE I read(const In* p, int n, const In*, int) {
    if constexpr (kW == 1) {
      auto byte = reinterpret_cast<const uint8_t*>(p);
      uint32_t x = 0;
      for (int i = 0; i < 4 && n > 0; ++i) x |= static_cast<uint32_t>(byte[i]) << 8 * i;
      return set1_i(static_cast<int32_t>(x));
    } else {
      auto word = reinterpret_cast<const float*>(p);
      return bits(n >= kW ? load(word) : load_n(word, n));
    }
  }
  INVAR_INLINE void write(Out* out, I x) { store(reinterpret_cast<float*>(out), from_bits(x)); }
};

// Packs rows [begin, end) of k, within one K block, of the panel at column j.
INVAR_INLINE void copy_words(const View& b, const Nbits& l, int64_t j, int64_t begin, int64_t end,
                             uint32_t* out) {
  const int64_t columns = num::min_i64(kPanel, l.n - j), k = end - begin;
  const auto* data = b.as<const uint8_t>();
  if (l.bits == 4) {
    auto in = reinterpret_cast<const uint32_t*>(data + j * l.column + begin / 2);
    return pack_panel<PackNibbleWords>(in, l.column / 4, true, (k + 7) / 8, columns, out);
  }
  alignas(64) uint8_t row[kChain * kPanel];
  const int64_t ld = l.trans_b ? l.column : l.n;
  const uint8_t* in = data + (l.trans_b ? j * ld + begin : begin * ld + j);
  if (b.dtype == DType::i8)
    pack_panel<PackBytes<0x80>>(in, ld, l.trans_b, k, columns, row);
  else
    pack_panel<PackBytes<0>>(in, ld, l.trans_b, k, columns, row);
  for (int64_t i = 0; i < k; i += 4)
    for (int64_t v = 0; v < kPanel; v += kW) {
      auto byte = [&](int64_t n) __attribute__((always_inline)) {
        return i + n < k ? load_u8(row + (i + n) * kPanel + v) : set1_i(0);
      };
      const I low = bit_or(byte(0), shift_left<8>(byte(1)));
      const I high = bit_or(shift_left<16>(byte(2)), shift_left<24>(byte(3)));
      store(reinterpret_cast<float*>(out + i / 4 * kPanel + v), from_bits(bit_or(low, high)));
    }
}

// Words per column in a panel.
INVAR_INLINE int64_t depth(const Nbits& l) {
  return l.bits == 4 ? l.column / 4 : ((l.trans_b ? l.column : l.k) + 3) / 4;
}
size_t pack_bytes_nbits(const View& v, int i, const Attributes& attrs) {
  if (i == 0) return 0;
  if (i > 1) return matmul::small_bytes(v, i, attrs, kPanel);
  const Nbits l = matmul::nbits(v, attrs);
  return static_cast<size_t>((l.n + kPanel - 1) / kPanel * kPanel * depth(l)) * sizeof(uint32_t);
}
void pack_nbits(const View& v, int i, const Attributes& attrs, void* packed) {
  if (i > 1) return matmul::pack_small(v, i, attrs, kPanel, packed);
  const Nbits l = matmul::nbits(v, attrs);
  auto* to = static_cast<uint32_t*>(packed);
  for (int64_t j = 0; j < l.n; j += kPanel)
    for (int64_t k = 0; k < l.k; k += kChain)
      copy_words(v, l, j, k, num::min_i64(k + kChain, l.k), to + j * depth(l) + k / (32 / l.bits) * kPanel);
}

// The B of a product.
template <class Q>
struct QuantizedB {
  const Nbits& l;
  const Call& call;
  const WorkPartition& c;
  float *chain, *more;                                    // of `tile_panels` panels
  static constexpr int64_t kWords = kPanel * kChain / 4;  // of a K block of 8-bit integers

  static int64_t floats(const WorkPartition& c) {
    return c.tile_panels * (kWords + QuantizedPanels<Q, true>::kConstants);
  }
  bool in_place(int64_t) const { return false; }  // constants are made for each run of columns
  int64_t tile_panels(int64_t) const { return c.tile_panels; }
  PrefetchRange next_range(int64_t, int64_t) const { return {}; }

  // Scales and zero points of a panel and quantization group, from column j on.
  template <class W>
  INVAR_INLINE F scale(const QuantizedB& q, int64_t panel, int64_t group, int64_t j) {
    const View& s = q.call.in[2];
    const auto* p = s.as<const typename W::T>();
    if (s.packed) return W::get(p + (panel * q.l.blocks + group) * kPanel + j);
    float lane[kW];
    for (int64_t i = 0, column = panel * kPanel + j; i < kW; ++i, ++column)
      lane[i] = column < q.l.n ? W::one(p[matmul::scale_index(q.l, s, column, group)]) : 0.0f;
    return load(lane);
  }
  INVAR_INLINE F zero_of(const QuantizedB& q, int64_t panel, int64_t group, int64_t j) {
    const View& z = q.call.in[3];
    if (z.packed)
      return to_float(
          load_u8(z.as<const uint8_t>() + (panel * matmul::zero_groups(q.l, z) + group) * kPanel + j));
    float lane[kW];
    for (int64_t i = 0, column = panel * kPanel + j; i < kW; ++i, ++column)
      lane[i] = column < q.l.n ? static_cast<float>(matmul::zero_point(q.l, z, column, group)) : 0.0f;
    return load(lane);
  }

  // Computes the constants of the groups of a K block the exact way if possible, else s first and z
  // last.
  Dequantization constants(int64_t panel, int64_t count, int64_t group, int64_t groups) const {
    const bool has_zeros = call.in.size() > 3;
    const F fixed = to_float(set1_i(matmul::zero_point(l)));
    Dequantization way = Dequantization::exact;
    auto make = [&](auto format) {
      for (int64_t p = 0; p < count; ++p)
        for (int64_t g = 0; g < groups; ++g) {
          float* to = more + c.tile_panels * kWords + p * QuantizedPanels<Q, true>::kConstants +
                      g * Q::kConstants * kPanel;
          for (int64_t j = 0; j < kPanel; j += kW) {
            const F s = scale<decltype(format)>(*this, panel + p, group + g, j);
            const F z = has_zeros ? zero_of(*this, panel + p, group + g, j) : fixed;
            F v[Q::kConstants] = {};
            if (way == Dequantization::exact) {
              const F zs = mul(z, s);
              const I mag = bit_and(bits(s), set1_i(0x7fffffff));
              const M middle =
                  both(gt(mag, set1_i(0x0d800000)), gt(set1_i(0x71800000), mag));  // 2^-100 ... 2^100
              if (!all(both(either(gt(set1_i(1), mag), middle), eq(fma(z, s, neg(zs)), zero()))))
                return static_cast<void>(way = Dequantization::plain);
              Q::exact(s, neg(zs), v);
            } else {
              const I mag = bit_and(bits(s), set1_i(0x7fffffff));
              if (any(both(gt(mag, set1_i(0)), gt(set1_i(0x00800000), mag)))) way = Dequantization::tiny;
              v[0] = s, v[Q::kConstants - 1] = z;
            }
            for (int i = 0; i < Q::kConstants; ++i) store(to + i * kPanel + j, v[i]);
          }
        }
    };
    with_format(call.in[2].dtype, make);
    if (way != Dequantization::exact) with_format(call.in[2].dtype, make);
    return way;
  }

  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t rows, Go go) const {
    const int64_t block = l.block ? l.block : int64_t{1} << 40, group = r.begin / block;
    const Dequantization way = constants(panel, count, group, (r.end - 1) / block - group + 1);
    const View& b = call.in[1];
    const uint32_t* data = b.as<const uint32_t>() + (panel * depth(l) + r.begin / Q::kDeep) * kPanel;
    int64_t hop = depth(l) * kPanel;
    if (!b.packed) {
      auto* copy = reinterpret_cast<uint32_t*>(more);
      for (int64_t p = 0; p < count; ++p)
        copy_words(b, l, (panel + p) * kPanel, r.begin, r.end, copy + p * kWords);
      data = copy, hop = kWords;
    }
    const float* at = more + c.tile_panels * kWords;
    const QuantizedPanels<Q, true> exact{data, hop, at, block - r.begin % block, block};
    const QuantizedPanels<Q, false> plain{data, hop, at, exact.first, block};
    const int64_t k = r.end - r.begin;
    if (rows <= exact.kRows && way == Dequantization::exact) return go(exact);
    if (rows <= plain.kRows && way == Dequantization::plain) return go(plain);
    for (int64_t p = 0; p < count; ++p) {
      float* to = chain + p * kPanel * kChain;
      if (way == Dequantization::exact)
        widen(exact.skip(exact, p * kVectorsPerPanel), k, false, to);
      else
        widen(plain.skip(plain, p * kVectorsPerPanel), k, way == Dequantization::tiny, to);
    }
    go(PanelsOfB<F32, kVectorsPerPanel>{chain, kPanel, kPanel * kChain});
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
