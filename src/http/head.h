// The head of a request, without its body: what is refused for it alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/server.h"

namespace invar::http {

struct Head {
  std::string target;
  unsigned version = 11;  // of HTTP, without the dot
  Headers fields;         // names in lower case
};

// Who may ask.
struct Doors {
  bool any_host = false;
  std::vector<std::string> names;    // of this server, as host_of() has them
  std::vector<std::string> origins;  // of pages, src/http/origins.h
};

std::string lower(std::string_view text);
// A host of a URL without its port.
std::string host_of(std::string_view host);
// Status and message; absent: it is not refused.
std::optional<std::pair<int, std::string>> refusal_of(const Head&, const Doors&);

}  // namespace invar::http
