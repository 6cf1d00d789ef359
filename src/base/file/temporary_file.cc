// Temporary files and atomic replacement, see temporary_file.h.
#include "base/file/temporary_file.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

namespace invar {
namespace {

constexpr int kTries = 100;  // two random names never meet; a folder that says so 100 times is broken

uint64_t random_number() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) == sizeof number) return number;
  // Old kernels: exclusive creation keeps names from being planted; they only need to differ.
  static std::atomic<uint64_t> count{0};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return (static_cast<uint64_t>(now.tv_nsec) << 32 | static_cast<uint32_t>(::getpid())) + ++count;
}

}  // namespace

std::string temporary_path(const std::string& folder) {
  char name[32];
  std::snprintf(name, sizeof name, ".invar-%016llx", static_cast<unsigned long long>(random_number()));
  return (folder.empty() ? "." : folder) + "/" + name;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int replace_file(const std::string& path, const std::function<int(const std::string&)>& make) {
  for (int i = 0; i < kTries; ++i) {
    const std::string temporary = temporary_path(folder_of(path));
    int error = make(temporary);
    if (error == EEXIST) continue;
    if (!error && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error) ::unlink(temporary.c_str());
    return error;
  }
  return EEXIST;
}

Result<TemporaryFolder> TemporaryFolder::make(const std::string& parent) {
  TemporaryFolder folder;
  int error = EEXIST;
  for (int i = 0; i < kTries && error == EEXIST; ++i) {
    folder.path_ = temporary_path(parent);
    error = ::mkdir(folder.path_.c_str(), 0700) == 0 ? 0 : errno;
  }
  if (!error) return folder;
  folder.path_.clear();
  return bad_input("cannot make a folder in '" + parent + "': " + std::strerror(error));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& o) noexcept : path_(std::exchange(o.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& o) noexcept {
  std::swap(path_, o.path_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ec;
  if (!path_.empty()) std::filesystem::remove_all(path_, ec);
}

}  // namespace invar
