// The folders and files of the cache: the layout of huggingface_hub.
#pragma once

#include <string>

#include "base/status.h"
#include "hub/hub.h"

namespace invar::hub {

struct Layout {
  explicit Layout(const std::string& repository);
  std::string folder;  // CACHE/models--ORG--NAME
  std::string locks;   // CACHE/.locks/models--ORG--NAME
  std::string blob(const std::string& digest) const { return folder + "/blobs/" + digest; }
  std::string snapshot(const std::string& commit) const { return folder + "/snapshots/" + commit; }
  std::string ref(const std::string& revision) const { return folder + "/refs/" + revision; }
};

bool is_commit(const std::string& revision);  // 40 lower-case hexadecimal digits

// The folder and its missing parents, as umask makes them.
Status make_folders(const std::string& path);

// An exclusive lock on a file, as huggingface_hub takes it, until destruction. Waits for others.
// Where the file system has no locks, it holds none: blobs are renamed into place whole in any
// case.
class Lock {
 public:
  static Result<Lock> take(const std::string& path);
  Lock(Lock&& o) noexcept;
  Lock(const Lock&) = delete;
  ~Lock();

 private:
  explicit Lock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace invar::hub
