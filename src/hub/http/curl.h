// One HTTP exchange by libcurl, which is opened at run time: the program runs without it, and links
// nothing for it. The functions and numbers are libcurl's ABI, which is stable since 7.16
// (libcurl.so.4; https://curl.se/libcurl/abi.html).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace invar::hub {

struct Request {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  bool head = false;                 // the headers alone
  std::optional<std::string> post = {};  // the body of a POST; none: it is a GET
};

struct Response {
  int status = 0;                              // of HTTP; 0: there was none
  std::map<std::string, std::string> headers;  // names in lower case
  std::string redirect;                        // the absolute URL that a 3xx names
  std::string failure;                         // what went wrong on the way; "": nothing
  bool unreachable = false;                    // no connection could be made
  bool refused = false;                        // the receiver of the body wanted no more of it
};

// Bytes a second that a transfer must bring. A server that sends less could hold a download for
// ever.
inline constexpr long kLeastRate = 1024;

class Curl {
 public:
  // stall: seconds below kLeastRate after which a transfer fails. certificates: a file of those to
  // trust, "" for the system's. bad_input: no libcurl is here.
  static Result<Curl> open(long stall, const std::string& certificates);
  // Follows no redirect. The body of the answer goes to `body` piece by piece; false ends the
  // transfer. Connections are kept for the next exchange. TLS certificates are verified.
  using Body = std::function<bool(const Response&, std::string_view)>;
  Response exchange(const Request&, const Body& body);

 private:
  struct Library;
  explicit Curl(void* handle);
  std::unique_ptr<void, void (*)(void*)> handle_;
};

}  // namespace invar::hub
