// Lines of a person at a terminal: with editing and history by libedit, which is opened when the
// first line is read; without that library, and in a pipe, as they come.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace invar::cli {

class LineEditor {
 public:
  // history: the file of earlier lines, to which new ones are added; "" = none. edits: whether a
  // person types at the terminal (standard input) and reads there (standard error).
  LineEditor(std::string history, bool edits);
  LineEditor(const LineEditor&) = delete;
  ~LineEditor();
  // The next line without its line break; none at the end of the input. `prompt` is static text.
  std::optional<std::string> read(const char* prompt);
  // Whether libedit reads the lines.
  bool edits() const { return impl_ != nullptr; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool shows_prompt_;
};

// Gives the terminal the settings that it had before the first editor. For what ends the program by
// a signal: libedit leaves some of its own.
void restore_terminal();

}  // namespace invar::cli
