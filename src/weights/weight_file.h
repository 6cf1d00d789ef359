// A file that holds weights: its bytes, or an index (packed_index.h). Whoever reads a range need
// not know which of the two it has.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "weights/packed_index.h"
#include "weights/packed_rows.h"

namespace invar::weights {

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
  // Takes the pages that a range was read from out of memory, until somebody reads them again.
  void release(uint64_t offset, uint64_t length) const;
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
    const Format* format = nullptr;             // null: in parts
    std::vector<size_t> files = {};             // of files_: the one with its blocks, or those of its parts
    std::shared_ptr<PackedMatrix> matrix = {};  // with its parts in these files
    Coding coding = {};                         // of the matrix
    std::vector<std::span<const std::byte>> bytes = {};  // in `files`
    std::string_view element() const { return format ? format->element : matrix->element(); }
    size_t row_bytes() const;  // of the tensor, as elements
  };
  Result<size_t> file_at(const std::string& folder, const std::string& name);  // of files_
  Result<Placed> place(const std::string& folder, PackedTensor);
  const Placed* placed(uint64_t offset) const;  // the tensor at an offset; null: none
  PackedRows rows_of(const Placed&) const;
  // Rows [first, last) of the tensor as elements. The first of them that has a number which is
  // infinite or none; -1: none has.
  int64_t unpack(const Placed&, int64_t first, int64_t last, uint8_t* out) const;
  static std::string how(const Placed&);
  Digest sha256_of_blocks(const Placed&) const;
  // A key of what is made of bytes[i] from an offset on, beside the offsets of bytes themselves.
  uint64_t key_of(const Placed&, size_t i, uint64_t offset) const;
  std::string path_;
  uint64_t size_ = 0;
  std::vector<MappedFile> files_;                          // this one, then those that it names
  std::vector<std::string> names_;                         // of files_
  std::vector<Placed> tensors_;                            // by offset
  std::map<uint64_t, std::pair<Digest, Digest>> checked_;  // by offset of a tensor: numbers, blocks
};

}  // namespace invar::weights
