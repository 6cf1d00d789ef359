#include "model/event.h"

#include <utility>

#include "base/text/json.h"

namespace invar::tui {
namespace {

using json::Value;

void read(const Value& object, const char* key, std::string& out) {
  if (const Value& v = object.get(key); v.is_string()) out = v.text;
}
void read(const Value& object, const char* key, int64_t& out) {
  if (const Value& v = object.get(key); v.is_integer()) out = v.to_int64();
}
void read(const Value& object, const char* key, double& out) {
  if (const Value& v = object.get(key); v.is_number()) out = v.to_double();
}

}  // namespace

std::optional<Event> parse_event(std::string_view line) {
  const Value object = json::read_or_null(line);
  if (!object.is_object()) return std::nullopt;
  std::string kind;
  read(object, "event", kind);
  static constexpr std::pair<const char*, Event::Kind> kKinds[] = {
      {"phase", Event::Kind::phase},     {"note", Event::Kind::note},       {"text", Event::Kind::text},
      {"receipt", Event::Kind::receipt}, {"verdict", Event::Kind::verdict}, {"error", Event::Kind::error}};
  for (const auto& [name, value] : kKinds) {
    if (kind != name) continue;
    Event e;
    e.kind = value;
    read(object, "phase", e.phase);
    read(object, "state", e.state);
    read(object, "unit", e.unit);
    read(object, "done", e.done);
    read(object, "total", e.total);
    read(object, "ms", e.ms);
    read(object, "per_second", e.per_second);
    read(object, "detail", e.detail);
    read(object, "topic", e.topic);
    read(object, "text", e.text);
    read(object, "prompt", e.prompt);
    read(object, value == Event::Kind::verdict ? "receipt" : "path", e.path);
    read(object, "hash", e.hash);
    read(object, "status", e.status);
    int64_t code = 0;
    read(object, "code", code);
    e.code = static_cast<int>(code);
    read(object, "kind", e.error_kind);
    read(object, "message", e.message);
    read(object, "hint", e.hint);
    for (const Value& item : object.get("items").items)
      if (item.is_string()) e.items.push_back(item.text);
    return e;
  }
  return std::nullopt;
}

}  // namespace invar::tui
