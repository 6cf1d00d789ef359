#include "console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text/display.h"
#include "base/text/size_text.h"

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

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
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

int exit_code(const Status& s) {
  return s ? 0 : fail(s.error());
}

namespace {

std::string duration(double ms) {  // "12 ms", "1.2 s"
  char text[32];
  std::snprintf(text, sizeof text, ms < 1000 ? "%.0f ms" : "%.1f s", ms < 1000 ? ms : ms / 1000);
  return text;
}

class ConsolePhase : public generate::Phase {
 public:
  ConsolePhase(std::string_view name, bool quiet)
      : name_(printable(name)), quiet_(quiet), start_(std::chrono::steady_clock::now()), last_(start_) {
    if (!quiet_ && stderr_is_terminal()) {
      std::fprintf(stderr, "  %-9s …", name_.c_str());
      drawn_ = true;
    }
  }

  void progress(int64_t done, int64_t total) override {  // redraws the bar, a terminal only
    const auto now = std::chrono::steady_clock::now();
    if (!drawn_ || total <= 0 || now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    draw(static_cast<uint64_t>(done * 100 / total), "");
  }

  bool bytes(uint64_t done, uint64_t total) override {  // a line every ten seconds in a pipe
    const auto now = std::chrono::steady_clock::now();
    if (!began_) began_ = now, at_first_ = done;
    const auto pause = drawn_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
    if (quiet_ || total == 0 || now - last_ < pause) return true;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - *began_).count();
    const double rate = static_cast<double>(done - std::min(done, at_first_)) / std::max(seconds, 1e-3);
    std::string text = size_text(done) + " of " + size_text(total);
    if (rate > 0)
      text += ", " + size_text(static_cast<uint64_t>(rate)) + "/s, " +
              duration(1000 * std::ceil(static_cast<double>(total - done) / rate)) + " left";
    if (drawn_)
      draw(done * 100 / total, "  " + text);
    else
      std::fprintf(stderr, "  %-9s %s\n", name_.c_str(), text.c_str());
    return true;
  }

  void done(std::string_view detail) override {
    open_ = false;
    if (quiet_) return;
    if (drawn_) std::fputs("\r\033[K", stderr);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "  %-9s %s (%s)\n", name_.c_str(), printable(detail).c_str(),
                 duration(ms.count()).c_str());
  }

  ~ConsolePhase() override {  // an unfinished phase leaves the line clean
    if (open_ && drawn_) std::fputs("\r\033[K", stderr);
  }

 private:
  void draw(uint64_t percent, const std::string& behind) const {
    constexpr uint64_t kWidth = 30;
    std::string bar;
    for (uint64_t i = 0; i < kWidth; ++i) bar += i < percent * kWidth / 100 ? "█" : "░";
    std::fprintf(stderr, "\r\033[K  %-9s %s %3d%%%s", name_.c_str(), bar.c_str(), static_cast<int>(percent),
                 behind.c_str());
  }

  std::string name_;
  bool quiet_, open_ = true, drawn_ = false;
  std::optional<std::chrono::steady_clock::time_point> began_;  // the first bytes
  uint64_t at_first_ = 0;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace

std::unique_ptr<generate::Phase> Console::phase(std::string_view name) {
  return std::make_unique<ConsolePhase>(name, quiet_);
}

void Console::note(std::string_view topic, std::string_view text) {
  std::fprintf(stderr, "  %-9s %s\n", printable(topic).c_str(), printable(text).c_str());
}

void Console::artifacts(const std::string& folder) {
  std::fprintf(stderr, "artifacts in %s\n", printable(folder).c_str());
}

void Console::unsaved_receipt(const std::string& json) {
  std::fprintf(stderr, "%s\n", printable_json(json).c_str());
}

}  // namespace invar::cli
