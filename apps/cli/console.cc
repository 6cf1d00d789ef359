#include "console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/text/display.h"
#include "help/near_model.h"
#include "progress/display.h"
#include "progress/phase.h"
#include "progress/terminal_text.h"

namespace invar::cli {

bool stdout_is_terminal() {
  return is_terminal(STDOUT_FILENO);
}
bool stderr_is_terminal() {
  return is_terminal(STDERR_FILENO);
}

void keep_running_without_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

Status write_stdout(std::string_view text) {
  const std::string shown = stdout_is_terminal() ? printable_lines(text) : std::string(text);
  errno = 0;
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0)
    return {};
  if (errno == EPIPE) return {};
  return bad_input("standard output: cannot be written: " + std::string(std::strerror(errno)));
}

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void write_line(std::string_view topic, std::string_view text) {
  std::string name = printable(topic);
  if (name.size() < 9) name.resize(9, ' ');
  write_stderr(for_stream("  " + name + " " + std::string(text) + "\n", STDERR_FILENO));
}

void explain_on_stderr(std::string_view text) {
  if (shows_events()) return emit({{"event", "note"}, {"topic", "explain"}, {"text", text}});
  write_stderr(text);
}

std::string path_for_stdout(const std::string& path) {
  return stdout_is_terminal() ? for_stream(printable(path), STDOUT_FILENO) : path;
}

std::string line_of(json::Value value) {
  return printable_json(json::dump(json::sorted(std::move(value)))) + "\n";
}

namespace {

const char* kind_of(Code code) {
  switch (code) {
    case Code::failed: return "failed";
    case Code::bad_input: return "bad input";
    case Code::not_covered: return "not covered";
    default: return "internal error";
  }
}

std::string hint_of(const Error& error, const std::string& given) {
  return given.empty() && error.kind == ErrorKind::no_model ? near_models(error.subject) : given;
}

}  // namespace

int complain(const Error& error, const std::string& given) {
  const std::string hint = hint_of(error, given);
  const int code = static_cast<int>(error.code);
  if (shows_events()) {
    json::Value event = {
        {"event", "error"}, {"code", code}, {"kind", kind_of(error.code)}, {"message", error.message}};
    if (!error.items.empty()) event["items"] = error.items;
    if (!hint.empty()) event["hint"] = hint;
    emit(event);
  } else {
    std::fprintf(stderr, "%s %s%s%s\n", painted("invar:", Tone::bad, STDERR_FILENO).c_str(),
                 printable(error).c_str(), hint.empty() ? "" : ": ", printable(hint).c_str());
  }
  return code;
}

json::Value object_of(const Error& error, const std::string& given) {
  const std::string hint = hint_of(error, given);
  json::Value object = {{"ok", false},
                        {"error", error.message},
                        {"kind", kind_of(error.code)},
                        {"exit_code", static_cast<int>(error.code)}};
  if (!error.items.empty()) object["items"] = error.items;
  if (!hint.empty()) object["hint"] = hint;
  return object;
}

int fail(const Error& error, const std::string& given) {
  const std::string hint = hint_of(error, given);
  const int code = complain(error, hint);
  if (!display().json) return code;
  // The reason of the error may be that nothing can be written.
  (void)write_stdout(line_of(object_of(error, hint)));
  return code;
}

int exit_code(const Status& s) {
  return s ? 0 : fail(s.error());
}

std::unique_ptr<generate::Phase> Console::phase(std::string_view name) {
  ProgressForm form = display().progress;
  if (form == ProgressForm::automatic)
    form = quiet_ || display().quiet ? ProgressForm::none
           : stderr_is_terminal()    ? ProgressForm::bar
                                     : ProgressForm::lines;
  // The answer itself shows how far it is.
  if (form == ProgressForm::bar && name == "decode" && stdout_is_terminal() && !quiet_)
    form = ProgressForm::none;
  return make_phase(name, form);
}

void Console::note(std::string_view topic, std::string_view text) {
  if (shows_events())
    emit({{"event", "note"}, {"topic", topic}, {"text", text}});
  else if (!display().quiet)
    write_line(topic, printable(text));
}

void Console::artifacts(const std::string& folder) {
  if (shows_events()) return note("artifacts", folder);
  write_stderr("artifacts in " + printable(folder) + "\n");
}

void Console::unsaved_receipt(const std::string& json) {
  if (shows_events()) return note("unsaved receipt", json);
  std::fprintf(stderr, "%s\n", printable_json(json).c_str());
}

bool Console::says_details() const {
  return shows_events() || !(quiet_ || display().quiet);
}

void Console::text(size_t prompt, std::string_view piece) {
  if (shows_events() && !piece.empty()) emit({{"event", "text"}, {"prompt", prompt}, {"text", piece}});
}

void Console::receipt(const std::string& path, const std::string& hash) {
  if (shows_events()) return emit({{"event", "receipt"}, {"path", path}, {"hash", hash}});
  if (!says_details()) return;
  note("receipt", path);
  note("hash", hash);
}

}  // namespace invar::cli
