// A matrix whose codes, scales and zeros are tensors of their own, as safetensors have them
// (spec/weights.md weights.16 to weights.22).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "weights/formats.h"
#include "weights/packed_rows.h"

namespace invar::weights {

// The types of parts, by their names in safetensors.
enum class PartType : uint8_t { none, f32, f16, bf16, e8m0, e4m3, e5m2, i8, i32, i64, u8 };
std::optional<PartType> part_type(std::string_view dtype);

struct MatrixPart {
  PartType type = PartType::none;  // none: the matrix has no such part
  uint64_t at = 0, length = 0;     // bytes in the file
  std::string file = {};           // plain name in the folder of the checkpoint
  const uint8_t* bytes = nullptr;  // where the file is mapped
  int64_t integer(int64_t i) const;
  uint32_t word(int64_t i) const;
  float number(int64_t i) const;
};
enum PartOf {
  kCodes,
  kScales,
  kZeros,
  kColumnGroups,
  kWhole,
  kTable,
  kOuterScales,
  kOuterTable,
  kPartsOfMatrix
};

// How the codes lie: row after row, the first of a byte in its low bits; as words along the columns
// of the matrix; as words along its rows, with the halves of a word in AWQ's order; row after row,
// the first in the high half.
enum class CodeOrder : uint8_t { rows, gptq, awq, high_first };
// What a code is: an integer, one in two's complement, a small float, a place in a table.
enum class CodeKind : uint8_t { unsigned_integer, signed_integer, e4m3, e5m2, e2m1, of_table };

// Makes rows [first, last) of a tensor of matrices [columns, n] as elements, little-endian, where
// numbers(r, begin, end, out) gives those of row r of n rows a matrix. The first of the rows that
// has a number which is infinite or none; -1: none has.
using NumbersOfRow = std::function<void(int64_t r, int64_t begin, int64_t end, float* out)>;
int64_t turned_elements(std::string_view element, int64_t columns, int64_t n, int64_t first, int64_t last,
                        const NumbersOfRow& numbers, uint8_t* out);

struct PackedMatrix {
  int64_t rows = 0, columns = 0;
  int64_t matrices =
      0;  // turned: the tensor has this many, whose columns are these rows; 0: it has one in order
  CodeKind kind = CodeKind::unsigned_integer;
  CodeOrder order = CodeOrder::rows;
  Rounding rounding = Rounding::none;
  int bits = 8;
  int64_t row_bytes = 0;                      // of CodeOrder::rows
  int64_t scale_rows = 1, scale_columns = 1;  // that have one scale
  int zero = 0;                               // of every number, where no part has them
  int zero_more = 0;                          // what a stored zero lacks
  bool divided = false;                       // scales are divided by kWhole, not multiplied
  float factor = 1;                           // of each number, by which its product is multiplied at last
  bool exact = false;                         // numbers are of element() as they are
  int64_t outer_scales = 1;  // scales that have one of kOuterScales, which they are products of
  float offset = 0;          // of these
  std::array<MatrixPart, kPartsOfMatrix> parts = {};

  const char* element() const;  // F32, F16 or BF16
  int64_t across() const { return (columns + scale_columns - 1) / scale_columns; }
  bool has(PartOf part) const { return parts[part].type != PartType::none; }
  // The size of a part that has the shape of the matrix or of its scales.
  uint64_t bytes_of(PartOf) const;

  // Numbers [begin, end) of a row in binary32, rounded to element().
  void numbers(int64_t row, int64_t begin, int64_t end, float* out) const;
  // The tensor has rows of so many numbers. Makes rows [first, last) of it as elements,
  // little-endian. The first of them that has a number which is infinite or none; -1: none has.
  int64_t row_numbers() const { return matrices ? rows / matrices : columns; }
  int64_t elements(int64_t first, int64_t last, uint8_t* out) const;
  // For kernels: how they read codes, and the numbers of a block. Nothing: they would have to read
  // more than a scale and a zero a block, or would round otherwise.
  std::optional<Coding> coding() const;
  int block() const;
  void read(int64_t row, int64_t at, BlockCodes&) const;
  int64_t group_of(int64_t column) const;
  void read_group(int64_t row, int64_t group, BlockCodes&) const;

 private:
  void codes_of_words(const uint8_t* p, int64_t step, int64_t begin, int64_t end, uint8_t* out) const;
  void codes(int64_t row, int64_t begin, int64_t end, uint8_t* out) const;
  int64_t scale_count() const;
  int64_t scale_of_group(int64_t row, int64_t group) const;
  int64_t scale_index(int64_t row, int64_t column) const;
  float scale(int64_t index) const;
  int zero_of(int64_t row, int64_t group) const;
  std::optional<Codes> known_table() const;
};

}  // namespace invar::weights
