// The output for people: phases and progress on a terminal, quiet lines in a pipe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/text/json.h"
#include "generate/observer.h"

namespace invar::cli {

bool stdout_is_terminal();
bool stderr_is_terminal();

// The terminal or a pipe must not end a run: a closed pipe and a file limit become errors of the
// write instead of signals, closed standard streams become /dev/null (or the next file opened would
// take their place).
void keep_running_without_streams();

// Text of unknown origin (names, paths, answers) reaches a terminal by these functions or
// printable() alone: nothing in it moves the cursor, hides or forges a line (base/text/display.h).

// Writes to stdout: in a pipe exactly these bytes, on a terminal as printable_lines() says. A
// reader that closed its pipe has what it wanted, which is no error; a full disk is one.
Status write_stdout(std::string_view text);
// Writes to stderr. The text shows nothing of unknown origin but by printable().
void write_stderr(std::string_view text);
// A line "  topic     text" on stderr, short enough for a terminal.
void write_line(std::string_view topic, std::string_view text);
// Prints for --explain.
void explain_on_stderr(std::string_view text);
// A path for stdout: exact in a pipe, one line on a terminal.
std::string path_for_stdout(const std::string& path);
// One line of JSON, members by name, the same in a pipe and on a terminal.
std::string line_of(json::Value);

// An error as --json has it: ok, error, kind, exit_code, and where it has some, items and hint.
json::Value object_of(const Error& error, const std::string& hint = "");
// Prints "invar: MESSAGE: HINT" on stderr, or an event, and returns the error's exit code.
int complain(const Error& error, const std::string& hint = "");
// The same; with --json also an object on stdout.
int fail(const Error& error, const std::string& hint = "");
// 0, or that of fail().
int exit_code(const Status&);

// The work of the library on stderr, as display() says it. Quiet: notes alone, no phases.
class Console : public generate::Observer {
 public:
  explicit Console(bool quiet) : quiet_(quiet) {}
  // A line "name  detail (12 ms)" when it is done; before that, on a terminal, a bar; or events.
  std::unique_ptr<generate::Phase> phase(std::string_view name) override;
  void note(std::string_view topic, std::string_view text) override;
  void artifacts(const std::string& folder) override;
  void unsaved_receipt(const std::string& json) override;

  // Whether what a person reads behind a result is shown: notes about it, its receipt.
  bool says_details() const;
  // A piece of the answer to this prompt, an event alone.
  void text(size_t prompt, std::string_view piece);
  // A receipt that was written.
  void receipt(const std::string& path, const std::string& hash);

 private:
  bool quiet_;
};

}  // namespace invar::cli
