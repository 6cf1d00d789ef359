#include "hub/http/curl.h"

#include <algorithm>
#include <cctype>

#include "device/shared_library.h"

namespace invar::hub {
namespace {

// libcurl's header curl.h: numbers of options, of what is asked of a handle, and of errors.
enum Option {
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kNoBody = 44,
  kPost = 47,
  kConnectTimeout = 78,
  kHttpGet = 80,
  kNoSignal = 99,
  kProtocols = 181,
  kWriteData = 10001,
  kUrl = 10002,
  kErrorBuffer = 10010,
  kPostFields = 10015,
  kUserAgent = 10018,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kCertificates = 10065,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
  kPostFieldSize = 30120,
};
constexpr int kResponseCode = 0x200002, kRedirectUrl = 0x10001f;
constexpr int kNoProxy = 5, kNoHost = 6, kNoConnection = 7, kWriteError = 23, kWrongCertificate = 60,
              kNoCertificates = 77;
constexpr long kHttpAndHttps = 3, kEverything = 3;
constexpr size_t kErrorSize = 256;
constexpr long kConnectSeconds = 15;

}  // namespace

struct StringList;  // curl_slist; not local: GCC 13.3 breaks off at a pointer to a function of it below

struct Curl::Library {
  int (*global_init)(long);
  void* (*easy_init)();
  void (*easy_cleanup)(void*);
  int (*easy_setopt)(void*, int, ...);
  int (*easy_getinfo)(void*, int, ...);
  int (*easy_perform)(void*);
  const char* (*easy_strerror)(int);
  StringList* (*slist_append)(StringList*, const char*);
  void (*slist_free_all)(StringList*);

  // Null: there is none.
  static const Library* get() {
    static const Library library = load();
    return library.global_init ? &library : nullptr;
  }

 private:
  static Library load() {
    void* const file = open_library({"libcurl.so.4", "libcurl-gnutls.so.4"});
    Library l{};
    if (!file) return l;
    const auto all = [](auto... found) { return (... && found); };
    const auto find = [&](auto*& function, const char* name) { return find_function(file, name, function); };
    if (!all(find(l.easy_init, "curl_easy_init"), find(l.easy_cleanup, "curl_easy_cleanup"),
             find(l.easy_setopt, "curl_easy_setopt"), find(l.easy_getinfo, "curl_easy_getinfo"),
             find(l.easy_perform, "curl_easy_perform"), find(l.easy_strerror, "curl_easy_strerror"),
             find(l.slist_append, "curl_slist_append"), find(l.slist_free_all, "curl_slist_free_all"),
             find(l.global_init, "curl_global_init")) ||
        l.global_init(kEverything) != 0)
      l.global_init = nullptr;
    return l;
  }
};

Curl::Curl(void* handle) : handle_(handle, Library::get()->easy_cleanup) {}

Result<Curl> Curl::open(long stall, const std::string& certificates) {
  const Library* const l = Library::get();
  void* const handle = l ? l->easy_init() : nullptr;
  if (!handle)
    return bad_input(
        "nothing can be downloaded without libcurl (libcurl.so.4): install the package libcurl4 (a "
        "build without INVAR_LIBRARIES downloads nothing)");
  l->easy_setopt(handle, kNoSignal, 1L);  // no SIGALRM: the caller may have threads
  l->easy_setopt(handle, kProtocols, kHttpAndHttps);
  l->easy_setopt(handle, kConnectTimeout, kConnectSeconds);
  l->easy_setopt(handle, kLowSpeedLimit, kLeastRate);
  l->easy_setopt(handle, kLowSpeedTime, stall);
  l->easy_setopt(handle, kUserAgent, "invar/" INVAR_VERSION);
  if (!certificates.empty()) l->easy_setopt(handle, kCertificates, certificates.c_str());
  return Curl(handle);
}

namespace {

struct Exchange {
  Response response;
  const Curl::Body& body;
};

size_t take_header(char* data, size_t, size_t bytes, void* user) {
  Response& r = static_cast<Exchange*>(user)->response;
  std::string_view line(data, bytes);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' '))
    line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // another one: behind a proxy's, or behind 100 Continue
    r.headers.clear();
    const size_t space = line.find(' ');
    r.status = 0;
    for (size_t i = space + 1; space != line.npos && i < line.size() && i <= space + 3; ++i)
      if (line[i] >= '0' && line[i] <= '9') r.status = 10 * r.status + (line[i] - '0');
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return bytes;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ', colon + 1)));
  r.headers[name] = line;
  return bytes;
}

size_t take_body(char* data, size_t, size_t bytes, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (exchange.body(exchange.response, {data, bytes})) return bytes;
  exchange.response.refused = true;
  return 0;
}

}  // namespace

Response Curl::exchange(const Request& request, const Body& body) {
  const Library& l = *Library::get();
  void* const handle = handle_.get();
  Exchange exchange{{}, body};
  char why[kErrorSize] = "";
  StringList* headers = nullptr;
  for (const std::string& header : request.headers) headers = l.slist_append(headers, header.c_str());
  l.easy_setopt(handle, kUrl, request.url.c_str());
  l.easy_setopt(handle, kHttpHeader, headers);
  if (request.head) {
    l.easy_setopt(handle, kNoBody, 1L);
  } else if (request.post) {
    l.easy_setopt(handle, kPost, 1L);
    l.easy_setopt(handle, kPostFields, request.post->data());
    l.easy_setopt(handle, kPostFieldSize, static_cast<int64_t>(request.post->size()));
  } else {
    l.easy_setopt(handle, kHttpGet, 1L);  // which undoes kNoBody
  }
  l.easy_setopt(handle, kErrorBuffer, why);
  l.easy_setopt(handle, kHeaderFunction, take_header);
  l.easy_setopt(handle, kHeaderData, &exchange);
  l.easy_setopt(handle, kWriteFunction, take_body);
  l.easy_setopt(handle, kWriteData, &exchange);
  const int error = l.easy_perform(handle);
  Response& r = exchange.response;
  long status = 0;
  const char* redirect = nullptr;
  l.easy_getinfo(handle, kResponseCode, &status);
  if (l.easy_getinfo(handle, kRedirectUrl, &redirect) == 0 && redirect) r.redirect = redirect;
  r.status = static_cast<int>(status);
  if (error) r.failure = why[0] ? why : l.easy_strerror(error);
  r.unreachable = error == kNoProxy || error == kNoHost || error == kNoConnection ||
                  error == kWrongCertificate || error == kNoCertificates;
  r.refused = r.refused && error == kWriteError;
  l.easy_setopt(handle, kErrorBuffer, nullptr);
  l.easy_setopt(handle, kHttpHeader, nullptr);
  l.slist_free_all(headers);
  return std::move(r);
}

}  // namespace invar::hub
