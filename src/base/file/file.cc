// Memory-mapped and written files, see file.h.
#include "base/file/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/file/map_registry.h"
#include "base/file/temporary_file.h"
#include "base/file/write_files.h"

namespace invar {
namespace {

int64_t nanoseconds(const timespec& t) {
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// A file descriptor that closes itself.
struct Fd {
  int fd;
  explicit Fd(int f) : fd(f) {}
  Fd(const Fd&) = delete;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

MappedFile::Stamp stamp_of(const struct stat& info) {
  return {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), nanoseconds(info.st_mtim),
          nanoseconds(info.st_ctim)};
}

Error failure(const char* verb, const std::string& path, int error) {
  return bad_input(std::string("cannot ") + verb + " '" + path + "': " + std::strerror(error));
}

// To open a FIFO would wait for its writer. A regular file waits where another process holds a
// lease on it, and for a short time only.
int open_for_reading(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (fd >= 0 || errno != EWOULDBLOCK || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return fd;
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

// Devices and pipes (/dev/stdout, a FIFO) have no old content to keep and must never be renamed
// over.
Status write_in_place(const std::string& path, std::string_view content) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0 && errno == ENXIO)  // to wait for a reader could be for ever
    return bad_input("cannot write '" + path +
                     "': a pipe that nobody reads: start its reader first, or give a file");
  if (file.fd < 0 || ::fcntl(file.fd, F_SETFL, O_WRONLY) != 0) return failure("write", path, errno);
  if (int error = write_all(file.fd, content)) return failure("write", path, error);
  return {};
}

}  // namespace

int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

void flush_folder_of(const std::string& path) {
  Fd dir(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.fd >= 0) (void)::fsync(dir.fd);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  Fd file(open_for_reading(path));
  if (file.fd < 0) return failure("open", path, errno);
  struct stat info;
  if (::fstat(file.fd, &info) != 0) return failure("open", path, errno);
  if (S_ISDIR(info.st_mode)) return failure("open", path, EISDIR);
  if (!S_ISREG(info.st_mode)) return bad_input("cannot map '" + path + "': not a regular file");
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  MappedFile map;
  map.stamp_ = stamp_of(info);
  map.at_rest_ = std::max(map.stamp_.modified, map.stamp_.changed) + 2'000'000'000 < nanoseconds(now);
  if (info.st_size == 0) return map;
  void* data = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return failure("map", path, errno);
  map.data_ = static_cast<const std::byte*>(data);
  map.size_ = static_cast<size_t>(info.st_size);
  map.fd_ = std::exchange(file.fd, -1);
  register_map(map.data_, map.size_, path);
  return map;
}

bool MappedFile::changed() const {
  struct stat info;
  if (!data_) return false;  // an empty file holds nothing that could change
  return ::fstat(fd_, &info) != 0 || stamp_of(info) != stamp_;
}

MappedFile::MappedFile(MappedFile&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)),
      size_(std::exchange(o.size_, 0)),
      stamp_(o.stamp_),
      at_rest_(o.at_rest_),
      fd_(std::exchange(o.fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  std::swap(stamp_, o.stamp_);
  std::swap(at_rest_, o.at_rest_);
  std::swap(fd_, o.fd_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) {
    unregister_map(data_);
    ::munmap(const_cast<std::byte*>(data_), size_);
    ::close(fd_);
  }
}

// A descriptor that this process was given: nobody else will open its pipe to write.
static bool names_descriptor(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

static Result<std::string> read_all(const Fd& file, const std::string& path, const FileKind& kind) {
  if (file.fd < 0) return failure("read", path, errno);
  struct stat info;
  if (::fstat(file.fd, &info) != 0) return failure("read", path, errno);
  if (S_ISDIR(info.st_mode)) return failure("read", path, EISDIR);
  const bool regular = S_ISREG(info.st_mode);
  if (!regular && !kind.streams)
    return bad_input("cannot read '" + path + "': not a regular file, which " + kind.name + " must be");
  const auto too_large = [&] {
    return bad_input("cannot read '" + path + "': it holds more than the " + std::to_string(kind.most) +
                     " bytes that " + kind.name + " may have");
  };
  std::string content;
  if (regular && static_cast<uint64_t>(info.st_size) > kind.most) return too_large();
  if (regular) content.reserve(static_cast<size_t>(info.st_size));
  bool waits = regular;
  char buffer[1 << 16];
  for (;;) {  // to the end rather than to st_size: pipes and growing files are read whole
    const ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n == 0) {
      // The end of a pipe before anybody wrote to it: to wait for a writer could be for ever.
      if (!waits && S_ISFIFO(info.st_mode) && content.empty() && !names_descriptor(path))
        return bad_input("cannot read '" + path +
                         "': a pipe that nobody writes to: start its writer first, or give a file");
      return content;
    }
    if (n > 0) {
      content.append(buffer, static_cast<size_t>(n));
      if (content.size() > kind.most) return too_large();
    } else if (errno == EAGAIN && !waits) {
      waits = true;  // somebody writes, or types
      if (::fcntl(file.fd, F_SETFL, O_RDONLY) != 0) return failure("read", path, errno);
    } else if (errno != EINTR) {
      return failure("read", path, errno);
    }
  }
}

Result<std::string> read_file(const std::string& path, const FileKind& kind) {
  return read_all(Fd(open_for_reading(path)), path, kind);
}

Result<std::string> read_file_at(int folder, const std::string& name) {
  return read_all(Fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)), name,
                  kTextFile);
}

Status write_file(const std::string& path, std::string_view content) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) return failure("write", path, EISDIR);
    return write_in_place(path, content);
  }
  const int error = replace_content(path, [&](int fd) { return write_all(fd, content); });
  if (error) return failure("write", path, error);
  flush_folder_of(path);
  return {};
}

}  // namespace invar
