#include "progress/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/file/map_registry.h"
#include "base/text/decimal.h"
#include "base/text/display.h"
#include "console.h"

namespace invar::cli {

Display& display() {
  static Display chosen;
  return chosen;
}

bool shows_events() {
  return display().progress == ProgressForm::json;
}

void emit(const json::Value& event) {
  write_stderr(printable_json(json::dump(event)) + "\n");
  std::fflush(stderr);
}

void show_truncation() {
  constexpr const char* kAfter = "': the file became shorter while it was in use: restore it and run again";
  static const std::string after = std::string(kAfter) + "\n", after_json = std::string(kAfter) + "\"}\n";
  TruncationLine error{STDERR_FILENO, "invar: '", after.c_str()}, result{STDOUT_FILENO};
  if (shows_events())
    error = {STDERR_FILENO, "{\"event\":\"error\",\"code\":2,\"kind\":\"bad input\",\"message\":\"'",
             after_json.c_str(), true};
  if (display().json)
    result = {STDOUT_FILENO, "{\"ok\":false,\"exit_code\":2,\"kind\":\"bad input\",\"error\":\"'",
              after_json.c_str(), true};
  say_truncation_as(error, result);
}

int terminal_width() {
  winsize size{};
  for (const int stream : {STDERR_FILENO, STDOUT_FILENO})
    if (::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const auto given = parse_whole(columns ? columns : "", 1, 10000);
  return given ? static_cast<int>(*given) : 80;
}

}  // namespace invar::cli
