// Tiles of codes, see code_tiles.h.
#include "weights/tiles/code_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "num/convert/convert.h"
#include "num/exact16/quantize.h"
#include "weights/scales.h"

namespace invar::weights {
namespace {

constexpr int kFewestInPart = 16;

// Numbers that have one scale.
int group_of(const PackedRows& rows) {
  return coding_of(rows).group;
}

float scale_of(const Coding& coding, uint32_t d) {
  switch (coding.scale) {
    case ScaleType::f16: return num::f32_from_f16(static_cast<uint16_t>(d));
    case ScaleType::bf16: return num::f32_from_bf16(static_cast<uint16_t>(d));
    case ScaleType::f32: return num::f32_from_bits(d);
    case ScaleType::e8m0: return d == 255 ? NAN : std::ldexp(1.0f, static_cast<int>(d) - 127);
    case ScaleType::scaled_e4m3: break;
  }
  return coding.divided ? e4m3(d) / coding.whole : e4m3(d) * coding.whole;
}

float rounded(Rounding rounding, float x) {
  switch (rounding) {
    case Rounding::bf16: return num::f32_from_bf16(num::bf16_from_f32(x));
    case Rounding::f16: return num::f32_from_f16(num::f16_from_f32(x));
    default: return x;
  }
}

// The codes of a row and the factors of its parts.
struct Row {
  std::vector<uint8_t> q;
  std::vector<float> scale, addend;
  uint32_t largest = 0;  // bits of the largest magnitude

  void take(float x) { largest = std::max(largest, num::f32_bits(x) & 0x7fffffff); }
};

class Packer {
 public:
  Packer(const CodeTiles& tiles, const PackedRows& rows)
      : tiles_(tiles), rows_(rows), coding_(coding_of(rows)), block_(block_of(rows)) {}

  // Empty: a row beyond the last.
  void read(int64_t r, Row& to) const {
    const auto parts = static_cast<size_t>(tiles_.across * tiles_.parts);
    to.q.assign(static_cast<size_t>(tiles_.across * CodeTiles::kColumns), 0);
    to.scale.assign(parts, 0), to.addend.assign(parts, 0), to.largest = 0;
    if (r >= tiles_.rows) return;
    BlockCodes x;
    x.e = 0;
    const int group = std::min(group_of(rows_), CodeTiles::kColumns);
    for (int64_t at = 0; at < rows_.numbers / block_; ++at) {
      read_codes(rows_, r, at, x);
      const float d = scale_of(coding_, x.d);
      for (int first = 0; first < block_; first += group) {
        const int g = first / coding_.group;
        float scale = coding_.has_groups ? d * static_cast<float>(x.s[g] - 128) : d;
        const float addend = addend_of(x, scale, g);
        const int64_t k = at * block_ + first;
        std::copy_n(x.q + first, group, to.q.begin() + k);
        take_largest(x.q + first, group, scale, addend, to);
        if (are_zeros(x.q + first, group)) scale = 0;
        const int64_t in_part = CodeTiles::kColumns / tiles_.parts;
        for (int64_t p = k / in_part; p * in_part < k + group; ++p)
          to.scale[static_cast<size_t>(p)] = scale, to.addend[static_cast<size_t>(p)] = addend;
      }
    }
    const int by = CodeTiles::enlarged_by(num::exact16_scale(to.largest));
    if (by == 0) return;
    for (float& s : to.scale) s = std::ldexp(s, by);
    for (float& a : to.addend) a = std::ldexp(a, by);
  }

 private:
  float addend_of(const BlockCodes& x, float scale, int g) const {
    if (coding_.codes != Codes::integers) return 0;
    if (coding_.has_zeros) return -(scale * static_cast<float>(x.z));
    if (!coding_.has_e) return scale * static_cast<float>(-coding_.zero);
    const float half = num::f32_from_f16(x.e);
    return coding_.has_groups ? -(half * static_cast<float>(x.m[g])) : half;
  }
  // Small floats that are 0.
  bool are_zeros(const uint8_t* q, int n) const {
    const unsigned magnitude = (1u << (coding_.bits - 1)) - 1;
    return coding_.codes != Codes::integers &&
           std::all_of(q, q + n, [&](uint8_t one) { return (one & magnitude) == 0; });
  }
  // A number is monotone in its integer, and its magnitude in that of a small float.
  void take_largest(const uint8_t* q, int n, float scale, float addend, Row& to) const {
    if (coding_.codes == Codes::integers) {
      uint8_t least = q[0], most = q[0];
      for (int i = 1; i < n; ++i) least = std::min(least, q[i]), most = std::max(most, q[i]);
      for (const uint8_t one : {least, most})
        to.take(rounded(coding_.rounding, std::fma(static_cast<float>(one), scale, addend)));
      return;
    }
    const unsigned magnitude = (1u << (coding_.bits - 1)) - 1;
    unsigned most = 0;
    for (int i = 0; i < n; ++i) most = std::max(most, q[i] & magnitude);
    const float number = coding_.codes == Codes::e4m3   ? e4m3(most)
                         : coding_.codes == Codes::e5m2 ? e5m2(most)
                                                        : e2m1(most);
    to.take(rounded(coding_.rounding, number * scale));
  }

  const CodeTiles& tiles_;
  const PackedRows& rows_;
  const Coding& coding_;
  const int block_;
};

uint32_t four_codes(const Row& row, int64_t k) {  // the first in the lowest bits
  const uint8_t* const q = row.q.data() + k;
  return q[0] | q[1] << 8 | q[2] << 16 | static_cast<uint32_t>(q[3]) << 24;
}

}  // namespace

bool CodeTiles::covers(const PackedRows& rows) {
  const Coding& coding = coding_of(rows);
  const int group = group_of(rows);
  if (coding.column_groups || group < kFewestInPart || rows.numbers % std::min(group, kColumns)) return false;
  const int parts = of(rows).parts;
  switch (coding.codes) {
    case Codes::integers: return true;
    case Codes::e4m3: return parts <= 4;
    case Codes::e5m2: return parts == 1;
    case Codes::e2m1: return true;
    case Codes::nf4:
    case Codes::fp4: return false;
  }
  return false;
}

CodeTiles CodeTiles::of(const PackedRows& rows) {
  const Coding& coding = coding_of(rows);
  CodeTiles t;
  t.codes = coding.codes, t.rounding = coding.rounding, t.bits = coding.bits, t.zero = coding.zero;
  t.has_addends = coding.codes == Codes::integers && (coding.has_zeros || coding.has_e);
  // Kernels know 1, 4 and 8 parts, and of e2m1, whose scales have 16 or 32 numbers, not 1.
  const int group = group_of(rows);
  t.parts = group < 32 ? 8 : group < kColumns || coding.codes == Codes::e2m1 ? 4 : 1;
  t.rows = rows.rows, t.across = (rows.numbers + kColumns - 1) / kColumns;
  return t;
}

void CodeTiles::pack(const PackedRows& from, int64_t down, uint8_t* tiles, int32_t* scales) const {
  const Packer packer(*this, from);
  const int64_t codes = code_bytes(), factors = (has_addends ? 2 : 1) * kRows;
  Row row[2];
  for (int r = 0; r < kRows; r += r % kRowsApart == kRowsApart - 1 ? kRowsApart + 1 : 1) {
    for (int i = 0; i < 2; ++i) {
      const int of_tile = r + i * kRowsApart;
      packer.read(down * kRows + of_tile, row[i]);
      scales[of_tile] = num::exact16_scale(row[i].largest);
      for (int64_t p = 0; p < across * parts; ++p) {
        uint8_t* const to = tiles + p / parts * tile_bytes() + codes + (p % parts * factors + of_tile) * 4;
        std::memcpy(to, &row[i].scale[static_cast<size_t>(p)], 4);
        if (has_addends) std::memcpy(to + kRows * 4, &row[i].addend[static_cast<size_t>(p)], 4);
      }
    }
    const int first_thread = r / 16 * 32 + r % kRowsApart * 4;
    for (int64_t k = 0; k < across * kColumns; k += 4) {
      const int64_t word = k % kColumns / 16, thread = first_thread + k % 16 / 4;  // 16 numbers each
      uint8_t* const tile = tiles + k / kColumns * tile_bytes() + thread * 16;
      const uint32_t x[2] = {four_codes(row[0], k), four_codes(row[1], k)};
      if (bits == 8) {
        std::memcpy(tile + word / 2 * 2048 + word % 2 * 8, x, 8);
      } else {
        const uint32_t both = x[0] | x[1] << 4;
        std::memcpy(tile + word / 4 * 2048 + word % 4 * 4, &both, 4);
      }
    }
  }
}

}  // namespace invar::weights
