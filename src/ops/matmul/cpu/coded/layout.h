// What pack() makes of a B in blocks of a format, or in parts, each column a row of them: codes in
// words, and the scales. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_packing.h"
#include "weights/packed_rows.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A tile of one row reads all panels of a tile of codes, one stream.
constexpr int kTilePanels = kVectorsPerPanel < 4 ? 4 / kVectorsPerPanel : 1;
constexpr int64_t kTileColumns = kTilePanels * kPanel;
// Codes of four bits are places in a table that a register holds.
constexpr bool kNibbleTables = kW == 16;

// A unit of `deep` codes of a column is `words` words, whose fields are consecutive codes; what the
// highest bits of its words, which no field has, hold together is its last codes.
struct CodeUnit {
  int bits, deep, words, word_bits = 32;
  constexpr int fields() const { return word_bits / bits; }  // of a word
  constexpr int spare() const { return word_bits % bits; }
};
constexpr CodeUnit code_unit(int bits) {
  switch (bits) {
    case 3: return {3, 16, 3, 16};
    case 5: return {5, 32, 5};
    case 6: return {6, 16, 3};
    default: return {bits, 32 / bits, 1};
  }
}
// The lowest bit of field i of a word. Integers and places lie lowest first, floats highest first;
// with tables fields lie in turns in both halves of a word, where lookups find them, those of two
// bits by twos.
constexpr int field_place(int bits, int i, bool lowest_first) {
  if (kNibbleTables && bits == 2) return i / 2 % 2 * 16 + i / 4 * 4 + i % 2 * 2;
  return kNibbleTables && bits == 4 ? i % 2 * 16 + i / 2 * 4 : lowest_first ? bits * i : 32 - bits * (i + 1);
}

// For a tile of columns the units as words, each for all of its columns; then for all tiles, block
// by block, scales d (and halves e), group by group bytes s (and m), and zeros, each for the
// columns of the tile. With column groups there are as many such blocks as groups, and for each
// number of a column the group that it has.
struct CodedLayout {
  weights::Coding coding;
  CodeUnit unit;
  int64_t block, blocks, tiles;  // numbers of a block; blocks of a column
  int64_t groups() const { return coding.has_groups ? block / coding.group : 0; }  // of a block
  int64_t kinds() const { return coding.has_e ? 2 : 1; }
  int64_t words() const { return blocks * block / unit.deep * unit.words * kTileColumns; }  // of a tile
  int64_t word_bytes() const { return unit.word_bits / 8; }
  int64_t scale_bytes() const {
    switch (coding.scale) {
      case weights::ScaleType::f32: return 4;
      case weights::ScaleType::f16:
      case weights::ScaleType::bf16: return 2;
      default: return 1;
    }
  }
  int64_t bytes_at() const { return (scale_bytes() + (coding.has_e ? 2 : 0)) * kTileColumns; }  // of s and m
  int64_t zeros_at() const { return bytes_at() + kinds() * groups() * kTileColumns; }
  int64_t block_bytes() const { return zeros_at() + (coding.has_zeros ? kTileColumns : 0); }
  int64_t scale_blocks() const { return coding.column_groups ? coding.column_groups : blocks; }
  int64_t groups_at() const { return tiles * (word_bytes() * words() + scale_blocks() * block_bytes()); }
  size_t matrix_bytes() const {
    return static_cast<size_t>(groups_at() + (coding.column_groups ? 4 * blocks * block : 0));
  }
  // Of a matrix: words, scales and groups of columns, those of a tile.
  const char* words_of(const char* matrix, int64_t tile) const {
    return matrix + tile * words() * word_bytes();
  }
  const uint8_t* scales_of(const char* matrix, int64_t tile) const {
    return reinterpret_cast<const uint8_t*>(words_of(matrix, tiles)) + tile * scale_blocks() * block_bytes();
  }
  const uint32_t* group_of_columns(const char* matrix) const {
    return reinterpret_cast<const uint32_t*>(matrix + groups_at());
  }
};
CodedLayout coded_layout(const weights::PackedRows& rows, int64_t columns) {
  const int64_t block = weights::block_of(rows);
  const weights::Coding& coding = weights::coding_of(rows);
  const int bits = coding.of_iq4 && kNibbleTables ? 4 : coding.held ? coding.held : coding.bits;
  return {coding, code_unit(bits), block, rows.numbers / block, (columns + kTileColumns - 1) / kTileColumns};
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

// Writes `count` codes of a column as units, whose words are kTileColumns apart.
template <int kBits, bool kLowestFirst>
void put_codes(const uint8_t* q, int64_t count, char* to) {
  constexpr CodeUnit kUnit = code_unit(kBits);
  constexpr int kFields = kUnit.fields(), kSpare = kUnit.spare();
  auto* word = reinterpret_cast<std::conditional_t<kUnit.word_bits == 16, uint16_t, uint32_t>*>(to);
  for (int64_t i = 0; i < count; i += kUnit.deep) {
    uint32_t last = 0;
    for (int j = kFields * kUnit.words; j < kUnit.deep; ++j)
      last |= static_cast<uint32_t>(q[i + j]) << kBits * (j - kFields * kUnit.words);
    for (int w = 0; w < kUnit.words; ++w, word += kTileColumns) {
      uint32_t x = kSpare ? (last >> kSpare * w & ((1u << kSpare) - 1)) << (kUnit.word_bits - kSpare) : 0;
      for (int f = 0; f < kFields; ++f)
        x |= static_cast<uint32_t>(q[i + w * kFields + f]) << field_place(kBits, f, kLowestFirst);
      *word = static_cast<std::remove_reference_t<decltype(*word)>>(x);
    }
  }
}
using PutCodes = void (*)(const uint8_t* q, int64_t count, char* to);
PutCodes put_codes_of(const CodedLayout& l) {
  using weights::Codes;
  const Codes codes = l.coding.codes;
  const bool lowest_first = codes == Codes::integers || codes == Codes::nf4 || codes == Codes::fp4;
  switch (l.unit.bits) {
    case 2: return put_codes<2, true>;
    case 3: return put_codes<3, true>;
    case 4: return lowest_first ? put_codes<4, true> : put_codes<4, false>;
    case 5: return put_codes<5, true>;
    case 6: return put_codes<6, true>;
    default: return lowest_first ? put_codes<8, true> : put_codes<8, false>;
  }
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
  const PutCodes put = put_codes_of(l);
  const int64_t in_block = l.block / l.unit.deep * l.unit.words * kTileColumns * l.word_bytes();
  uint8_t place_of[256] = {};  // of the integers of IQ4 in their table
  for (int i = 0; i < 16; ++i) place_of[static_cast<int>(weights::kIq4[i]) + 128] = static_cast<uint8_t>(i);
  weights::BlockCodes x;
  auto* to = static_cast<char*>(packed);
  for (int64_t matrix = 0; matrix < stacked_matrices(b); ++matrix, to += l.matrix_bytes()) {
    const auto put_scale = [&](uint8_t* scale, int64_t lane) {
      put_bytes(scale + l.scale_bytes() * lane, x.d, l.scale_bytes());
      if (l.coding.has_e) put_bytes(scale + l.scale_bytes() * kTileColumns + 2 * lane, x.e, 2);
      uint8_t* const bytes = scale + l.bytes_at() + lane;
      for (int64_t g = 0; g < l.groups(); ++g) {
        bytes[g * l.kinds() * kTileColumns] = x.s[g];
        if (l.coding.has_e) bytes[(g * l.kinds() + 1) * kTileColumns] = x.m[g];
      }
      if (l.coding.has_zeros) scale[l.zeros_at() + lane] = x.z;
    };
    for (int64_t j = 0; j < l.tiles * kTileColumns; ++j) {
      const int64_t lane = j % kTileColumns;
      auto* word = const_cast<char*>(l.words_of(to, j / kTileColumns)) + lane * l.word_bytes();
      auto* scale = const_cast<uint8_t*>(l.scales_of(to, j / kTileColumns));
      for (int64_t at = 0; at < l.blocks; ++at, word += in_block) {
        x = {};
        if (j < n) weights::read_codes(rows, matrix * n + j, at, x);
        for (int64_t i = 0; l.coding.of_iq4 && kNibbleTables && i < l.block; ++i) x.q[i] = place_of[x.q[i]];
        put(x.q, l.block, word);
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

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
