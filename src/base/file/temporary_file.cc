// Temporary files and atomic replacement, see temporary_file.h.
#include "base/file/temporary_file.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace invar {
namespace {

// The temporary entries that there are now.
struct Registry {
  std::mutex mutex;
  std::set<std::string> paths;
};
Registry& registry() {
  static Registry* const all = new Registry;  // threads may outlive static objects
  return *all;
}
class Registered {
 public:
  explicit Registered(std::string path) : path_(std::move(path)) {
    const std::lock_guard lock(registry().mutex);
    registry().paths.insert(path_);
  }
  ~Registered() {
    const std::lock_guard lock(registry().mutex);
    registry().paths.erase(path_);
  }

 private:
  std::string path_;
};

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
    const Registered registered(temporary);
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
    const std::lock_guard lock(registry().mutex);
    error = ::mkdir(folder.path_.c_str(), 0700) == 0 ? 0 : errno;
    if (!error) registry().paths.insert(folder.path_);
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
  if (path_.empty()) return;
  std::filesystem::remove_all(path_, ec);
  const std::lock_guard lock(registry().mutex);
  registry().paths.erase(path_);
}

void remove_temporaries() {
  registry().mutex.lock();  // and never unlocked
  // Another thread may still make a folder anew or write into it: it soon waits for the lock.
  constexpr int kPasses = 10;
  for (int i = 0; i < kPasses; ++i) {
    for (const std::string& path : registry().paths) {
      std::error_code ec;
      std::filesystem::remove_all(path, ec);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace invar
