// An index of packed weights: a file of text beside the model that says which tensors of other
// files are which range of numbers, so that they are read where they lie.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/packed_matrix.h"

namespace invar::weights {

// The name of an index. Files of other names are bytes.
inline constexpr std::string_view kIndexFile = "packed-weights.txt";
bool is_index(std::string_view path);

// A line of an index: a matrix, row after row in blocks of a format, or in parts.
struct PackedTensor {
  uint64_t offset = 0, length = 0;  // of its numbers, as elements of the format's type
  std::string format;               // the name of its row in formats(); "": in parts
  std::string file;                 // plain name in the folder of the index
  uint64_t at = 0;                  // where its blocks begin there
  int64_t rows = 0, numbers = 0;    // in a row
  int64_t head = 0;                 // see PackedRows
  std::string name;                 // of the tensor there, for messages
  std::shared_ptr<const PackedMatrix> matrix = nullptr;
  // Of blocks: turned, see PackedMatrix, if not 0; with a second file the rows are those of two
  // stacks in turns.
  int64_t matrices = 0;
  std::string second_file = {};
  uint64_t second_at = 0;
};
// False: a name has a character that a line cannot hold.
bool fits_index(const PackedTensor&);
// The text of an index of these tensors, whose offsets ascend.
std::string print_index(std::span<const PackedTensor>);
// bad_input: what is no such text, a range that overlaps another, a format that is not known.
Result<std::vector<PackedTensor>> parse_index(std::string_view text, const std::string& path);

// The next part of a line, up to a tab, and such a part that is a number.
std::string_view next_part(std::string_view& line);
bool next_number(std::string_view& line, uint64_t& value);

}  // namespace invar::weights
