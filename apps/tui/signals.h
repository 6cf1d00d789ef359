// Signals as bytes of a pipe, so that they wake the loop that waits for keys and processes.
#pragma once

namespace invar::tui {

class Signals {
 public:
  // Catches SIGWINCH, SIGCHLD, SIGCONT, and the signals that end a process; it ignores SIGPIPE.
  Signals();
  int stream() const;  // to poll
  // The signals since the last call.
  struct Came {
    bool resized = false, continued = false;
    int end = 0;  // the signal that asks the program to end, or 0
  };
  Came take();
};

}  // namespace invar::tui
