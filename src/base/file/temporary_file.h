// Temporary files and folders with unguessable names, and atomic replacement of files.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace invar {

// A new path in `folder` with a random name of 24 bytes, which any folder of the target allows.
std::string temporary_path(const std::string& folder);

// The folder of `path`: what precedes its last '/', or ".".
std::string folder_of(const std::string& path);

// Replaces `path` atomically. `make` creates a temporary path in the same folder exclusively
// (O_EXCL, symlink) and returns 0 or an errno value; EEXIST is tried again with another name. The
// result is then renamed to `path`. Returns 0 or an errno value; on an error the temporary entry is
// gone and `path` stays.
int replace_file(const std::string& path, const std::function<int(const std::string& temporary)>& make);

// Removes the temporary files and folders that this process has now. No more are made: a thread
// that would make one waits for ever. For a program that a signal ends.
void remove_temporaries();

// A folder of mode 0700 that is removed with its content on destruction. Movable.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const std::string& parent);
  TemporaryFolder(TemporaryFolder&&) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) noexcept;
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;
};

}  // namespace invar
