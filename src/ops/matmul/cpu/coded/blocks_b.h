// B in blocks of a format, or in parts, each column a row of them: the numbers of a K block of some
// panels are made where they are used. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/blocked_product.h"
#include "ops/matmul/cpu/coded/numbers.h"
#include "ops/matmul/packed_b.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// 2^(x - 127).
INVAR_INLINE F power_of_two(I x) {
  return from_bits(select(gt(x, set1_i(0)), shift_left<23>(x), set1_i(0x00400000)));
}

// A tile of a few rows prefetches codes, this many bytes ahead: it makes each number by several
// instructions, so loads alone do not reach far enough (Sapphire Rapids: 8 bits 6.5 -> 8.8 GB/s).
constexpr int64_t kCodesAhead = 4096;
constexpr int64_t kGroupConstants = 2 * kTileColumns;              // S and A
constexpr int64_t kTileConstants = kChain / 16 * kGroupConstants;  // groups have 16 columns or more

// The operand of a tile: the codes of a K block, from vector `first` of a tile of codes on, and the
// constants of its groups.
template <class Q>
struct CodedPanels {
  static constexpr int kRows = kMaxRows < 4 ? kMaxRows : 4, kMaxVectors = 4;
  static constexpr bool kUnpackedA = true;  // few rows of A, which are not packed
  static constexpr int64_t kVectors = kTileColumns / kW;
  using Word = typename Q::Word;
  const Word* words;
  int64_t tile;  // words from a tile to the next
  const float* group_constants;
  int64_t group, first;
  INVAR_INLINE CodedPanels skip(const CodedPanels& g, int64_t v) {
    v += g.first;
    return {g.words + v / kVectors * g.tile, g.tile, g.group_constants + v / kVectors * kTileConstants,
            g.group, v % kVectors};
  }
};

// Calls sink(k, w) for k in [0, end), ascending. w[v] has row k of the columns of vector v.
template <int NV, bool kAhead, class Q, class Sink>
INVAR_INLINE void each_number(const CodedPanels<Q>& g, int64_t end, Sink sink) {
  const typename Q::Word* word = g.words + g.first * kW;
  const float* at = g.group_constants + g.first * kW;
  for (int64_t k = 0; k < end; at += kGroupConstants) {
    const int64_t to = num::min_i64(k + g.group, end);
    const auto c = Q::template constants<NV>(at);
    for (; k < to; k += Q::kDeep, word += Q::kWords * kTileColumns) {
      if constexpr (kAhead) {
#pragma GCC unroll 8
        for (int w = 0; w < Q::kWords; ++w)
#pragma GCC unroll 8
          for (int i = 0; i < NV * kW * static_cast<int>(sizeof *word); i += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(word + w * kTileColumns) + kCodesAhead + i);
      }
      Q::template unit<NV>(
          word, c, [&](int j, F(&w)[NV]) __attribute__((always_inline)) { sink(k + j, w); });
    }
  }
}

template <int MR, int NV, class Q>
INVAR_INLINE void microkernel(const float* a, int64_t lda, const CodedPanels<Q>& g, int64_t, int64_t end,
                              F (&c)[MR * NV]) {
  multiply_made<MR, NV>(
      a, lda, c, [&](auto sink) __attribute__((always_inline)) { each_number<NV, true>(g, end, sink); });
}

// Makes the numbers of a K block of one panel.
template <class Q>
[[gnu::noinline]] void widen(CodedPanels<Q> g, int64_t k, float* to) {
  constexpr int kTaken = kVectorsPerPanel < 4 ? kVectorsPerPanel : 4;
  for (int first = 0; first < kVectorsPerPanel; first += kTaken)
    each_number<kTaken, false>(
        g.skip(g, first), k, [&](int64_t i, F(&w)[kTaken]) __attribute__((always_inline)) {
#pragma GCC unroll 32
          for (int v = 0; v < kTaken; ++v) store(to + i * kPanel + (first + v) * kW, w[v]);
        });
}

// The constants of the groups of a coding.
struct GroupConstants {
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

  // Writes S and A of the groups of a K block of panels [panel, panel + count). kHalf: scales are
  // halves, as most are.
  template <bool kHalf>
  INVAR_INLINE void write(const CodedLayout& l, const char* matrix, int64_t panel, int64_t count,
                          num::Range r, float* constants) {
    const weights::Coding coding = l.coding;  // in registers, whatever is stored
    const int64_t group = coding.group, in_block = l.block / group, first = r.begin / group;
    const int64_t block_bytes = l.block_bytes(), e_at = l.scale_bytes() * kTileColumns;
    const int64_t bytes_at = l.bytes_at(), zeros_at = l.zeros_at(), group_bytes = l.kinds() * kTileColumns;
    const int64_t groups = (r.end - r.begin + group - 1) / group;
    for (int64_t p = panel; p < panel + count; ++p) {
      const int64_t tile = p / kTilePanels, lane = p % kTilePanels * kPanel;
      const uint8_t* const blocks = l.scales_of(matrix, tile) + first / in_block * block_bytes;
      for (int64_t j = lane; j < lane + kPanel; j += kW) {
        float* to = constants + (tile - panel / kTilePanels) * kTileConstants + j;
        const uint8_t* block = blocks;
        int64_t g = first % in_block;
        for (int64_t left = groups; left > 0; g = 0, block += block_bytes) {
          const int64_t stop = num::min_i64(in_block, g + left);
          left -= stop - g;
          const F scale =
              kHalf ? F16::get(reinterpret_cast<const uint16_t*>(block) + j) : scale_of(coding, block, j);
          const F e = coding.has_e ? F16::get(reinterpret_cast<const uint16_t*>(block + e_at) + j) : zero();
          const F less = mul(scale, set1(-128.0f)), minus_e = neg(e);  // exact
          const F z = coding.has_zeros ? to_float(load_u8(block + zeros_at + j))
                                       : set1(static_cast<float>(coding.zero));
          const uint8_t* bytes = block + bytes_at + g * group_bytes + j;
          for (; g < stop; ++g, to += kGroupConstants, bytes += group_bytes) {
            const F s = coding.has_groups ? fma(scale, to_float(load_u8(bytes)), less) : scale;
            const F a = !coding.has_e       ? neg(mul(s, z))
                        : coding.has_groups ? mul(minus_e, to_float(load_u8(bytes + kTileColumns)))
                                            : e;
            store(to, s), store(to + kTileColumns, a);
          }
        }
      }
    }
  }
};
// Floats of scratch memory for the constants of so many panels.
constexpr int64_t coded_floats(int64_t panels) {
  return (panels + kTilePanels - 1) / kTilePanels * kTileConstants;
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
  using Panels = CodedPanels<Q>;

  bool in_place(int64_t) const { return false; }  // constants are made for each run of columns
  PrefetchRange next_range(int64_t, int64_t) const { return {}; }
  // One row reads a tile of codes as one stream, all K blocks after another.
  int64_t tile_panels(int64_t rows) const {
    return rows == 1 ? num::min_i64(kTilePanels, c.tile_panels) : c.tile_panels;
  }

  // The operand of a K block of some panels, whose constants it makes. Meanwhile scales of the next
  // one arrive: all are read at once here, and nothing else would hide that.
  Panels panels(int64_t panel, int64_t count, num::Range r) const {
    const int64_t at = r.begin / l.block * l.block_bytes();
    const int64_t bytes = (r.begin + kChain) / l.block * l.block_bytes() - at;
    const uint8_t* const next = l.scales_of(matrix, panel / kTilePanels) + at + bytes;
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i);
    if (l.coding.scale == weights::ScaleType::f16)
      GroupConstants::write<true>(l, matrix, panel, count, r, more);
    else
      GroupConstants::write<false>(l, matrix, panel, count, r, more);
    const auto* words = reinterpret_cast<const typename Q::Word*>(l.words_of(matrix, panel / kTilePanels));
    return {words + r.begin / Q::kDeep * Q::kWords * kTileColumns, l.words(), more, l.coding.group,
            panel % kTilePanels * kVectorsPerPanel};
  }
  // Makes the numbers of a K block.
  void make(const Panels& of, int64_t count, num::Range r) const {
    for (int64_t p = 0; p < count; ++p)
      widen(of.skip(of, p * kVectorsPerPanel), r.end - r.begin, chain + p * kPanel * kChain);
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
  int64_t tile_panels(int64_t) const { return c.tile_panels; }
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
  const uint32_t* const group = l.group_of_columns(b.matrix);
  const F fixed = set1(static_cast<float>(l.coding.zero));
  for (int64_t p = 0; p < count; ++p) {
    const int64_t tile = (panel + p) / kTilePanels, lane = (panel + p) % kTilePanels * kPanel;
    for (int64_t k = r.begin; k < r.end; k += kDeep)
      for (int64_t j = lane; j < lane + kPanel; j += kW) {
        const char* word = l.words_of(b.matrix, tile) + 4 * (k / kDeep * kTileColumns + j);
        float* to = b.chain + p * kPanel * kChain + (k - r.begin) * kPanel + j - lane;
        const I x = bits(load(reinterpret_cast<const float*>(word)));
        const auto make = [&]<int i>() __attribute__((always_inline)) {
          const uint8_t* block = l.scales_of(b.matrix, tile) + group[k + i] * l.block_bytes();
          const F s = GroupConstants::scale_of(l.coding, block, j);
          const F z = l.coding.has_zeros ? to_float(load_u8(block + l.zeros_at() + j)) : fixed;
          const I field = shift_right<field_place(kBits, i, true)>(x);
          const F q = to_float(bit_and(field, set1_i((1 << kBits) - 1)));
          store(to + i * kPanel, To::round(mul(sub(q, z), s)));
        };
        make.template operator()<0>(), make.template operator()<1>();
        make.template operator()<2>(), make.template operator()<3>();
        if constexpr (kDeep == 8) {
          make.template operator()<4>(), make.template operator()<5>();
          make.template operator()<6>(), make.template operator()<7>();
        }
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
    made(maker_of<TableOf16<weights::kNf4, false>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::fp4) {
    made(maker_of<TableOf16<weights::kFp4, false>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::integers && l.coding.of_iq4 && kNibbleTables) {
    with(TableOf16<weights::kIq4, true, 128>{});
  } else if (l.coding.codes == Codes::integers && l.unit.bits == 4) {
    if (plain) return with(Integers4{});
    made(maker_of<Integers4>(l.coding.rounding));
  } else if (l.coding.codes == Codes::integers && l.unit.bits == 2) {
    with(FewBits<2>{});
  } else if (l.coding.codes == Codes::integers && l.unit.bits == 3) {
    with(FewBits<3>{});
  } else if (l.coding.codes == Codes::integers && l.unit.bits == 5) {
    with(Integers<5>{});
  } else if (l.coding.codes == Codes::integers && l.unit.bits == 6) {
    with(Integers<6>{});
  } else if (l.coding.codes == Codes::integers) {
    if (plain) return with(Integers<8>{});
    made(maker_of<Integers<8>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::e4m3) {
    if (plain) return with(SmallFloat<8, 4>{});
    made(maker_of<SmallFloat<8, 4>>(l.coding.rounding));
  } else if (l.coding.codes == Codes::e2m1) {
    if (plain) return with(FloatsE2m1{});
    made(maker_of<FloatsE2m1>(l.coding.rounding));
  } else {
    made(maker_of<SmallFloat<8, 5>>(l.coding.rounding));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
