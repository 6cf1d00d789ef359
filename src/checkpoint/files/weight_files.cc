// Symlinks, reflinks and copies of weight files, placed atomically.
#include "checkpoint/files/weight_files.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/file/temporary_file.h"
#include "base/file/write_files.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {
namespace {

Error failure(const char* verb, const std::string& path, int error) {
  return bad_input(std::string("cannot ") + verb + " " + onnx::quote(path) + ": " + std::strerror(error));
}

int copy_bytes(int from, int to) {
  if (::ioctl(to, FICLONE, from) == 0) return 0;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n == 0) return 0;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (const int error = write_all(to, {buffer.data(), static_cast<size_t>(n)})) return error;
  }
}

}  // namespace

Status make_link(const std::string& target, const std::string& path) {
  const int error = replace_file(path, [&](const std::string& temporary) {
    return ::symlink(target.c_str(), temporary.c_str()) == 0 ? 0 : errno;
  });
  if (error) return failure("link", path, error);
  return {};
}

Status make_copy(const std::string& source, const std::string& path) {
  const int from = ::open(source.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return failure("read", source, errno);
  const int error = replace_content(path, [from](int to) { return copy_bytes(from, to); });
  ::close(from);
  if (error) return failure("copy to", path, error);
  return {};
}

}  // namespace invar::checkpoint
