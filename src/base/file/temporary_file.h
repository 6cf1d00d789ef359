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

// A new file that has no name before its content is whole, where the file system can do that, and
// a random one elsewhere. Until then its owner alone may read it, whatever the umask is: a process
// that is killed leaves nothing, or nothing that others can read. Results are 0 or an errno value.
class NewFile {
 public:
  // Makes it in the folder of `path`.
  int make(const std::string& path, bool may_be_unnamed = true);
  int descriptor() const { return fd_; }
  // After the content was written: to the disk.
  int flush();
  // Flushes it, unless that was done, and gives it the name `path`. `create`: EEXIST where the name
  // is taken, and the mode is `mode`. `replace`: atomically, with the mode of the umask.
  int create(unsigned mode);
  int replace();
  NewFile() = default;
  NewFile(const NewFile&) = delete;
  ~NewFile();

 private:
  int make_named();
  int link_to(const std::string& name) const;
  std::string path_, temporary_;  // temporary_: "" while it has no name
  int fd_ = -1;
  unsigned mode_ = 0;  // of the umask
  bool flushed_ = false;
};
// The same in one call: `fill` writes the content.
int replace_content(const std::string& path, const std::function<int(int descriptor)>& fill);

// The folder for temporary files: TMPDIR, or /tmp. bad_input: it is no folder.
Result<std::string> temporary_root();

// Removes the temporary files and folders that this process has now. No more are made: a thread
// that would make one waits for ever. For a program that a signal ends.
void remove_temporaries();

// A folder of mode 0700 that is removed with its content on destruction. Movable.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const std::string& parent);
  static Result<TemporaryFolder> make();  // in temporary_root()
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
