// b of 4 or 8 bits: panels of integers, widened to w = (q - z) s where they are used (spec.md matmul_nbits.2). A few rows
// take each weight from the register in which it was made; for more rows a chain is widened once.
// Compiled once per instruction set.
#pragma once
#include "ops/matmul/nbits.h"
#include "ops/matmul/product.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::Nbits;

// How w is made. exact: z s and the scaled s are exact in binary32 and far from its ends, so one fma, q s - z s, rounds
// (q - z) s once (a difference that is zero may have the other sign, which no contraction shows: contraction.5).
// plain: (q - z), which is exact, times s. tiny: the same, then the store rule, which changes only subnormals.
enum class Way { exact, plain, tiny };

// f for the constants of one vector of columns and group: kConstants vectors. way plain: s first, z last.
// 8 bits: q is a byte, row k a row of bytes. exact: s, -z s.
struct Q8 {
  using T = uint8_t;
  static constexpr int kDeep = 1, kConstants = 2;
  INVAR_INLINE void exact(F s, F minus_zs, F (&c)[kConstants]) { c[0] = s, c[1] = minus_zs; }

  template <int NV, bool kExact, class At, class Constant, class Sink>
  INVAR_INLINE void rows(int64_t k, int, At at, Constant constant, Sink sink) {
    F w[NV];
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) {
      F q = to_float(load_u8(at(k, v)));
      w[v] = kExact ? fma(q, constant(0, v), constant(1, v)) : mul(sub(q, constant(1, v)), constant(0, v));
    }
    sink(k, w);
  }
};
// 4 bits: k ... k + 7 are the nibbles of a word, the lowest first. In place, nibble i of a half of the word is 16^i q.
// exact: s, s / 16, s / 256, s / 4096, -z s.
struct Q4 {
  using T = uint32_t;
  static constexpr int kDeep = 8, kConstants = 5;
  INVAR_INLINE void exact(F s, F minus_zs, F (&c)[kConstants]) {
    c[0] = s, c[1] = mul(s, set1(0x1p-4f)), c[2] = mul(s, set1(0x1p-8f)), c[3] = mul(s, set1(0x1p-12f));
    c[4] = minus_zs;
  }

  template <int NV, bool kExact, class At, class Constant, class Sink>
  INVAR_INLINE void rows(int64_t k, int n, At at, Constant constant, Sink sink) {
    I x[NV];
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) x[v] = bits(load(reinterpret_cast<const float*>(at(k / kDeep, v))));
#pragma GCC unroll 8
    for (int j = 0; j < kDeep; ++j) {
      if (j >= n) break;
      F w[NV];
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) {
        if (kExact) {
          if (j == 4) x[v] = shift_right<16>(x[v]);
          w[v] = fma(to_float(bit_and(x[v], set1_i(15 << 4 * (j % 4)))), constant(j % 4, v), constant(4, v));
        } else {
          w[v] = mul(sub(to_float(bit_and(x[v], set1_i(15))), constant(4, v)), constant(0, v));
          x[v] = shift_right<4>(x[v]);
        }
      }
      sink(k + j, w);
    }
  }
};

constexpr int64_t kGroupsOfChain = kChain / 16 + 1;  // groups are multiples of 16 (matmul_nbits.1)

// b of one tile, for tile() as Columns are: integers and constants of the chain's groups, the first of which ends at k =
// first of the chain, the others every `block`.
template <class Q, bool kExact>
struct Groups {
  static constexpr int kRows = kMaxRows < 4 ? kMaxRows : 4, kWide = 4;
  static constexpr int64_t kConstants = kGroupsOfChain * Q::kConstants * kPanel;  // floats of a panel
  const typename Q::T* data;
  int64_t panel;
  const float* constants;
  int64_t first, block;
  INVAR_INLINE Groups skip(const Groups& g, int64_t v) {
    return {g.data + v / kPer * g.panel + v % kPer * kW, g.panel,
            g.constants + v / kPer * kConstants + v % kPer * kW, g.first, g.block};
  }
};

// sink(k, w) for k in [0, end) in order: w[v] = the weights of vector v of the columns.
template <int NV, class Q, bool kExact, class Sink>
INVAR_INLINE void each_weight(const Groups<Q, kExact>& g, int64_t end, Sink sink) {
  int64_t group = 0;
  auto at = [&](int64_t row, int v) __attribute__((always_inline)) {
    return g.data + row * kPanel + v / kPer * g.panel + v % kPer * kW;
  };
  auto constant = [&](int c, int v) __attribute__((always_inline)) {
    return load(g.constants + (group * Q::kConstants + c) * kPanel +
                v / kPer * Groups<Q, kExact>::kConstants + v % kPer * kW);
  };
  for (int64_t k = 0, stop = g.first; k < end; stop += g.block, ++group) {
    const int64_t to = num::min_i64(stop, end);
    for (; k + Q::kDeep <= to; k += Q::kDeep) Q::template rows<NV, kExact>(k, Q::kDeep, at, constant, sink);
    if (k < to) Q::template rows<NV, kExact>(k, static_cast<int>(to - k), at, constant, sink);
    k = to;
  }
}

template <int MR, int NV, class Q, bool kExact>
INVAR_INLINE void chains(const float* a, int64_t lda, const Groups<Q, kExact>& g, int64_t, int64_t end,
                         F (&c)[MR * NV]) {
  F acc[MR * NV];
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) acc[i] = zero();
  each_weight<NV>(
      g, end, [&](int64_t k, F(&w)[NV]) __attribute__((always_inline)) {
#pragma GCC unroll 32
        for (int r = 0; r < MR; ++r) {
          F x = set1(a[r * lda + k]);
#pragma GCC unroll 32
          for (int v = 0; v < NV; ++v) acc[r * NV + v] = fma(x, w[v], acc[r * NV + v]);
        }
      });
#pragma GCC unroll 32
  for (int i = 0; i < MR * NV; ++i) c[i] = acc[i];
}

// A chain of a panel as floats.
template <class Q, bool kExact>
[[gnu::noinline]] void widen(Groups<Q, kExact> g, int64_t k, bool tiny, float* to) {
  each_weight<kPer>(
      g, k, [&](int64_t i, F(&w)[kPer]) __attribute__((always_inline)) {
        for (int v = 0; v < kPer; ++v) store(to + i * kPanel + v * kW, tiny ? canon(w[v]) : w[v]);
      });
}

// Bytes as they are, or with the sign bit exchanged: what is added to a signed q and its z leaves q - z.
template <int kFlip>
struct Bytes {
  using In = uint8_t;
  using Out = uint8_t;
  static constexpr int kColumns = kW;
  INVAR_INLINE I read(const In* p, int n, const In*, int) {
    return bit_xor(n >= kW ? load_u8(p) : load_u8_n(p, n), set1_i(kFlip));
  }
  INVAR_INLINE void write(Out* out, I x) { store_u8(out, x); }
};
// Words of a column of nibbles, at any address; byte by byte where that is not the processor's order.
struct Words {
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

// Rows [begin, end) of k of the panel at column j.
INVAR_INLINE void copy_integers(const View& b, const Nbits& l, int64_t j, int64_t begin, int64_t end,
                                uint8_t* out) {
  const int64_t columns = num::min_i64(kPanel, l.n - j), ld = l.trans_b ? l.column : l.n;
  const uint8_t* in = b.as<const uint8_t>() + (l.trans_b ? j * ld + begin : begin * l.n + j);
  if (b.dtype == DType::i8)
    copy_panel<Bytes<0x80>>(in, ld, l.trans_b, end - begin, columns, out);
  else
    copy_panel<Bytes<0>>(in, ld, l.trans_b, end - begin, columns, out);
}
INVAR_INLINE void copy_integers(const View& b, const Nbits& l, int64_t j, int64_t begin, int64_t end,
                                uint32_t* out) {
  auto in = reinterpret_cast<const uint32_t*>(b.as<const uint8_t>() + j * l.column + begin / 2);
  copy_panel<Words>(in, l.column / 4, true, (end - begin + 7) / 8, num::min_i64(kPanel, l.n - j), out);
}

// Rows of a panel.
template <class Q>
INVAR_INLINE int64_t depth(const Nbits& l) {
  return Q::kDeep > 1 ? l.column / 4 : l.trans_b ? l.column : l.k;
}
size_t pack_bytes_nbits(const View& v, int i, const Attrs& attrs) {
  if (i == 0) return 0;
  if (i > 1) return matmul::small_bytes(v, i, attrs, kPanel);
  const Nbits l = matmul::nbits(v, attrs);
  const int64_t rows = (l.n + kPanel - 1) / kPanel * kPanel;
  return static_cast<size_t>(rows * (l.bits == 4 ? l.column : l.k));
}
void pack_nbits(const View& v, int i, const Attrs& attrs, void* packed) {
  if (i > 1) return matmul::pack_small(v, i, attrs, kPanel, packed);
  const Nbits l = matmul::nbits(v, attrs);
  const int64_t panels = (l.n + kPanel - 1) / kPanel;
  for (int64_t p = 0; p < panels; ++p)
    if (l.bits == 4)
      copy_integers(v, l, p * kPanel, 0, l.k, static_cast<uint32_t*>(packed) + p * depth<Q4>(l) * kPanel);
    else
      copy_integers(v, l, p * kPanel, 0, l.k, static_cast<uint8_t*>(packed) + p * depth<Q8>(l) * kPanel);
}

// The b of a product.
template <class Q>
struct Quantised {
  using T = typename Q::T;
  const Nbits& l;
  const Call& call;
  const Cut& c;
  float *chain, *more;                                    // of `together` panels
  static constexpr int64_t kWords = kPanel * kChain / 4;  // of one chain, in the wider format

  static int64_t floats(const Cut& c) { return c.together * (kWords + Groups<Q, true>::kConstants); }
  Ahead ahead(int64_t, int64_t) const { return {}; }

  // z of a panel and group, as floats.
  void zeros(int64_t panel, int64_t group, float* out) const {
    const View* z = call.in.size() > 3 ? &call.in[3] : nullptr;
    const F fixed = to_float(set1_i(matmul::zero_point(l)));
    for (int64_t j = 0; j < kPanel; j += kW)
      if (!z)
        store(out + j, fixed);
      else if (z->packed)
        store(out + j, to_float(load_u8(z->as<const uint8_t>() +
                                        (panel * matmul::zero_groups(l, *z) + group) * kPanel + j)));
      else
        for (int64_t i = panel * kPanel + j, end = i + kW; i < end; ++i)
          out[i - panel * kPanel] = i < l.n ? static_cast<float>(matmul::zero_point(l, *z, i, group)) : 0.0f;
  }
  void scales(int64_t panel, int64_t group, float* out) const {
    const View& s = call.in[2];
    with_format(s.dtype, [&](auto format) {
      using W = decltype(format);
      auto p = s.as<const typename W::T>();
      for (int64_t j = 0; j < kPanel; j += kW)
        if (s.packed)
          store(out + j, W::get(p + (panel * l.blocks + group) * kPanel + j));
        else
          for (int64_t i = panel * kPanel + j, end = i + kW; i < end; ++i)
            out[i - panel * kPanel] = i < l.n ? W::one(p[matmul::scale_index(l, s, i, group)]) : 0.0f;
    });
  }

  // The constants of the groups of a chain.
  Way constants(int64_t panel, int64_t count, int64_t group, int64_t groups) const {
    Way way = Way::exact;
    auto each = [&](auto f) {
      for (int64_t p = 0; p < count; ++p)
        for (int64_t g = 0; g < groups; ++g)
          f(p, g, more + c.together * kWords + p * Groups<Q, true>::kConstants + g * Q::kConstants * kPanel);
    };
    constexpr int kLast = Q::kConstants - 1;
    each([&](int64_t p, int64_t g, float* to) {
      scales(panel + p, group + g, to);
      zeros(panel + p, group + g, to + kLast * kPanel);
      for (int64_t j = 0; j < kPanel; j += kW) {
        const F s = load(to + j), z = load(to + kLast * kPanel + j), zs = mul(z, s);
        const I mag = bit_and(bits(s), set1_i(0x7fffffff));
        const M none = gt(set1_i(1), mag);
        const M middle = both(gt(mag, set1_i(0x0d800000)), gt(set1_i(0x71800000), mag));  // 2^-100 ... 2^100
        if (way == Way::exact && !all(both(either(none, middle), eq(fma(z, s, neg(zs)), zero()))))
          way = Way::plain;
        if (way == Way::plain && any(both(gt(mag, set1_i(0)), gt(set1_i(0x00800000), mag)))) way = Way::tiny;
      }
    });
    if (way != Way::exact) return way;
    each([&](int64_t, int64_t, float* to) {
      for (int64_t j = 0; j < kPanel; j += kW) {
        F v[Q::kConstants];
        const F s = load(to + j);
        Q::exact(s, neg(mul(load(to + kLast * kPanel + j), s)), v);
        for (int i = 0; i < Q::kConstants; ++i) store(to + i * kPanel + j, v[i]);
      }
    });
    return way;
  }

  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t rows, Go go) const {
    const int64_t block = l.block ? l.block : int64_t{1} << 40, group = r.begin / block;
    const Way way = constants(panel, count, group, (r.end - 1) / block - group + 1);
    const View& b = call.in[1];
    const T* data = b.as<const T>() + (panel * depth<Q>(l) + r.begin / Q::kDeep) * kPanel;
    int64_t hop = depth<Q>(l) * kPanel;
    if (!b.packed) {
      T* copy = reinterpret_cast<T*>(more);
      hop = kWords * 4 / static_cast<int64_t>(sizeof(T));
      for (int64_t p = 0; p < count; ++p)
        copy_integers(b, l, (panel + p) * kPanel, r.begin, r.end, copy + p * hop);
      data = copy;
    }
    const float* at = more + c.together * kWords;
    const Groups<Q, true> exact{data, hop, at, block - r.begin % block, block};
    const Groups<Q, false> plain{data, hop, at, exact.first, block};
    const int64_t k = r.end - r.begin;
    if (rows <= exact.kRows && way == Way::exact) return go(exact);
    if (rows <= plain.kRows && way == Way::plain) return go(plain);
    for (int64_t p = 0; p < count; ++p) {
      float* to = chain + p * kPanel * kChain;
      if (way == Way::exact)
        widen(exact.skip(exact, p * kPer), k, false, to);
      else
        widen(plain.skip(plain, p * kPer), k, way == Way::tiny, to);
    }
    go(Columns<F32, kPer>{chain, kPanel, kPanel * kChain});
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
