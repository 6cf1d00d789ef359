// B in blocks of a format, or in parts, each column a row of them: the numbers of a K block of some
// panels are made where they are used. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/quantized_b.h"
#include "ops/matmul/packed_b.h"
#include "weights/packed_rows.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// 2^(x - 127).
INVAR_INLINE F power_of_two(I x) {
  return from_bits(select(gt(x, set1_i(0)), shift_left<23>(x), set1_i(0x00400000)));
}

// Floats of kBits bits, kExponent of them the exponent's, without infinity. The first of a word is
// in its highest bits.
template <int kBits, int kExponent>
struct SmallFloat {
  static constexpr int kDeep = 32 / kBits, kHalf = 1, kConstants = 1;
  static constexpr int kMantissa = kBits - 1 - kExponent, kBias = (1 << (kExponent - 1)) - 1;
  INVAR_INLINE void exact(F s, F, F (&c)[kConstants]) { c[0] = s; }
  INVAR_INLINE void masks(float* out) { store(out, zero()); }

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

  template <int NV, bool kExact, class Word, class At, class Sink>
  INVAR_INLINE void rows(int64_t k, int n, const float*, Word word, const float* constants, At at,
                         Sink sink) {
    I x[NV];
    F w[NV];
#pragma GCC unroll 32
    for (int v = 0; v < NV; ++v) x[v] = bits(load(reinterpret_cast<const float*>(word(v))));
#pragma GCC unroll 8
    for (int j = 0; j < kDeep; ++j) {
      if (j >= n) break;
#pragma GCC unroll 32
      for (int v = 0; v < NV; ++v) {
        w[v] = mul(number(x[v]), load(at(constants, 0, v)));
        x[v] = shift_left<kBits>(x[v]);
      }
      sink(k + j, w);
    }
  }
};

// Places in a table of sixteen numbers, the first of a word in its lowest bits.
template <const float (&kNumbers)[16]>
struct TableOf16 {
  static constexpr int kDeep = 8, kHalf = 1, kConstants = 1;
  struct Aligned {
    alignas(64) float at[32];
  };
  static constexpr Aligned kAligned = [] {
    Aligned t{};
    for (int i = 0; i < 32; ++i) t.at[i] = kNumbers[i % 16];
    return t;
  }();
  INVAR_INLINE void exact(F s, F, F (&c)[kConstants]) { c[0] = s; }
  INVAR_INLINE void masks(float* out) { store(out, zero()); }
  INVAR_INLINE F number(I x) {
    if constexpr (kTable >= 16) return pick(kAligned.at, x);
    if constexpr (kTable == 8)
      return select(gt(x, set1_i(7)), pick(kAligned.at + 8, x), pick(kAligned.at, x));
    alignas(64) float lane[kW];
    store(lane, from_bits(x));
    for (int i = 0; i < kW; ++i) lane[i] = kNumbers[__builtin_bit_cast(int32_t, lane[i])];
    return load(lane);
  }

  template <int NV, bool kExact, class Word, class At, class Sink>
  INVAR_INLINE void rows(int64_t k, int n, const float*, Word word, const float* constants, At at,
                         Sink sink) {
    I x[NV];
    F w[NV];
    for (int v = 0; v < NV; ++v) x[v] = bits(load(reinterpret_cast<const float*>(word(v))));
    for (int j = 0; j < n; ++j) {
      for (int v = 0; v < NV; ++v) {
        w[v] = mul(number(bit_and(x[v], set1_i(15))), load(at(constants, 0, v)));
        x[v] = shift_right<4>(x[v]);
      }
      sink(k + j, w);
    }
  }
};

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
  template <int NV, bool kExact, class Word, class At, class Sink>
  INVAR_INLINE void rows(int64_t k, int n, const float* masks, Word word, const float* constants, At at,
                         Sink sink) {
    Q::template rows<NV, kExact>(
        k, n, masks, word, constants, at, [&](int64_t i, F(&w)[NV]) __attribute__((always_inline)) {
#pragma GCC unroll 32
          for (int v = 0; v < NV; ++v) w[v] = To::round(w[v]);
          sink(i, w);
        });
  }
};

// What pack() makes of blocks of a coding: for all panels the codes as words, as those of
// matmul_nbits lie; then for all panels, block by block, scales d (and halves e), group by group
// bytes s (and m), and zeros, each for the columns of the panel. With column groups there are as
// many such blocks as groups, and for each number of a column the group that it has.
struct CodedLayout {
  weights::Coding coding;
  int64_t block, blocks, panels, deep;  // numbers of a block; blocks of a column; numbers of a word
  int64_t groups() const { return coding.has_groups ? block / coding.group : 0; }  // of a block
  int64_t kinds() const { return coding.has_e ? 2 : 1; }
  int64_t words() const { return blocks * block / deep * kPanel; }  // of a panel
  int64_t scale_bytes() const {
    switch (coding.scale) {
      case weights::ScaleType::f32: return 4;
      case weights::ScaleType::f16:
      case weights::ScaleType::bf16: return 2;
      default: return 1;
    }
  }
  int64_t bytes_at() const { return (scale_bytes() + (coding.has_e ? 2 : 0)) * kPanel; }  // of s and m
  int64_t zeros_at() const { return bytes_at() + kinds() * groups() * kPanel; }
  int64_t block_bytes() const { return zeros_at() + (coding.has_zeros ? kPanel : 0); }
  int64_t scale_blocks() const { return coding.column_groups ? coding.column_groups : blocks; }
  int64_t groups_at() const { return panels * (4 * words() + scale_blocks() * block_bytes()); }
  size_t matrix_bytes() const {
    return static_cast<size_t>(groups_at() + (coding.column_groups ? 4 * blocks * block : 0));
  }
};
CodedLayout coded_layout(const weights::PackedRows& rows, int64_t columns) {
  const int64_t block = weights::block_of(rows);
  const weights::Coding& coding = weights::coding_of(rows);
  return {coding, block, rows.numbers / block, (columns + kPanel - 1) / kPanel, 32 / coding.bits};
}
// The matrices of a view: one, or those of a stack.
INVAR_INLINE int64_t stacked_matrices(const View& b) {
  int64_t count = 1;
  for (int d = 0; d + 2 < b.rank; ++d) count *= b.dim[d];
  return count;
}
INVAR_INLINE int64_t columns_of(const View& b, const weights::PackedRows& rows) {
  return b.dim[b.rank - (rows.turned ? 1 : 2)];
}
size_t coded_bytes(const View& b, const weights::PackedRows& rows) {
  return coded_layout(rows, columns_of(b, rows)).matrix_bytes() * static_cast<size_t>(stacked_matrices(b));
}

// The eight or four codes at q as a word: the first integer in its lowest bits, the first float in
// its highest.
INVAR_INLINE uint32_t coded_word(const uint8_t* q, int bits, bool integers) {
  uint32_t word = 0;
  for (int i = 0; i < 32 / bits; ++i)
    word |= static_cast<uint32_t>(q[i]) << bits * (integers ? i : 32 / bits - 1 - i);
  return word;
}
INVAR_INLINE void put_bytes(uint8_t* to, uint32_t x, int64_t count) {  // in the host's order
  if (count == 4) {
    __builtin_memcpy(to, &x, 4);
  } else if (count == 2) {
    const auto half = static_cast<uint16_t>(x);
    __builtin_memcpy(to, &half, 2);
  } else {
    *to = static_cast<uint8_t>(x);
  }
}

void pack_coded(const View& b, const weights::PackedRows& rows, void* packed) {
  const int64_t n = columns_of(b, rows);
  const CodedLayout l = coded_layout(rows, n);
  using weights::Codes;
  const Codes codes = l.coding.codes;
  const bool lowest_first = codes == Codes::integers || codes == Codes::nf4 || codes == Codes::fp4;
  const int64_t in_block = l.block / l.deep * kPanel;  // words
  weights::BlockCodes x;
  auto* to = static_cast<char*>(packed);
  for (int64_t matrix = 0; matrix < stacked_matrices(b); ++matrix, to += l.matrix_bytes()) {
    auto* const words = reinterpret_cast<uint32_t*>(to);
    auto* const scales = reinterpret_cast<uint8_t*>(words + l.panels * l.words());
    const auto put_scale = [&](uint8_t* scale, int64_t lane) {
      put_bytes(scale + l.scale_bytes() * lane, x.d, l.scale_bytes());
      if (l.coding.has_e) put_bytes(scale + l.scale_bytes() * kPanel + 2 * lane, x.e, 2);
      uint8_t* const bytes = scale + l.bytes_at() + lane;
      for (int64_t g = 0; g < l.groups(); ++g) {
        bytes[g * l.kinds() * kPanel] = x.s[g];
        if (l.coding.has_e) bytes[(g * l.kinds() + 1) * kPanel] = x.m[g];
      }
      if (l.coding.has_zeros) scale[l.zeros_at() + lane] = x.z;
    };
    for (int64_t j = 0; j < l.panels * kPanel; ++j) {
      const int64_t lane = j % kPanel;
      uint32_t* word = words + j / kPanel * l.words() + lane;
      uint8_t* scale = scales + j / kPanel * l.scale_blocks() * l.block_bytes();
      for (int64_t at = 0; at < l.blocks; ++at, word += in_block) {
        x = {};
        if (j < n) weights::read_codes(rows, matrix * n + j, at, x);
        for (int64_t i = 0; i < l.block / l.deep; ++i)
          word[i * kPanel] = coded_word(x.q + i * l.deep, l.coding.bits, lowest_first);
        if (!l.coding.column_groups) put_scale(scale, lane), scale += l.block_bytes();
      }
      for (int64_t g = 0; g < l.coding.column_groups; ++g, scale += l.block_bytes()) {
        x = {};
        if (j < n) weights::read_group(rows, matrix * n + j, g, x);
        put_scale(scale, lane);
      }
    }
    for (int64_t k = 0; l.coding.column_groups && k < l.blocks * l.block; ++k)
      put_bytes(reinterpret_cast<uint8_t*>(to + l.groups_at() + 4 * k),
                static_cast<uint32_t>(weights::group_of(rows, k)), 4);
  }
}

// The B of a product, of codes Q: numbers are made where they are used by a few rows, else once for
// a K block.
template <class Q>
struct CodedB {
  const Shape& s;
  const WorkPartition& c;
  const CodedLayout& l;
  const char* matrix;
  float *chain, *more;  // of `tile_panels` panels
  using Panels = QuantizedPanels<Q, true>;

  bool in_place(int64_t) const { return false; }  // constants are made for each run of columns
  PrefetchRange next_range(int64_t, int64_t) const { return {}; }

  // The scale d of a block for columns from j on.
  INVAR_INLINE F scale_of(const weights::Coding& coding, const uint8_t* block, int64_t j) {
    switch (coding.scale) {
      case weights::ScaleType::f16: return F16::get(reinterpret_cast<const uint16_t*>(block) + j);
      case weights::ScaleType::bf16: return Bf16::get(reinterpret_cast<const uint16_t*>(block) + j);
      case weights::ScaleType::f32: return load(reinterpret_cast<const float*>(block) + j);
      case weights::ScaleType::e8m0: return power_of_two(load_u8(block + j));
      case weights::ScaleType::scaled_e4m3: break;
    }
    const F scale = SmallFloat<8, 4>::number(shift_left<24>(load_u8(block + j)));
    return coding.divided ? div(scale, set1(coding.whole)) : mul(scale, set1(coding.whole));
  }
  // S and A of a block's group for columns from j on: of its scale, the bytes s and m of the group,
  // e and the zeros of the block.
  struct Constants {
    F scale, addend;
  };
  INVAR_INLINE Constants constants(const weights::Coding& coding, F scale, const uint8_t* bytes,
                                   const uint8_t* e, const uint8_t* zeros, int64_t j) {
    if (coding.has_groups) scale = mul(scale, sub(to_float(load_u8(bytes + j)), set1(128.0f)));
    if (coding.has_zeros) return {scale, neg(mul(scale, to_float(load_u8(zeros + j))))};
    if (!coding.has_e) return {scale, mul(scale, set1(static_cast<float>(-coding.zero)))};
    const F half = F16::get(reinterpret_cast<const uint16_t*>(e) + j);
    return {scale, coding.has_groups ? neg(mul(half, to_float(load_u8(bytes + kPanel + j)))) : half};
  }

  // Writes the constants of a K block of some panels. kHalf: scales are halves, as most are.
  template <bool kHalf>
  void write_constants(const uint8_t* scales, int64_t panel, int64_t count, num::Range r) const {
    const weights::Coding coding = l.coding;  // in registers, whatever is stored
    const int64_t group = coding.group, in_block = l.block / group, first = r.begin / group;
    const int64_t block_bytes = l.block_bytes(), e_at = l.scale_bytes() * kPanel;
    const int64_t bytes_at = l.bytes_at(), zeros_at = l.zeros_at(), group_bytes = l.kinds() * kPanel;
    for (int64_t p = 0; p < count; ++p) {
      float* to = more + p * Panels::kConstants;
      const uint8_t* block = scales + ((panel + p) * l.blocks + first / in_block) * block_bytes;
      int64_t g = first % in_block;
      for (int64_t k = r.begin; k < r.end; k += group, to += Q::kConstants * kPanel) {
        for (int64_t j = 0; j < kPanel; j += kW) {
          const F scale =
              kHalf ? F16::get(reinterpret_cast<const uint16_t*>(block) + j) : scale_of(coding, block, j);
          const Constants x =
              constants(coding, scale, block + bytes_at + g * group_bytes, block + e_at, block + zeros_at, j);
          F v[Q::kConstants] = {};
          Q::exact(x.scale, x.addend, v);
          for (int i = 0; i < Q::kConstants; ++i) store(to + i * kPanel + j, v[i]);
        }
        if (++g == in_block) g = 0, block += block_bytes;
      }
    }
  }

  // The operand of a K block of some panels, whose constants it makes.
  Panels panels(int64_t panel, int64_t count, num::Range r) const {
    const auto* words = reinterpret_cast<const uint32_t*>(matrix);
    const auto* scales = reinterpret_cast<const uint8_t*>(words + l.panels * l.words());
    if (l.coding.scale == weights::ScaleType::f16)
      write_constants<true>(scales, panel, count, r);
    else
      write_constants<false>(scales, panel, count, r);
    const int64_t group = l.coding.group;
    return {words + panel * l.words() + r.begin / Q::kDeep * kPanel, l.words(), more, group, group};
  }
  // Makes the numbers of a K block.
  void make(const Panels& of, int64_t count, num::Range r) const {
    for (int64_t p = 0; p < count; ++p)
      widen(of.skip(of, p * kVectorsPerPanel), r.end - r.begin, false, chain + p * kPanel * kChain);
  }

  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t rows, Go go) const {
    const Panels of = panels(panel, count, r);
    if (rows <= Panels::kRows) return go(of);
    make(of, count, r);
    go(PanelsOfB<F32, kVectorsPerPanel>{chain, kPanel, kPanel * kChain});
  }
};

// A B of other codes, whose numbers are made once for a K block: one type for all, since each type
// is a product of its own to compile.
struct MadeB {
  const Shape& s;
  const WorkPartition& c;
  const CodedLayout& l;
  const char* matrix;
  float *chain, *more;
  void (*make)(const MadeB&, int64_t panel, int64_t count, num::Range);

  bool in_place(int64_t) const { return false; }
  PrefetchRange next_range(int64_t, int64_t) const { return {}; }
  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t, Go go) const {
    make(*this, panel, count, r);
    go(PanelsOfB<F32, kVectorsPerPanel>{chain, kPanel, kPanel * kChain});
  }
};
template <class Q>
void make_numbers(const MadeB& b, int64_t panel, int64_t count, num::Range r) {
  const CodedB<Q> coded{b.s, b.c, b.l, b.matrix, b.chain, b.more};
  coded.make(coded.panels(panel, count, r), count, r);
}
// Integers whose scale and zero are those of a group that each row of K has for itself: (q - z) S,
// one product. Sums stay in the order of the file's columns.
template <int kBits, class To>
void make_by_groups(const MadeB& b, int64_t panel, int64_t count, num::Range r) {
  const CodedLayout& l = b.l;
  constexpr int kDeep = 32 / kBits;
  const auto* words = reinterpret_cast<const uint32_t*>(b.matrix);
  const auto* scales = reinterpret_cast<const uint8_t*>(words + l.panels * l.words());
  const auto* group = reinterpret_cast<const uint32_t*>(b.matrix + l.groups_at());
  const F fixed = set1(static_cast<float>(l.coding.zero));
  for (int64_t p = 0; p < count; ++p)
    for (int64_t k = r.begin; k < r.end; k += kDeep)
      for (int64_t j = 0; j < kPanel; j += kW) {
        const uint32_t* word = words + (panel + p) * l.words() + k / kDeep * kPanel + j;
        float* to = b.chain + p * kPanel * kChain + (k - r.begin) * kPanel + j;
        I x = bits(load(reinterpret_cast<const float*>(word)));
        for (int i = 0; i < kDeep; ++i) {
          const uint8_t* block = scales + ((panel + p) * l.scale_blocks() + group[k + i]) * l.block_bytes();
          const F s = CodedB<PackedIntegers<kBits>>::scale_of(l.coding, block, j);
          const F z = l.coding.has_zeros ? to_float(load_u8(block + l.zeros_at() + j)) : fixed;
          const F q = to_float(bit_and(x, set1_i((1 << kBits) - 1)));
          store(to + i * kPanel, To::round(mul(sub(q, z), s)));
          x = shift_right<kBits>(x);
        }
      }
}
template <int kBits>
auto maker_by_groups(weights::Rounding rounding) {
  return rounding == weights::Rounding::none   ? make_by_groups<kBits, AsItIs>
         : rounding == weights::Rounding::bf16 ? make_by_groups<kBits, RoundToBf16>
                                               : make_by_groups<kBits, RoundToF16>;
}
template <class Q>
auto maker_of(weights::Rounding rounding) {
  return rounding == weights::Rounding::none   ? make_numbers<Q>
         : rounding == weights::Rounding::bf16 ? make_numbers<Rounded<Q, RoundToBf16>>
                                               : make_numbers<Rounded<Q, RoundToF16>>;
}

// What pack() writes begins with this: floats follow, or what blocks became. It refers to nothing
// else, since other programs may read it.
struct alignas(64) PackedHeader {
  bool is_blocks;
  CodedLayout layout;  // of blocks
};
INVAR_INLINE const CodedLayout* blocks_of(const View& b) {
  return b.packed && b.as<const PackedHeader>()->is_blocks ? &b.as<const PackedHeader>()->layout : nullptr;
}
template <class T>
INVAR_INLINE const T* floats_of(const View& b) {
  return reinterpret_cast<const T*>(b.as<const char>() + (b.packed ? sizeof(PackedHeader) : 0));
}
size_t pack_bytes(const View& b, int i, const Attributes& attrs) {
  if (i == 1 && b.packed) return sizeof(PackedHeader) + coded_bytes(b, *b.as<const weights::PackedRows>());
  const size_t bytes = float_pack_bytes(b, i, attrs);
  return bytes ? sizeof(PackedHeader) + bytes : 0;
}
void pack(const View& b, int, const Attributes& attrs, void* packed) {
  auto* const header = static_cast<PackedHeader*>(packed);
  *header = {};
  if (!b.packed) return pack_floats(b, attrs, header + 1);
  const auto& rows = *b.as<const weights::PackedRows>();
  header->is_blocks = true, header->layout = coded_layout(rows, columns_of(b, rows));
  pack_coded(b, rows, header + 1);
}

// Floats of scratch memory for the constants of so many panels.
constexpr int64_t coded_floats(int64_t panels) {
  return panels * QuantizedPanels<PackedIntegers<4>, true>::kConstants;
}

// Calls go(B) for matrix `index` of the blocks of b.
template <class Go>
void with_blocks(const View& b, int64_t index, const Shape& s, const WorkPartition& c, float* chain,
                 float* more, Go go) {
  const CodedLayout& l = *blocks_of(b);
  const char* matrix = floats_of<char>(b) + static_cast<size_t>(index) * l.matrix_bytes();
  const auto with = [&]<class Q>(Q) { go(CodedB<Q>{s, c, l, matrix, chain, more}); };
  const auto made = [&](auto make) { go(MadeB{s, c, l, matrix, chain, more, make}); };
  const bool plain = l.coding.rounding == weights::Rounding::none;
  using weights::Codes;
  if (l.coding.column_groups) {
    made(l.coding.bits == 4 ? maker_by_groups<4>(l.coding.rounding) : maker_by_groups<8>(l.coding.rounding));
  } else if (l.coding.codes == Codes::nf4) {
    made(maker_of<TableOf16<weights::kNf4>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::fp4) {
    made(maker_of<TableOf16<weights::kFp4>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::integers && l.coding.bits == 4) {
    if (plain) return with(PackedIntegers<4>{});
    made(maker_of<PackedIntegers<4>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::integers) {
    if (plain) return with(PackedIntegers<8>{});
    made(maker_of<PackedIntegers<8>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::e4m3) {
    if (plain) return with(SmallFloat<8, 4>{});
    made(maker_of<SmallFloat<8, 4>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::e2m1) {
    if (plain) return with(SmallFloat<4, 2>{});
    made(maker_of<SmallFloat<4, 2>>(l.coding.rounding));
  } else {
    made(maker_of<SmallFloat<8, 5>>(l.coding.rounding));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
