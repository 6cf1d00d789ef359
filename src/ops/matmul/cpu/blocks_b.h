// B in blocks of a format, each column a row of them: the numbers of a K block of some panels are
// made where they are used. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/quantized_b.h"
#include "ops/matmul/packed_b.h"
#include "weights/packed_rows.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Numbers [begin, end) of a row, for blocks that may reach beyond them.
INVAR_INLINE void unpack_part(const weights::PackedRows& rows, int64_t row, int64_t begin, int64_t end,
                              float* to) {
  const weights::Format& f = *rows.format;
  const uint8_t* block = rows.row(row) + begin / f.block * f.bytes;
  for (int64_t k = begin / f.block * f.block; k < end; k += f.block, block += f.bytes) {
    if (k >= begin && k + f.block <= end) {
      f.unpack(block, to + (k - begin));
      continue;
    }
    float numbers[weights::kLargestBlock];
    f.unpack(block, numbers);
    for (int64_t i = k < begin ? begin : k; i < num::min_i64(k + f.block, end); ++i)
      to[i - begin] = numbers[i - k];
  }
}

// Of a format without integers (weights::Coding).
struct BlocksB {
  const Shape& s;
  const WorkPartition& c;
  const weights::PackedRows& blocks;
  int64_t first;  // row of column 0
  float* chain;   // of `tile_panels` panels

  bool in_place(int64_t) const { return false; }
  PrefetchRange next_range(int64_t, int64_t) const { return {}; }

  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t, Go go) const {
    const int64_t k = r.end - r.begin, hop = kPanel * num::min_i64(kChain, s.k);
    alignas(64) float rows[kPanel * kChain];
    for (int64_t p = 0; p < count; ++p) {
      const int64_t j = (panel + p) * kPanel, n = num::min_i64(kPanel, s.n - j);
      for (int64_t i = 0; i < n; ++i) unpack_part(blocks, first + j + i, r.begin, r.end, rows + i * k);
      pack_panel<PackWidened<F32>>(rows, k, true, k, n, chain + p * hop);
    }
    go(PanelsOfB<F32, kVectorsPerPanel>{chain, kPanel, hop});
  }
};

// What pack() makes of blocks of a coding: for all panels the integers as words, as those of
// matmul_nbits lie; then for all panels, block by block, halves d (and e), and group by group bytes
// s (and m), each for the columns of the panel.
struct CodedLayout {
  const weights::Coding& coding;
  int64_t block, blocks, panels, deep;  // numbers of a block; blocks of a column; numbers of a word
  int64_t groups() const { return coding.has_groups ? block / coding.group : 0; }  // of a block
  int64_t kinds() const { return coding.has_e ? 2 : 1; }
  int64_t words() const { return blocks * block / deep * kPanel; }  // of a panel
  int64_t block_bytes() const { return kinds() * (2 + groups()) * kPanel; }
  size_t matrix_bytes() const { return static_cast<size_t>(panels * (4 * words() + blocks * block_bytes())); }
};
CodedLayout coded_layout(const weights::PackedRows& rows, int64_t columns) {
  const weights::Format& f = *rows.format;
  return {*f.coding, f.block, rows.numbers / f.block, (columns + kPanel - 1) / kPanel, 32 / f.coding->bits};
}
// The matrices of a view: one, or those of a stack.
INVAR_INLINE int64_t stacked_matrices(const View& b) {
  int64_t count = 1;
  for (int d = 0; d + 2 < b.rank; ++d) count *= b.dim[d];
  return count;
}
size_t coded_bytes(const View& b, const weights::PackedRows& rows) {
  if (!rows.format->coding) return rows.bytes_of_rows();
  return coded_layout(rows, b.dim[b.rank - 2]).matrix_bytes() * static_cast<size_t>(stacked_matrices(b));
}

// The eight or four integers at q as a word, the first in its lowest bits.
INVAR_INLINE uint32_t coded_word(const uint8_t* q, int bits) {
  if (bits == 8) return q[0] | q[1] << 8 | q[2] << 16 | static_cast<uint32_t>(q[3]) << 24;
  uint32_t word = 0;
  for (int i = 0; i < 8; ++i) word |= static_cast<uint32_t>(q[i]) << 4 * i;
  return word;
}

void pack_coded(const View& b, const weights::PackedRows& rows, void* packed) {
  const int64_t n = b.dim[b.rank - 2];
  const CodedLayout l = coded_layout(rows, n);
  const int64_t in_block = l.block / l.deep * kPanel;  // words
  weights::BlockIntegers x;
  auto* to = static_cast<char*>(packed);
  for (int64_t matrix = 0; matrix < stacked_matrices(b); ++matrix, to += l.matrix_bytes()) {
    auto* const words = reinterpret_cast<uint32_t*>(to);
    auto* const scales = reinterpret_cast<uint8_t*>(words + l.panels * l.words());
    for (int64_t j = 0; j < l.panels * kPanel; ++j) {
      const uint8_t* from = j < n ? rows.row(matrix * n + j) : nullptr;
      uint32_t* word = words + j / kPanel * l.words() + j % kPanel;
      uint8_t* scale = scales + j / kPanel * l.blocks * l.block_bytes();
      for (int64_t at = 0; at < l.blocks; ++at, word += in_block, scale += l.block_bytes()) {
        if (!from) {
          x = {};
        } else {
          l.coding.read(from, x);
          from += rows.format->bytes;
        }
        for (int64_t i = 0; i < l.block / l.deep; ++i)
          word[i * kPanel] = coded_word(x.q + i * l.deep, l.coding.bits);
        auto* const halves = reinterpret_cast<uint16_t*>(scale) + j % kPanel;
        halves[0] = x.d;
        if (l.coding.has_e) halves[kPanel] = x.e;
        uint8_t* const bytes = scale + l.kinds() * 2 * kPanel + j % kPanel;
        for (int64_t g = 0; g < l.groups(); ++g) {
          bytes[g * l.kinds() * kPanel] = x.s[g];
          if (l.coding.has_e) bytes[(g * l.kinds() + 1) * kPanel] = x.m[g];
        }
      }
    }
  }
}

// The B of a product, of integers Q: S q + A is made where it is used by a few rows, else once for
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

  // S and A of a block's group for columns from j on.
  struct Constants {
    F scale, addend;
  };
  INVAR_INLINE Constants constants(const CodedB& b, const uint8_t* block, int64_t group, int64_t j) {
    const weights::Coding& coding = b.l.coding;
    const auto* halves = reinterpret_cast<const uint16_t*>(block) + j;
    const uint8_t* bytes = block + b.l.kinds() * (2 + group) * kPanel + j;
    F scale = F16::get(halves);
    if (coding.has_groups) scale = mul(scale, sub(to_float(load_u8(bytes)), set1(128.0f)));
    if (!coding.has_e) return {scale, mul(scale, set1(static_cast<float>(-coding.zero)))};
    const F e = F16::get(halves + kPanel);
    return {scale, coding.has_groups ? neg(mul(e, to_float(load_u8(bytes + kPanel)))) : e};
  }

  template <class Go>
  void columns(int64_t panel, int64_t count, num::Range r, int64_t rows, Go go) const {
    const int64_t group = l.coding.group, first = r.begin / group, k = r.end - r.begin;
    const auto* words = reinterpret_cast<const uint32_t*>(matrix);
    const auto* scales = reinterpret_cast<const uint8_t*>(words + l.panels * l.words());
    for (int64_t p = 0; p < count; ++p) {
      float* to = more + p * Panels::kConstants;
      const uint8_t* blocks = scales + (panel + p) * l.blocks * l.block_bytes();
      for (int64_t g = first; g * group < r.end; ++g, to += Q::kConstants * kPanel) {
        const uint8_t* block = blocks + g * group / l.block * l.block_bytes();
        for (int64_t j = 0; j < kPanel; j += kW) {
          const Constants x = constants(*this, block, g * group % l.block / group, j);
          F v[Q::kConstants] = {};
          Q::exact(x.scale, x.addend, v);
          for (int i = 0; i < Q::kConstants; ++i) store(to + i * kPanel + j, v[i]);
        }
      }
    }
    const Panels panels{words + panel * l.words() + r.begin / Q::kDeep * kPanel, l.words(), more, group,
                        group};
    if (rows <= Panels::kRows) return go(panels);
    for (int64_t p = 0; p < count; ++p)
      widen(panels.skip(panels, p * kVectorsPerPanel), k, false, chain + p * kPanel * kChain);
    go(PanelsOfB<F32, kVectorsPerPanel>{chain, kPanel, kPanel * kChain});
  }
};

// What pack() writes begins with this: floats follow, or what blocks became. It refers to nothing
// else, since other programs may read it.
struct alignas(64) PackedHeader {
  bool is_blocks;
  weights::PackedRows blocks;
};
INVAR_INLINE const weights::PackedRows* blocks_of(const View& b) {
  return b.packed && b.as<const PackedHeader>()->is_blocks ? &b.as<const PackedHeader>()->blocks : nullptr;
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
  auto* to = reinterpret_cast<uint8_t*>(header + 1);
  header->is_blocks = true, header->blocks = {rows.format, to, rows.numbers, rows.stride, rows.rows, 0, 0};
  if (rows.format->coding) return pack_coded(b, rows, to);
  for (int64_t r = 0; r < rows.rows; ++r, to += rows.stride)
    __builtin_memcpy(to, rows.row(r), static_cast<size_t>(rows.stride));
}

// Floats of scratch memory for the constants of so many panels.
constexpr int64_t coded_floats(int64_t panels) {
  return panels * QuantizedPanels<PackedIntegers<4>, true>::kConstants;
}

// Calls go(B) for matrix `index` of the blocks of b.
template <class Go>
void with_blocks(const View& b, int64_t index, const Shape& s, const WorkPartition& c, float* chain,
                 float* more, Go go) {
  const weights::PackedRows& rows = *blocks_of(b);
  if (!rows.format->coding) return go(BlocksB{s, c, rows, index * s.n, chain});
  const CodedLayout l = coded_layout(rows, s.n);
  const char* matrix = floats_of<char>(b) + static_cast<size_t>(index) * l.matrix_bytes();
  if (l.coding.bits == 4)
    go(CodedB<PackedIntegers<4>>{s, c, l, matrix, chain, more});
  else
    go(CodedB<PackedIntegers<8>>{s, c, l, matrix, chain, more});
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
