#include "terminal/line_editor.h"

#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

#include "base/text/utf8.h"
#include "console.h"
#include "device/shared_library.h"
#include "outputs/user_state.h"

namespace invar::cli {
namespace {

constexpr size_t kKept = 1000;  // lines of the history

// libedit's header: numbers of what is set, and its functions. They are its ABI, which
// the soname 2 has kept since 2008; compared with the header of 3.1-20221030.
enum Setting { kPrompt = 0, kEditor = 2, kSignal = 3, kBind = 4, kHistory = 10 };
enum Operation { kSetSize = 1, kEnter = 10, kSetUnique = 20 };
struct Event {  // HistEvent
  int number;
  const char* text;
};
struct Library {
  void* (*init)(const char*, std::FILE*, std::FILE*, std::FILE*);
  void (*end)(void*);
  int (*set)(void*, int, ...);
  const char* (*gets)(void*, int*);
  void* (*history_init)();
  void (*history_end)(void*);
  int (*history)(void*, Event*, int, ...);

  // Whether the system has it.
  bool load() {
    void* const file = open_library({"libedit.so.2", "libedit.so.0", "libedit.3.dylib"});
    const auto find = [&](auto*& function, const char* name) {
      function = function_of<std::remove_reference_t<decltype(*function)>>(file, name);
      return function != nullptr;
    };
    return file && find(init, "el_init") && find(end, "el_end") && find(set, "el_set") &&
           find(gets, "el_gets") && find(history_init, "history_init") && find(history_end, "history_end") &&
           find(history, "history");
  }
};

struct termios settings_before {};
std::atomic<bool> has_settings = false;

const char* shown_prompt = "";
extern "C" const char* prompt_of_libedit(void*) {
  return shown_prompt;
}

// libedit reads characters as the locale says. Classes of characters alone are set: numbers are
// read and written as ever.
bool set_utf8() {
  for (const char* name : {"", "C.UTF-8", "en_US.UTF-8"})
    if (std::setlocale(LC_CTYPE, name) && MB_CUR_MAX > 1) return true;
  return false;
}

bool terminal_can_edit() {
  const char* const kind = std::getenv("TERM");
  return kind && *kind && std::string_view(kind) != "dumb" && ::isatty(STDIN_FILENO) == 1;
}

}  // namespace

struct LineEditor::Impl {
  Library library{};
  void *editor = nullptr, *lines = nullptr;
  std::string file, last;

  ~Impl() {
    if (editor) library.end(editor);
    if (lines) library.history_end(lines);
  }
  bool open(std::string history) {
    if (!terminal_can_edit() || !library.load() || !set_utf8()) return false;
    if (!has_settings && ::tcgetattr(STDIN_FILENO, &settings_before) == 0) has_settings = true;
    lines = library.history_init();
    // Prompts go where they went without an editor: standard output has the answers alone.
    editor = library.init("invar", stdin, stderr, stderr);
    if (!lines || !editor) return false;
    Event event{};
    library.history(lines, &event, kSetSize, static_cast<int>(kKept));
    library.history(lines, &event, kSetUnique, 1);
    library.set(editor, kPrompt, prompt_of_libedit);
    library.set(editor, kEditor, "emacs");
    library.set(editor, kSignal, 1);  // the terminal is as it was before, whatever ends the program
    library.set(editor, kHistory, library.history, lines);
    library.set(editor, kBind, "^R", "em-inc-search-prev", nullptr);
    file = std::move(history);
    load_history();
    return true;
  }
  void load_history() {
    std::vector<std::string> known = remembered_lines(file, 2 * kKept);
    if (known.size() == 2 * kKept) {
      known.erase(known.begin(), known.begin() + kKept);
      remember_lines(file, known);
    }
    Event event{};
    for (const std::string& line : known)
      if (valid_prefix(line) == line.size()) library.history(lines, &event, kEnter, line.c_str());
    if (!known.empty()) last = known.back();
  }
  // A line that begins with a space is not kept, as in shells.
  void keep(const std::string& line) {
    if (line.empty() || line[0] == ' ' || line == last || line.find('\0') != line.npos) return;
    Event event{};
    library.history(lines, &event, kEnter, line.c_str());
    if (!file.empty()) remember_line(file, line);
    last = line;
  }
};

LineEditor::LineEditor(std::string history, bool edits) : shows_prompt_(edits) {
  auto impl = std::make_unique<Impl>();
  if (edits && impl->open(std::move(history))) impl_ = std::move(impl);
}
LineEditor::~LineEditor() {
  impl_.reset();
  restore_terminal();
}

// Leaves a terminal alone that belongs to another job.
void restore_terminal() {
  if (has_settings && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp())
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &settings_before);
}

std::optional<std::string> LineEditor::read(const char* prompt) {
  std::string line;
  if (!impl_) {
    if (shows_prompt_) write_stderr(prompt);
    if (!std::getline(std::cin, line)) return std::nullopt;
  } else {
    shown_prompt = prompt;
    int length = 0;
    const char* const text = impl_->library.gets(impl_->editor, &length);
    if (!text || length < 1) {
      write_stderr("\n");  // after the prompt
      return std::nullopt;
    }
    line.assign(text, static_cast<size_t>(length));
    if (line.ends_with('\n')) line.pop_back();
    impl_->keep(line);
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace invar::cli
