#include "outputs/user_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file/file.h"

namespace invar::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivate = S_IRUSR | S_IWUSR;
constexpr const char* kLastReceipt = "last-receipt";

// The folders above the file, those that are missing with mode 0700.
bool make_folders(const fs::path& folder) {
  std::error_code ec;
  if (folder.empty() || fs::is_directory(folder, ec)) return !folder.empty();
  return make_folders(folder.parent_path()) &&
         (::mkdir(folder.c_str(), S_IRWXU) == 0 || fs::is_directory(folder, ec));
}

// Opened for writing, whoever could read it before; -1: that is not possible.
int open_private(const std::string& file, int flags) {
  if (file.empty() || !make_folders(fs::path(file).parent_path())) return -1;
  const int fd =
      ::open(file.c_str(), flags | O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kPrivate);
  struct stat s {};
  if (fd >= 0 && ::fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && ::fchmod(fd, kPrivate) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

void write_and_close(int fd, const std::string& text) {
  [[maybe_unused]] const auto written = ::write(fd, text.data(), text.size());
  ::close(fd);
}

// Whether this user alone decides what the file says.
bool is_own(const std::string& file) {
  struct stat s {};
  return ::lstat(file.c_str(), &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == ::geteuid() &&
         !(s.st_mode & (S_IWGRP | S_IWOTH));
}

}  // namespace

std::string state_file(const std::string& name) {
  if (const char* v = std::getenv("XDG_STATE_HOME"); v && *v == '/') return std::string(v) + "/invar/" + name;
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.local/state/invar/" + name : "";
}

void remember_receipt(const std::string& path) {
  std::error_code ec;
  const std::string absolute = fs::absolute(path, ec).lexically_normal().string();
  if (!ec && fs::is_regular_file(absolute, ec)) remember_lines(state_file(kLastReceipt), {absolute});
}

Result<std::string> last_receipt() {
  const std::string file = state_file(kLastReceipt);
  const std::string note = file.empty() ? "neither XDG_STATE_HOME nor HOME is set" : file + " notes it";
  const std::vector<std::string> lines = remembered_lines(file, 1);
  if (lines.empty()) return bad_input("--last: no receipt of a run is known (" + note + "): give a receipt");
  std::error_code ec;
  if (!fs::exists(lines[0], ec))
    return bad_input("--last: the last receipt was " + lines[0] + " (" + note +
                     "), and it is not there any more: give a receipt");
  return lines[0];
}

std::vector<std::string> remembered_lines(const std::string& file, size_t most) {
  std::vector<std::string> lines;
  const auto text = is_own(file) ? read_file(file) : Result<std::string>(std::string());
  for (size_t at = 0; text && at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    if (end > at) lines.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(most));
  return lines;
}

void remember_line(const std::string& file, const std::string& line) {
  if (const int fd = open_private(file, O_APPEND); fd >= 0) write_and_close(fd, line + "\n");
}

// Writes a file of its own that takes the place: another command may read at the same time.
void remember_lines(const std::string& file, const std::vector<std::string>& lines) {
  const std::string fresh = file.empty() ? "" : file + "." + std::to_string(::getpid());
  const int fd = open_private(fresh, O_TRUNC);
  if (fd < 0) return;
  std::string text;
  for (const std::string& line : lines)
    if (line.find('\n') == line.npos) text += line + "\n";
  write_and_close(fd, text);
  std::error_code ec;
  fs::rename(fresh, file, ec);
  if (ec) fs::remove(fresh, ec);
}

}  // namespace invar::cli
