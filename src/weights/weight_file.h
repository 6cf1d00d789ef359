// A file that holds weights: its bytes, or an index that says which tensors of other files are
// which range of numbers. The index is a file of text beside the model, so that packed weights are
// read where they lie. Whoever reads a range need not know which of the two it has.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "weights/packed_rows.h"

namespace invar::weights {

// The name of an index. Files of other names are bytes.
inline constexpr std::string_view kIndexFile = "packed-weights.txt";
bool is_index(std::string_view path);

// A line of an index: a matrix, row after row.
struct PackedTensor {
  uint64_t offset = 0, length = 0;  // of its numbers, as elements of the format's type
  std::string format;               // the name of its row in formats()
  std::string file;                 // plain name in the folder of the index
  uint64_t at = 0;                  // where its blocks begin there
  int64_t rows = 0, numbers = 0;    // in a row
  int64_t head = 0;                 // see PackedRows
  std::string name;                 // of the tensor there, for messages
};
// False: a name has a character that a line cannot hold.
bool fits_index(const PackedTensor&);
// The text of an index of these tensors, whose offsets ascend.
std::string print_index(std::span<const PackedTensor>);
// bad_input: what is no such text, a range that overlaps another, a format that is not known.
Result<std::vector<PackedTensor>> parse_index(std::string_view text, const std::string& path);

// Beside an index: the digests of its tensors' numbers that a compilation computed, and those of
// their blocks, so that later loads hash the blocks alone.
inline constexpr std::string_view kCheckedFile = "packed-weights.sha256";

class WeightFile {
 public:
  // Opens the file, and what an index names. bad_input: a tensor lies beyond the end of its file.
  static Result<WeightFile> open(const std::string& path);
  bool is_packed() const { return !tensors_.empty(); }
  uint64_t size() const { return size_; }
  // The bytes of a file that is no index.
  std::string_view text() const { return files_.front().text(); }

  // The functions below take ranges within size().
  // The rows that a range of an index is; nothing: it is no whole number of rows of one tensor.
  std::optional<PackedRows> rows(uint64_t offset, uint64_t length) const;
  // Gives the bytes of a range in order, in parts of at most a few MiB. bad_input: a number of them
  // is infinite or none, or a range of an index has no tensor.
  using Take = std::function<Status(std::span<const std::byte>)>;
  Status read(uint64_t offset, uint64_t length, const Take&) const;
  Status copy(uint64_t offset, uint64_t length, std::byte* to) const;
  Result<Digest> sha256(uint64_t offset, uint64_t length) const;
  // Whether the numbers of a range have this digest: by the blocks' digest, where the folder has
  // it.
  Result<Digest> checked_sha256(uint64_t offset, uint64_t length, const Digest& expected) const;
  // Writes kCheckedFile for these ranges, whose numbers have been hashed: nothing, if a file has
  // changed since it was opened. Ranges that are no whole tensor have no line.
  struct Checked {
    uint64_t offset, length;
    Digest numbers;
  };
  Status write_checked(std::span<const Checked>) const;

  // Those of DigestCache, for the bytes of a range.
  bool is_known(const DigestCache&, uint64_t offset, uint64_t length, const Digest&) const;
  void remember(DigestCache&, uint64_t offset, uint64_t length, const Digest&) const;
  // MappedFile::changed() of this file or one that it names.
  bool changed() const;
  // The names of the files that an index names, in its folder.
  std::vector<std::string> sources() const;

 private:
  struct Placed {
    PackedTensor tensor;
    const Format* format;
    size_t file;  // of files_
  };
  const Placed* placed(uint64_t offset) const;  // the tensor at an offset; null: none
  PackedRows rows_of(const Placed&) const;
  Digest sha256_of_blocks(const Placed&) const;
  std::string path_;
  uint64_t size_ = 0;
  std::vector<MappedFile> files_;                          // this one, then those that it names
  std::vector<std::string> names_;                         // of files_
  std::vector<Placed> tensors_;                            // by offset
  std::map<uint64_t, std::pair<Digest, Digest>> checked_;  // by offset of a tensor: numbers, blocks
};

}  // namespace invar::weights
