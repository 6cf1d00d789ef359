// Whole files: mapped for reading, replaced atomically for writing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace invar {

// A read-only memory map; empty files map to an empty span. Movable, unmapped on destruction.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& o) noexcept;
  MappedFile& operator=(MappedFile&& o) noexcept;
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // What the file system says of the content without reading it: whoever changes it changes this, too.
  struct Stamp {
    uint64_t device = 0, inode = 0, size = 0;
    int64_t modified = 0, changed = 0;  // nanoseconds since 1970
    auto operator<=>(const Stamp&) const = default;
  };
  const Stamp& stamp() const { return stamp_; }
  // It had not been changed for two seconds when it was opened: longer than file systems take for one moment.
  bool at_rest() const { return at_rest_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Stamp stamp_;
  bool at_rest_ = false;
};

Result<std::string> read_file(const std::string& path);

// Writes PATH.tmp-PID, flushes it to disk, renames it over PATH. On any error (unwritable, full disk) the old file
// stays as it was, the temporary one is removed, and the error names the path and the reason.
Status write_file(const std::string& path, std::string_view content);

}  // namespace invar
