// Pages of other origins: a browser lets them use a server that says so (CORS, Fetch Standard).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"

namespace invar::http {

// Each text is an origin such as https://a.org:8443, "null", "*" (all there are), or a list of them
// in JSON -> the origins, as browsers spell them. bad_input: one that no browser sends.
Result<std::vector<std::string>> origins_of(const std::vector<std::string>& texts);
bool allows(const std::vector<std::string>& origins, std::string_view origin);
// What any answer to a request from this origin has, "" for a request without one.
Headers origin_headers(const std::vector<std::string>& origins, std::string_view origin);

}  // namespace invar::http
