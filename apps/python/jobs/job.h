// A job of worker processes for a program that mpirun did not start: the command line starts it
// (`invar run --workers`), and its process 0 passes the messages of this process on.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/workers.h"

namespace invar::python {

class Job {
 public:
  // `command`: the program and its arguments. `patience_seconds`: that of --worker-timeout.
  // `goes_on`: asked while processes start; false gives up. An error is that of the command.
  static Result<std::unique_ptr<Job>> start(std::vector<std::string> command, double patience_seconds,
                                            const std::function<bool()>& goes_on);
  // Ends the processes.
  ~Job();
  run::Transport& transport() { return *transport_; }

 private:
  Job() = default;
  Status spawn(std::vector<std::string>& command, const std::string& socket);
  // Process 0, which connects to the listening socket.
  Result<std::unique_ptr<run::Relay>> await(int listening, const std::function<bool()>& goes_on);
  bool has_ended(double seconds);
  // The line by which the command says why it has ended, and its code.
  Error why();

  pid_t command_ = 0;  // 0: it has ended, or was not started
  int status_ = 0;
  int errors_ = -1;  // a file without a name
  std::unique_ptr<run::Transport> transport_;
};

}  // namespace invar::python
