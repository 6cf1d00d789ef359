// Reserved disk space, see disk_reservation.h.
#include "base/file/disk_reservation.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file/temporary_file.h"

namespace invar {
namespace {

// Zeros, where a file system cannot promise space.
int fill(int fd, uint64_t bytes) {
  static constexpr char kZeros[1 << 16] = {};
  while (bytes > 0) {
    const ssize_t n = ::write(fd, kZeros, static_cast<size_t>(std::min<uint64_t>(bytes, sizeof kZeros)));
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) bytes -= static_cast<uint64_t>(n);
  }
  return 0;
}

}  // namespace

Result<DiskReservation> DiskReservation::make(const std::string& path, uint64_t bytes) {
  DiskReservation made;
  made.fd_ = ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (made.fd_ < 0) {
    std::string name = folder_of(path) + "/.invar-XXXXXX";
    made.fd_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (made.fd_ >= 0) ::unlink(name.c_str());
  }
  int error = made.fd_ < 0 ? errno : 0;
  if (!error) {
    error = ::posix_fallocate(made.fd_, 0, static_cast<off_t>(bytes));
    if (error == EOPNOTSUPP || error == EINVAL) error = fill(made.fd_, bytes);
  }
  if (error)
    return bad_input("cannot write '" + path + "': " + std::strerror(error) +
                     (made.fd_ < 0 ? std::string() : " (" + std::to_string(bytes) + " bytes are needed)"));
  return made;
}

void DiskReservation::shrink(uint64_t bytes) {
  // The space stays held where this fails, and the file that needs it says so.
  if (fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return;
}

DiskReservation::~DiskReservation() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace invar
