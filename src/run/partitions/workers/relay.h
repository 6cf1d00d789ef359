// The socket between a process that is the run, and process 0 of its workers' job, which passes
// messages on: a program that has the library in it (Python) is none that mpirun ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace invar::run {

// Set in process 0 of a job: the path of the socket. Its command is not run then.
inline constexpr const char* kJobRelay = "INVAR_JOB_RELAY";

// One end of the socket. Threads may share it; only wait() and finish() wait.
class Relay {
 public:
  // What a message is for: the worker that it comes from or goes to, and a tag of MPI. Tag 0 is the
  // end of the run in good order.
  using Subject = std::pair<int32_t, int32_t>;
  static constexpr int32_t kEnd = 0;
  static constexpr Subject kSize{0, 1};  // the first message: how many processes there are

  explicit Relay(int descriptor);  // takes it
  static Result<std::unique_ptr<Relay>> connect(const std::string& path);
  ~Relay();

  void put(Subject, std::span<const std::byte> data);
  // The bytes of the first message of a subject, or of the first one of all; none: nothing is
  // there.
  std::optional<size_t> arrived(Subject);
  std::optional<std::vector<std::byte>> take(Subject);
  std::optional<std::pair<Subject, std::vector<std::byte>>> take_any();
  // Whether all that was put is on its way.
  bool is_idle();
  // Whether the other end is there. What it sent before it closed can still be taken.
  bool is_open();
  // Waits until there is something to read, or so long.
  void wait(std::chrono::microseconds);
  // Writes what is left, for some seconds, and closes it.
  void finish();
  void close();

 private:
  struct Frame {
    int32_t peer = 0, tag = 0;
    uint64_t bytes = 0;
  };
  void progress();
  void read_some();
  void write_some();

  std::mutex mutex_;
  int descriptor_;
  std::deque<std::vector<std::byte>> out_;
  size_t written_ = 0;  // of the first of them
  Frame frame_;
  std::vector<std::byte> payload_;
  size_t read_ = 0;  // of the frame and its payload
  std::map<Subject, std::deque<std::vector<std::byte>>> in_;
};

}  // namespace invar::run
