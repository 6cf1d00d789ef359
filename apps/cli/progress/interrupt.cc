#include "progress/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file/temporary_file.h"
#include "console.h"
#include "progress/display.h"
#include "terminal/line_editor.h"
#include "workers/workers.h"

namespace invar::cli {
namespace {

int pipe_of_signals[2] = {-1, -1};

extern "C" void tell_thread(int signal) {  // async-signal-safe
  const char number = static_cast<char>(signal);
  [[maybe_unused]] const auto written = ::write(pipe_of_signals[1], &number, 1);
}

void end_by(int signal) {
  remove_temporaries();
  restore_terminal();
  // Never unlocked: what other threads have to say comes before the last line, or not at all.
  if (shows_events() || stderr_is_terminal()) ::flockfile(stderr);
  if (shows_events())
    emit({{"event", "error"}, {"code", 128 + signal}, {"kind", "cancelled"}, {"message", "cancelled"}});
  else if (stderr_is_terminal())
    write_stderr("\r\033[K");
  std::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(128 + signal);  // the signal is blocked
}

std::mutex hook_mutex;
std::function<void()> hook;

void wait_for_signal() {
  for (;;) {
    char signal;
    while (::read(pipe_of_signals[0], &signal, 1) != 1)
      if (errno != EINTR) return;
    std::function<void()> first;
    {
      const std::lock_guard lock(hook_mutex);
      first = std::exchange(hook, nullptr);
    }
    if (!first) end_by(signal);
    first();
  }
}

}  // namespace

void on_next_signal(std::function<void()> first) {
  const std::lock_guard lock(hook_mutex);
  hook = std::move(first);
}

void clean_up_on_signals() {
  if (::pipe2(pipe_of_signals, O_CLOEXEC) != 0) return;
  try {
    std::thread(wait_for_signal).detach();
  } catch (const std::system_error&) {
    return;  // no thread: signals end the process as they always do
  }
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    if (signal == SIGUSR1 && !is_in_job()) continue;
    struct sigaction old {};
    if (::sigaction(signal, nullptr, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = tell_thread;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace invar::cli
