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
      if (s == SIGINT || s == SIGTERM || s == SIGHUP) out.end = s;
    }
  return out;
}

}  // namespace invar::tui
