#include "http/origins.h"

#include <algorithm>

#include "base/text/display.h"
#include "base/text/json.h"

namespace invar::http {
namespace {

bool is_origin(std::string_view text) {
  if (text == "*" || text == "null") return true;
  const size_t at = text.find("://");
  if (at == 0 || at == text.npos || at + 3 == text.size()) return false;
  const auto plain = [](char c) { return c > ' ' && c < 0x7f; };
  return std::ranges::all_of(text, plain) && text.find_first_of("/?#@*,\"", at + 3) == text.npos;
}

}  // namespace

Result<std::vector<std::string>> origins_of(const std::vector<std::string>& texts) {
  std::vector<std::string> origins;
  const auto add = [&](std::string text) -> Status {
    if (!is_origin(text))
      return bad_input(excerpt(text) +
                       " is no origin: give a scheme and a host without a path, such as "
                       "https://example.org or http://localhost:3000, or *");
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    origins.push_back(std::move(text));
    return {};
  };
  for (const std::string& text : texts) {
    if (!text.starts_with('[')) {
      INVAR_CHECK_OK(add(text));
      continue;
    }
    INVAR_TRY(const json::Value list, json::parse(text, "the list"));
    for (const json::Value& one : list.items)
      INVAR_CHECK_OK(add(one.is_string() ? one.text : json::compact(one)));
  }
  return origins;
}

bool allows(const std::vector<std::string>& origins, std::string_view origin) {
  return !origin.empty() && (std::ranges::count(origins, "*") > 0 || std::ranges::count(origins, origin) > 0);
}

Headers origin_headers(const std::vector<std::string>& origins, std::string_view origin) {
  Headers headers;
  if (origins.empty()) return headers;
  const bool all = std::ranges::count(origins, "*") > 0;
  if (!all) headers.push_back({"vary", "origin"});
  if (!allows(origins, origin)) return headers;
  headers.push_back({"access-control-allow-origin", all ? "*" : std::string(origin)});
  headers.push_back({"access-control-expose-headers", "*"});  // x-invar-receipt among them
  return headers;
}

}  // namespace invar::http
