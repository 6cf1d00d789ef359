#include "http/head.h"

#include <algorithm>

#include "http/origins.h"

namespace invar::http {
namespace {

bool is_host(std::string_view host) {
  const size_t name = host_of(host).size();
  const std::string_view rest = host.substr(std::min(name, host.size()));
  if (rest.find_first_not_of("0123456789", rest.starts_with(':') ? 1 : 0) != rest.npos) return false;
  return (rest.empty() || rest[0] == ':') && host.find_first_of("/\\@, \t") == host.npos;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string host_of(std::string_view host) {
  if (host.starts_with('[')) return lower(host.substr(0, host.find(']') + 1));
  return lower(host.substr(0, host.find(':')));
}

std::optional<std::pair<int, std::string>> refusal_of(const Head& head, const Doors& doors) {
  using Refusal = std::pair<int, std::string>;
  const auto count = [&](std::string_view name) {
    return std::ranges::count(head.fields, name, &Headers::value_type::first);
  };
  const auto value = [&](std::string_view name) {
    const auto at = std::ranges::find(head.fields, name, &Headers::value_type::first);
    return at == head.fields.end() ? std::string_view() : std::string_view(at->second);
  };
  if (!head.target.starts_with('/')) return Refusal(400, "the target of a request begins with /");
  if (count("transfer-encoding") > 0) {
    if (count("content-length") > 0)
      return Refusal(400, "Transfer-Encoding and Content-Length exclude one another");
    if (head.version < 11 || lower(value("transfer-encoding")) != "chunked")
      return Refusal(501, "the only Transfer-Encoding is chunked");
  }
  for (const char* once : {"Content-Length", "Content-Type", "Authorization", "Origin"})
    if (count(lower(once)) > 1) return Refusal(400, std::string(once) + " comes twice");
  if (value("content-length").find_first_not_of("0123456789") != std::string_view::npos)
    return Refusal(400, "Content-Length is a number");
  if (count("host") > 1 || (head.version >= 11 && count("host") == 0))
    return Refusal(400, "a request has one Host");
  const std::string_view host = value("host");
  if (!is_host(host)) return Refusal(400, "Host is a name and a port");
  if (!doors.any_host && count("host") > 0 &&
      std::ranges::find(doors.names, host_of(host)) == doors.names.end())
    return Refusal(421, "this server has not the name '" + std::string(host) +
                            "': --allowed-host adds it to localhost and 127.0.0.1");
  if (count("origin") > 0) {
    const std::string_view origin = value("origin");
    const size_t at = origin.find("://");
    const bool own = at != origin.npos && lower(origin.substr(at + 3)) == lower(host);
    if (!own && !allows(doors.origins, origin))
      return Refusal(
          403, "a page of '" + std::string(origin) + "' may not use this server: --allowed-origins lets it");
  }
  const std::string_view encoding = value("content-encoding");
  if (!encoding.empty() && lower(encoding) != "identity")
    return Refusal(415, "bodies are taken without Content-Encoding");
  return std::nullopt;
}

}  // namespace invar::http
