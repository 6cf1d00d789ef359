// The table of mapped files for the SIGBUS handler, see map_registry.h.
#include "base/file/map_registry.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

#include "base/file/file.h"

namespace invar {
namespace {

// A handler may run at any instruction, so it reads a table of fixed size without a lock. Where the
// table is full the message does not name the file.
constexpr size_t kSlots = 1024, kPath = 256;
struct Slot {
  std::atomic<const std::byte*> data{nullptr};
  std::atomic<size_t> size{0};
  char path[kPath];  // the end of it, where it is longer
};
Slot slots[kSlots];
std::mutex mutex;  // writers alone

TruncationLine lines[2] = {
    {STDERR_FILENO, "invar: '", "': the file became shorter while it was in use: restore it and run again\n"},
    {STDERR_FILENO}};

void say(int stream, const char* text, size_t left) {
  for (ssize_t n; left > 0 && (n = ::write(stream, text, left)) > 0; text += n)
    left -= static_cast<size_t>(n);
}

void say(const TruncationLine& line, const char* path) {
  if (!line.before) return;
  say(line.stream, line.before, std::strlen(line.before));
  if (!line.json) say(line.stream, path, std::strlen(path));
  for (; line.json && *path; ++path) {  // a path that is cut may begin within a character of UTF-8
    const bool is_ascii = static_cast<unsigned char>(*path) < 0x80;
    if (*path == '"' || *path == '\\') say(line.stream, "\\", 1);
    say(line.stream, is_ascii ? path : "?", 1);
  }
  say(line.stream, line.after, std::strlen(line.after));
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  for (const Slot& s : slots) {
    const std::byte* data = s.data.load(std::memory_order_acquire);
    if (!data || at < data || at >= data + s.size.load(std::memory_order_relaxed)) continue;
    for (const TruncationLine& line : lines) say(line, s.path);
    ::_exit(2);
  }
  ::signal(signal, SIG_DFL);  // not ours: the fault happens again and ends the process as usual
}

}  // namespace

void register_map(const std::byte* data, size_t size, const std::string& path) {
  const std::lock_guard lock(mutex);
  for (Slot& s : slots) {
    if (s.data.load(std::memory_order_relaxed)) continue;
    const size_t n = std::min(path.size(), kPath - 1);
    for (size_t i = 0; i < n; ++i) {  // control characters never reach a terminal
      const char c = path[path.size() - n + i];
      s.path[i] = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
    s.path[n] = 0;
    s.size.store(size, std::memory_order_relaxed);
    s.data.store(data, std::memory_order_release);
    return;
  }
}

void unregister_map(const std::byte* data) {
  const std::lock_guard lock(mutex);
  for (Slot& s : slots)
    if (s.data.load(std::memory_order_relaxed) == data)
      return s.data.store(nullptr, std::memory_order_release);
}

void say_truncation_as(const TruncationLine& first, const TruncationLine& second) {
  lines[0] = first, lines[1] = second;
}

void report_truncated_maps() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace invar
