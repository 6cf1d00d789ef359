// A process and its streams. Nothing here waits for it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::tui {

class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // ends it

  // `speaks`: its standard input is a pipe; else /dev/null.
  Status start(const std::string& program, const std::vector<std::string>& arguments, bool speaks);
  bool running() const { return pid_ > 0; }
  int out() const { return out_; }  // to poll; -1: closed
  int err() const { return err_; }
  // Reads what a stream has, at most 64 KiB; "" = nothing yet, or its end, which closes it.
  std::string read_out() { return read(out_); }
  std::string read_err() { return read(err_); }
  // Queues the bytes; flush() writes what the pipe takes.
  void say(const std::string& bytes);
  void flush();
  // To the process and those that it started.
  void signal(int number);
  struct End {
    int code, signal;
  };
  // Whether it ended, and how. Its streams may still hold something.
  std::optional<End> end();
  void close_streams();

 private:
  static std::string read(int& stream);

  pid_t pid_ = 0, group_ = 0;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string queue_;
};

}  // namespace invar::tui
