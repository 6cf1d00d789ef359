// A line of `invar --progress json` (docs/reference/events.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace invar::tui {

struct Event {
  enum class Kind { phase, note, text, receipt, verdict, error };
  Kind kind = Kind::note;
  std::string phase, state, unit;  // phase: state is started, running, done or stopped
  int64_t done = -1, total = -1;   // -1: unknown
  double ms = -1, per_second = -1;
  std::string detail;       // phase, verdict
  std::string topic, text;  // note; text alone: text
  int64_t prompt = 0;       // text: of which prompt
  std::string path, hash;   // receipt; path alone: verdict
  std::string status;       // verdict: verified, valid or failed
  int code = 0;             // error
  std::string error_kind, message, hint;
  std::vector<std::string> items;
};

// None: the line is no event, or of a kind that this program does not know. Members of another type
// than the schema's are as if they were missing.
std::optional<Event> parse_event(std::string_view line);

}  // namespace invar::tui
