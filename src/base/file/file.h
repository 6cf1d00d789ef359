// Whole files: memory-mapped for reading, replaced atomically for writing.
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
  // The version of the content that the file system records; every write changes it.
  struct Stamp {
    uint64_t device = 0, inode = 0, size = 0;
    int64_t modified = 0, changed = 0;  // nanoseconds since 1970
    auto operator<=>(const Stamp&) const = default;
  };
  const Stamp& stamp() const { return stamp_; }
  // The file had not changed for two seconds when it was opened, which is longer than the
  // resolution of any file system's clock.
  bool at_rest() const { return at_rest_; }
  // Whether somebody may have written to the file since it was opened. Who writes can put back the
  // bytes and the time of modification, but not the time of the last change (ctime), so any other
  // one counts: of a write as of a new mode, name or link. The file is the one that was opened,
  // whatever has its name now.
  bool changed() const;
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Stamp stamp_;
  bool at_rest_ = false;
  int fd_ = -1;  // of what is mapped
};

// Reading a mapped file that was truncated raises SIGBUS. This installs a signal handler, so that
// the process then ends with exit code 2 and one line that names the file. For programs, not for
// libraries.
void report_truncated_maps();

// The size of files that are read at once is bounded, so that an endless file does not fill the
// memory.
struct FileKind {
  const char* name;
  uint64_t most;         // bytes
  bool streams = false;  // it may be a pipe or a device: /dev/stdin, <(...)
};
inline constexpr FileKind kTextFile{"a file that is read at once", uint64_t{256} << 20};

// The whole file. Errors: a file of another kind, a larger one, a named pipe that nobody has opened
// for writing.
Result<std::string> read_file(const std::string& path, const FileKind& kind = kTextFile);

// The file `name` of an open folder; a link is not followed.
Result<std::string> read_file_at(int folder, const std::string& name);

// Writes a temporary file in the folder of `path`, flushes it to disk, and renames it to `path`. On
// any error (unwritable, full disk) the old file stays as it was, the temporary one is removed, and
// the error names the path and the reason.
Status write_file(const std::string& path, std::string_view content);

}  // namespace invar
