// Tiles of codes hold the numbers of rows: read back as their page says, each gives the number that
// the row has, and the scale of the row is that of its numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "num/convert/convert.h"
#include "num/exact16/quantize.h"
#include "weights/scales.h"
#include "weights/testing.h"
#include "weights/tiles/code_tiles.h"

namespace invar::weights {
namespace {

struct Packed {
  CodeTiles tiles;
  std::vector<uint8_t> memory;

  explicit Packed(const PackedRows& rows) : tiles(CodeTiles::of(rows)), memory(tiles.bytes(), 0xee) {
    for (int64_t down = 0; down < tiles.down(); ++down)
      tiles.pack(rows, down, memory.data() + static_cast<size_t>(down) * tiles.row_bytes(),
                 scales() + down * 64);
  }
  int32_t* scales() { return reinterpret_cast<int32_t*>(memory.data() + tiles.scales_at()); }

  float number(int64_t row, int64_t k) {
    const uint8_t* const tile = memory.data() + (row / 64 * tiles.across + k / 128) * tiles.tile_bytes();
    const int64_t r = row % 64, second = r % 16 / 8, i = k % 128;
    const int64_t thread = r / 16 * 32 + r % 8 * 4 + i % 16 / 4, sixteen = i / 16;
    const int64_t word = tiles.bits == 8 ? 2 * sixteen + second : sixteen;
    const uint8_t byte = tile[word / 4 * 2048 + thread * 16 + word % 4 * 4 + i % 4];
    const unsigned code = tiles.bits == 8 ? byte : second ? byte >> 4 : byte & 15;
    const int64_t part = i * tiles.parts / 128;
    const auto factor = [&](int64_t which) {
      float x;
      std::memcpy(&x, tile + tiles.code_bytes() + ((part * (tiles.has_addends ? 2 : 1) + which) * 64 + r) * 4,
                  4);
      return x;
    };
    const float scale = factor(0);
    EXPECT_TRUE(std::isfinite(scale * 0x1p24f));
    const float addend = tiles.has_addends ? factor(1) : scale * static_cast<float>(-tiles.zero);
    const float x = tiles.codes == Codes::integers ? std::fma(static_cast<float>(code), scale, addend)
                    : tiles.codes == Codes::e4m3   ? e4m3(code) * scale
                    : tiles.codes == Codes::e5m2   ? e5m2(code) * scale
                                                   : e2m1(code) * scale;
    const float rounded = tiles.rounding == Rounding::bf16  ? num::f32_from_bf16(num::bf16_from_f32(x))
                          : tiles.rounding == Rounding::f16 ? num::f32_from_f16(num::f16_from_f32(x))
                                                            : x;
    return std::ldexp(rounded, -CodeTiles::enlarged_by(scales()[row]));
  }
};

void expect_numbers(const std::string& name, const PackedRows& rows, const std::vector<float>& numbers) {
  ASSERT_TRUE(CodeTiles::covers(rows)) << name;
  Packed packed(rows);
  const int64_t k = rows.numbers;
  for (int64_t r = 0; r < rows.rows; ++r) {
    uint32_t largest = 0;
    int64_t differ = 0;
    for (int64_t i = 0; i < k; ++i) {
      largest = std::max(largest, num::f32_bits(numbers[static_cast<size_t>(r * k + i)]) & 0x7fffffff);
    }
    const int32_t e = num::exact16_scale(largest);
    for (int64_t i = 0; i < k; ++i) {
      // What was made smaller or larger has the same integers; zeros have no sign there.
      const float x = numbers[static_cast<size_t>(r * k + i)], y = packed.number(r, i);
      const auto integer = [&](float of) { return std::nearbyint(std::ldexp(static_cast<double>(of), -e)); };
      differ += CodeTiles::enlarged_by(e) ? integer(x) != integer(y)
                                          : num::f32_bits(x + 0.0f) != num::f32_bits(y + 0.0f);
    }
    EXPECT_EQ(differ, 0) << name << ", row " << r;
    EXPECT_EQ(packed.scales()[r], num::exact16_scale(largest)) << name << ", row " << r;
  }
  for (int64_t r = rows.rows; r < packed.tiles.down() * 64; ++r) EXPECT_EQ(packed.scales()[r], 0) << name;
  for (int64_t i = k; i < packed.tiles.across * 128; ++i) EXPECT_EQ(packed.number(0, i), 0.0f) << name;
}

TEST(CodeTiles, HoldTheNumbersOfFormats) {
  std::mt19937_64 random(3);
  constexpr int64_t kRows = 70;
  for (const Format& f : formats()) {
    if (!f.unpack) continue;
    const int64_t k = f.block == 256 ? 256 : 160, blocks = kRows * k / f.block;
    std::vector<uint8_t> bytes(static_cast<size_t>(blocks * f.bytes));
    std::vector<float> numbers(static_cast<size_t>(kRows * k));
    for (int64_t b = 0; b < blocks; ++b)
      for (bool finite = false; !finite;) {
        uint8_t* const block = bytes.data() + b * f.bytes;
        for (int i = 0; i < f.bytes; ++i) block[i] = static_cast<uint8_t>(random());
        f.unpack(block, numbers.data() + b * f.block);
        finite = std::all_of(numbers.begin() + b * f.block, numbers.begin() + (b + 1) * f.block,
                             [](float x) { return std::abs(x) < 1e38f; });
      }
    expect_numbers(f.name, {&f, bytes.data(), k, k / f.block * f.bytes, kRows}, numbers);
  }
}

TEST(CodeTiles, HoldTheNumbersOfMatricesInParts) {
  constexpr int64_t kRows = 136, kColumns = 256;
  for (const auto& [name, matrix, memory] : testing::made_matrices(kRows, kColumns, 0)) {
    std::vector<float> numbers(static_cast<size_t>(kRows * kColumns));
    for (int64_t r = 0; r < kRows; ++r) {
      float* const row = numbers.data() + r * kColumns;
      matrix.numbers(r, 0, kColumns, row);
      for (int64_t k = 0; k < kColumns; ++k)
        row[k] = matrix.rounding == Rounding::bf16  ? num::f32_from_bf16(num::bf16_from_f32(row[k]))
                 : matrix.rounding == Rounding::f16 ? num::f32_from_f16(num::f16_from_f32(row[k]))
                                                    : row[k];
    }
    const Coding coding = *matrix.coding();
    PackedRows rows;
    rows.numbers = kColumns, rows.rows = kRows, rows.matrix = &matrix, rows.coding = &coding;
    // Scales of columns and tables are no tiles.
    if (coding.column_groups || coding.codes == Codes::nf4 || coding.codes == Codes::fp4) {
      EXPECT_FALSE(CodeTiles::covers(rows)) << name;
      continue;
    }
    expect_numbers(name, rows, numbers);
  }
}

// Rows of numbers so small that the scale of their integers is no number of binary32, and so large
// that kernels could not multiply their scales.
TEST(CodeTiles, MakeTheSmallestLargerAndTheLargestSmaller) {
  const Format& f = *find_format(std::string_view("MXFP4"));
  for (const int first : {0, 210, 232}) {
    std::vector<uint8_t> bytes(64 * 4 * 17, 0x35);
    for (size_t b = 0; b < bytes.size() / 17; ++b) {
      bytes[17 * b] = static_cast<uint8_t>(first + b % 23);
      if (b % 5 == 1) bytes[17 * b] = 254, std::fill_n(&bytes[17 * b + 1], 16, b % 2 ? 0x80 : 0x08);
    }
    std::vector<float> numbers(64 * 128);
    for (size_t b = 0; b < bytes.size() / 17; ++b) f.unpack(bytes.data() + b * 17, numbers.data() + b * 32);
    expect_numbers("MXFP4", {&f, bytes.data(), 128, 4 * 17, 64}, numbers);
  }
}

TEST(CodeTiles, AreNotMadeOfWhatNoKernelReads) {
  PackedMatrix m{64, 256, 0, CodeKind::e5m2};
  m.row_bytes = 256, m.scale_columns = 32;
  const auto made = testing::make_matrix("e5m2 in groups", m, PartType::f16, 1);
  const Coding coding = *made.matrix.coding();
  PackedRows rows;
  rows.numbers = 256, rows.rows = 64, rows.matrix = &made.matrix, rows.coding = &coding;
  EXPECT_FALSE(CodeTiles::covers(rows));
}

}  // namespace
}  // namespace invar::weights
