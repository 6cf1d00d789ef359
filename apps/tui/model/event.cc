#include "model/event.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace invar::tui {
namespace {

using nlohmann::json;

void read(const json& object, const char* key, std::string& out) {
  if (const auto it = object.find(key); it != object.end() && it->is_string()) out = it->get<std::string>();
}
void read(const json& object, const char* key, int64_t& out) {
  if (const auto it = object.find(key); it != object.end() && it->is_number_integer()) out = it->get<int64_t>();
}
void read(const json& object, const char* key, double& out) {
  if (const auto it = object.find(key); it != object.end() && it->is_number()) out = it->get<double>();
}

}  // namespace

std::optional<Event> parse_event(std::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
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
    if (const auto it = object.find("items"); it != object.end() && it->is_array())
      for (const json& item : *it)
        if (item.is_string()) e.items.push_back(item.get<std::string>());
    return e;
  }
  return std::nullopt;
}

}  // namespace invar::tui
