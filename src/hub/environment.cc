#include "hub/environment.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/file/file.h"
#include "base/text/decimal.h"

namespace invar::hub {
namespace {

constexpr FileKind kTokenFile{"a token", 1 << 16};
constexpr long kStallSeconds = 30, kLongestStall = 3600;

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

bool is_true(const char* name) {
  std::string value = value_of(name);
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string home_folder() {
  const std::string home = value_of("HOME");
  return home.empty() ? "." : home;
}

// A path with ~ at its start, which a shell leaves where it stands in quotes.
std::string path_of(const char* name) {
  const std::string path = value_of(name);
  const bool home = path == "~" || path.starts_with("~/");
  return home ? home_folder() + path.substr(1) : path;
}

std::string hub_home() {
  if (const std::string path = path_of("HF_HOME"); !path.empty()) return path;
  const std::string caches = path_of("XDG_CACHE_HOME");
  return (caches.empty() ? home_folder() + "/.cache" : caches) + "/huggingface";
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  return text;
}

}  // namespace

std::string cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string path = path_of(name); !path.empty()) return path;
  return hub_home() + "/hub";
}

bool offline() {
  return is_true(value_of("HF_HUB_OFFLINE").empty() ? "TRANSFORMERS_OFFLINE" : "HF_HUB_OFFLINE");
}

Result<std::string> endpoint() {
  std::string url = value_of("HF_ENDPOINT");
  if (url.empty()) return std::string("https://huggingface.co");
  while (url.ends_with('/')) url.pop_back();
  const bool plain = std::all_of(url.begin(), url.end(), [](unsigned char c) { return c > ' ' && c < 127; });
  if (plain && (url.starts_with("https://") || url.starts_with("http://"))) return url;
  return bad_input("HF_ENDPOINT = " + url + ": not a URL that begins with https:// or http://");
}

Result<std::string> token() {
  if (is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return std::string();
  std::string source = "HF_TOKEN", text = value_of("HF_TOKEN");
  if (text.empty()) {
    source = path_of("HF_TOKEN_PATH");
    if (source.empty()) source = hub_home() + "/token";
    if (auto content = read_file(source, kTokenFile)) text = *std::move(content);
  }
  const std::string_view token = trimmed(text);
  for (const unsigned char c : token)
    if (c <= ' ' || c >= 127)
      return bad_input(source + ": a token is one word of printable ASCII characters");
  return std::string(token);
}

std::string certificates() {
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
    if (const std::string path = path_of(name); !path.empty()) return path;
  return "";
}

Result<long> stall_timeout() {
  const std::string text = value_of("HF_HUB_DOWNLOAD_TIMEOUT");
  if (text.empty()) return kStallSeconds;
  if (const auto seconds = parse_whole(text, 1, kLongestStall)) return static_cast<long>(*seconds);
  return bad_input("HF_HUB_DOWNLOAD_TIMEOUT = " + text + ": not a whole number of seconds from 1 to " +
                   std::to_string(kLongestStall));
}

}  // namespace invar::hub
