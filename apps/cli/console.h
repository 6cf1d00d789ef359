// What a person sees: phases and progress on a terminal, quiet lines in a pipe; all of it on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace invar::cli {

bool stdout_is_terminal();
bool stderr_is_terminal();

// What happens to the terminal or a pipe must not end a run: a closed pipe and a file limit become errors of the write
// instead of signals, closed standard streams become /dev/null (or the next file opened would take their place).
void keep_running_without_streams();

// Text of unknown origin (names, paths, answers) reaches a terminal by these functions or printable() alone: nothing in it
// moves the cursor, hides or forges a line (base/text/display.h).

// Writes to stdout: in a pipe exactly these bytes, on a terminal as printable_lines() says. A reader that closed its pipe
// has what it wanted, which is no error; a full disk is one.
Status write_stdout(std::string_view text);
// A path for stdout: exact in a pipe, one line on a terminal.
std::string path_for_stdout(const std::string& path);
// One line of JSON, the same in a pipe and on a terminal.
std::string line_of(const nlohmann::json&);

// Prints "invar: MESSAGE" on stderr and returns the error's exit code.
int fail(const Error& error);

// One step of the journey: on a terminal a line that is redrawn, in a pipe one line when it is done.
class Phase {
 public:
  Phase(std::string_view name, bool quiet);
  void progress(int64_t done, int64_t total);  // redraws the bar, a terminal only
  void done(std::string_view detail);          // "name  detail  12 ms"
  ~Phase();                                    // an unfinished phase leaves the line clean

 private:
  std::string name_;
  bool quiet_, open_ = true, drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

std::string milliseconds(std::chrono::steady_clock::duration d);  // "12 ms", "1.2 s"

}  // namespace invar::cli
