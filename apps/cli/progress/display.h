// How the command line shows its work and its errors: chosen once, before anything is shown.
#pragma once

#include <string_view>

#include "base/text/json.h"

namespace invar::cli {

// The form of progress on standard error. `automatic`: bars on a terminal, quiet lines in a pipe.
enum class ProgressForm { automatic, bar, lines, json, none };
enum class ColorUse { automatic, always, never };

struct Display {
  ProgressForm progress = ProgressForm::automatic;
  ColorUse color = ColorUse::automatic;
  bool quiet = false;    // errors alone
  bool verbose = false;  // also short phases, whole digests and paths
  bool json = false;     // results are JSON: errors, too
};
Display& display();

// Whether standard error has events (docs/reference/events.md) and nothing else.
bool shows_events();
// One event on a line of its own.
void emit(const json::Value& event);
// The line about a file that became shorter while it was read, which a signal handler writes: as
// every other error.
void show_truncation();
// Columns of the terminal behind standard error, 80 where nobody knows.
int terminal_width();

}  // namespace invar::cli
