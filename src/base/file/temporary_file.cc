// Temporary files and atomic replacement, see temporary_file.h.
#include "base/file/temporary_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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
void register_path(const std::string& path) {
  const std::lock_guard lock(registry().mutex);
  registry().paths.insert(path);
}
void unregister_path(const std::string& path) {
  const std::lock_guard lock(registry().mutex);
  registry().paths.erase(path);
}
class Registered {
 public:
  explicit Registered(std::string path) : path_(std::move(path)) { register_path(path_); }
  ~Registered() { unregister_path(path_); }

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

std::string of_descriptor(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
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

int NewFile::make(const std::string& path, bool may_be_unnamed) {
  path_ = path;
  if (!may_be_unnamed) return make_named();
  struct stat info;
  fd_ = ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ < 0) return make_named();
  // Only /proc can name it later.
  const bool reachable = ::access(of_descriptor(fd_).c_str(), F_OK) == 0;
  if (reachable && ::fstat(fd_, &info) == 0 && ::fchmod(fd_, 0600) == 0) {
    mode_ = info.st_mode & 0777;
    return 0;
  }
  ::close(fd_);
  return make_named();
}

// The mode that the umask gives is read from an empty file: whoever opens that one opens nothing.
int NewFile::make_named() {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int error = EEXIST;
  for (int i = 0; i < kTries && error == EEXIST; ++i) {
    temporary_ = temporary_path(folder_of(path_));
    register_path(temporary_);
    struct stat info;
    const int empty = ::open(temporary_.c_str(), kFlags, 0666);
    error = empty < 0 || ::fstat(empty, &info) != 0 ? errno : 0;
    if (empty >= 0) ::close(empty), ::unlink(temporary_.c_str());
    if (!error) fd_ = ::open(temporary_.c_str(), kFlags, 0600), error = fd_ < 0 ? errno : 0;
    if (!error) return mode_ = info.st_mode & 0777, 0;
    unregister_path(temporary_);
  }
  temporary_.clear();
  return error;
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  unregister_path(temporary_);
}

int NewFile::link_to(const std::string& name) const {
  const std::string from = temporary_.empty() ? of_descriptor(fd_) : temporary_;
  const int flags = temporary_.empty() ? AT_SYMLINK_FOLLOW : 0;
  return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), flags) == 0 ? 0 : errno;
}

int NewFile::flush() {
  if (std::exchange(flushed_, true)) return 0;
  if (::fsync(fd_) != 0) return errno;
  if (temporary_.empty()) return 0;
  // Network file systems report a full disk as late as when a descriptor is closed.
  const int other = ::dup(fd_);
  return other < 0 || ::close(other) != 0 ? errno : 0;
}

int NewFile::create(unsigned mode) {
  if (const int error = flush()) return error;
  if (::fchmod(fd_, mode) != 0) return errno;
  const int error = link_to(path_);
  if ((error != EPERM && error != EOPNOTSUPP) || temporary_.empty()) return error;
  // A file system without hard links.
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0) return errno;
  unregister_path(std::exchange(temporary_, {}));
  return 0;
}

int NewFile::replace() {
  if (const int error = flush()) return error;
  int error = 0;
  if (temporary_.empty()) {
    error = replace_file(path_, [this](const std::string& temporary) { return link_to(temporary); });
  } else if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    error = errno;
  } else {
    unregister_path(std::exchange(temporary_, {}));
  }
  // Not before: a process that is killed between the two leaves its file for its owner alone.
  // A file system that knows no modes needs none.
  if (!error) (void)::fchmod(fd_, mode_);
  return error;
}

int replace_content(const std::string& path, const std::function<int(int)>& fill) {
  NewFile file;
  if (const int error = file.make(path)) return error;
  if (const int error = fill(file.descriptor())) return error;
  return file.replace();
}

Result<std::string> temporary_root() {
  std::error_code ec;
  std::string root = std::filesystem::temp_directory_path(ec).string();
  if (!ec) return root;
  const char* wanted = nullptr;  // as temp_directory_path() looks for it
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
    if (!wanted) wanted = std::getenv(name);
  return bad_input("no temporary files can be made in '" + std::string(wanted ? wanted : "/tmp") +
                   "': " + ec.message() + ": set TMPDIR to a folder that can be written");
}

Result<TemporaryFolder> TemporaryFolder::make() {
  INVAR_TRY(const std::string root, temporary_root());
  return make(root);
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
