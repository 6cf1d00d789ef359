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
  // The file as it is now. `changed`: somebody wrote to it or cut it off since it was opened. `touched`: its entry
  // changed (renamed, linked, replaced, a time that was set), so only its bytes can tell.
  enum class State { same, touched, changed };
  State state() const;
  // What state() compares with from now on: the entry as it is. For whoever has looked at the bytes again.
  void accept();
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Stamp stamp_;
  bool at_rest_ = false;
  std::string path_;
};

// Reading a mapped file that somebody cut off raises SIGBUS. From this call on the process ends then with exit code 2
// and one line that names the file. For programs, not for libraries: it installs a signal handler.
void report_truncated_maps();
// What is read at once is bounded: a file that has no end must not become memory.
struct FileKind {
  const char* name;
  uint64_t most;         // bytes
  bool streams = false;  // it may be a pipe or a device: /dev/stdin, <(...)
};
inline constexpr FileKind kTextFile{"a file that is read at once", uint64_t{256} << 20};

// The whole file. Errors: one of another kind, a larger one, a pipe by name (a FIFO) that nobody has opened for writing.
Result<std::string> read_file(const std::string& path, const FileKind& kind = kTextFile);

// The file `name` of an open folder; a link is not followed.
Result<std::string> read_file_at(int folder, const std::string& name);

// Writes a temporary file in the folder of PATH, flushes it to disk, renames it over PATH. On any error (unwritable,
// full disk) the old file stays as it was, the temporary one is removed, and the error names the path and the reason.
Status write_file(const std::string& path, std::string_view content);

}  // namespace invar
