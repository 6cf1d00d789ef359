#include "console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text/display.h"

namespace invar::cli {

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

void keep_running_without_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

Status write_stdout(std::string_view text) {
  const std::string shown = stdout_is_terminal() ? printable_lines(text) : std::string(text);
  errno = 0;
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0)
    return {};
  if (errno == EPIPE) return {};
  return bad_input("standard output: cannot be written: " + std::string(std::strerror(errno)));
}

std::string path_for_stdout(const std::string& path) {
  return stdout_is_terminal() ? printable(path) : path;
}

std::string line_of(const nlohmann::json& value) {
  return printable_json(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

int fail(const Error& error) {
  std::fprintf(stderr, "invar: %s\n", printable(error).c_str());
  return static_cast<int>(error.code);
}

std::string milliseconds(std::chrono::steady_clock::duration d) {
  const double ms = std::chrono::duration<double, std::milli>(d).count();
  char text[32];
  if (ms < 1000) {
    std::snprintf(text, sizeof text, "%.0f ms", ms);
  } else {
    std::snprintf(text, sizeof text, "%.1f s", ms / 1000);
  }
  return text;
}

Phase::Phase(std::string_view name, bool quiet)
    : name_(printable(name)), quiet_(quiet), start_(std::chrono::steady_clock::now()), last_(start_) {
  if (!quiet_ && stderr_is_terminal()) {
    std::fprintf(stderr, "  %-9s …", name_.c_str());
    drawn_ = true;
  }
}

void Phase::progress(int64_t done, int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!drawn_ || total <= 0 || now - last_ < std::chrono::milliseconds(50)) return;
  last_ = now;
  constexpr int kWidth = 30;
  const int full = static_cast<int>(done * kWidth / total);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
  std::fprintf(stderr, "\r\033[K  %-9s %s %3d%%", name_.c_str(), bar.c_str(),
               static_cast<int>(done * 100 / total));
}

void Phase::done(std::string_view detail) {
  open_ = false;
  if (quiet_) return;
  if (drawn_) std::fputs("\r\033[K", stderr);
  const std::string time = milliseconds(std::chrono::steady_clock::now() - start_);
  std::fprintf(stderr, "  %-9s %s (%s)\n", name_.c_str(), printable(detail).c_str(), time.c_str());
}

Phase::~Phase() {
  if (open_ && drawn_) std::fputs("\r\033[K", stderr);
}

}  // namespace invar::cli
