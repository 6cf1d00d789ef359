#include "signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace invar::tui {
namespace {

int ends[2] = {-1, -1};

void came(int number) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(number);
  (void)!::write(ends[1], &byte, 1);
  errno = error;
}

}  // namespace

Signals::Signals() {
  (void)!::pipe2(ends, O_CLOEXEC | O_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = came;
  for (const int s : {SIGWINCH, SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGCONT}) ::sigaction(s, &action, nullptr);
  const auto end_by = [&](int s) {
    struct sigaction before = {};
    if (::sigaction(s, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      ::sigaction(s, &action, nullptr);
  };
  // All others that end a process and that somebody else sends.
  for (const int s :
       {SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGPOLL, SIGXCPU, SIGXFSZ, SIGPWR, SIGSTKFLT})
    end_by(s);
  for (int s = SIGRTMIN; s <= SIGRTMAX; ++s) end_by(s);
  ::signal(SIGPIPE, SIG_IGN);
}

int Signals::stream() const {
  return ends[0];
}

Signals::Came Signals::take() {
  Came out;
  unsigned char bytes[64];
  for (ssize_t n; (n = ::read(ends[0], bytes, sizeof bytes)) > 0;)
    for (ssize_t i = 0; i < n; ++i) {
      const int s = bytes[i];
      if (s == SIGWINCH) out.resized = true;
      if (s == SIGCONT) out.resized = out.continued = true;
      if (s != SIGWINCH && s != SIGCONT && s != SIGCHLD) out.end = s;
    }
  return out;
}

}  // namespace invar::tui
