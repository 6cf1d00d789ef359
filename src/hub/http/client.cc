#include "hub/http/client.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text/decimal.h"
#include "hub/environment.h"

namespace invar::hub {
namespace {

constexpr int kAttempts = 6;  // without anything new; the pauses between them are 0.5 s, 1 s, ...
constexpr int kRedirects = 10;
constexpr uint64_t kLongestPause = 120;      // seconds that a Retry-After may ask for
constexpr size_t kMostOfARefusal = 1 << 16;  // bytes of a body that nobody reads

// Scheme, host and port, as the URL spells them.
std::string_view origin_of(std::string_view url) {
  const size_t scheme = url.find("://");
  return scheme == url.npos ? url : url.substr(0, url.find_first_of("/?#", scheme + 3));
}

std::string header(const Response& r, const char* name) {
  const auto found = r.headers.find(name);
  return found == r.headers.end() ? "" : found->second;
}

bool ok(const Response& r) {
  return r.status / 100 == 2 && r.failure.empty();
}

class Text : public Receiver {
 public:
  explicit Text(size_t most) : most_(most) {}
  uint64_t held() const override { return 0; }
  Status begin(const Response&) override { return text.clear(), Status(); }
  Status take(std::string_view piece) override {
    if (text.size() + piece.size() > most_)
      return bad_input("the answer has more than " + std::to_string(most_) + " bytes");
    text += piece;
    return {};
  }
  Result<bool> finish() override { return true; }
  std::string text;

 private:
  size_t most_;
};

}  // namespace

Result<Client> Client::open(const ModelName& model) {
  INVAR_TRY(std::string url, hub::endpoint());
  INVAR_TRY(std::string word, token());
  INVAR_TRY(const long stall, stall_timeout());
  INVAR_TRY(Curl curl, Curl::open(stall, certificates()));
  return Client(std::move(curl), model, std::move(url), std::move(word));
}

Error Client::failure(const std::string& what) const {
  return no_model(model_.repository, what);
}

// The token goes to the endpoint alone: redirects lead to storage servers of others.
Response Client::follow(Request request, const Curl::Body& body) {
  const std::vector<std::string> headers = request.headers;
  of_hub_.clear();
  for (int i = 0;; ++i) {
    request.headers = headers;
    const bool at_hub = origin_of(request.url) == origin_of(endpoint_);
    if (at_hub && !token_.empty()) request.headers.push_back("Authorization: Bearer " + token_);
    Response r = curl_.exchange(request, body);
    connected_ = connected_ || r.status != 0;
    if (at_hub) of_hub_ = r.headers;
    const bool elsewhere = r.status / 100 == 3 && !r.redirect.empty() && r.failure.empty();
    const bool stays = elsewhere && origin_of(r.redirect) == origin_of(endpoint_);
    if (!elsewhere || (request.head && !stays)) return with_hub_headers(std::move(r));
    if (i == kRedirects) r.failure = "more than " + std::to_string(kRedirects) + " redirects";
    if (request.url.starts_with("https://") && !r.redirect.starts_with("https://"))
      r.failure = "a redirect from https:// to " + std::string(origin_of(r.redirect)) + ", which is refused";
    if (!r.redirect.starts_with("https://") && !r.redirect.starts_with("http://"))
      r.failure = "a redirect to " + r.redirect.substr(0, 200) + ", which is refused";
    if (!r.failure.empty()) return r.unreachable = true, r;
    request.url = r.redirect;
  }
}

Response Client::with_hub_headers(Response r) const {
  for (const auto& [name, value] : of_hub_)
    if (name.starts_with("x-")) r.headers.emplace(name, value);
  return r;
}

bool Client::may_succeed_later(const Response& r) const {
  if (!r.failure.empty()) return !r.unreachable || (connected_ && r.status == 0);
  return r.status == 408 || r.status == 429 || (r.status >= 500 && r.status <= 504 && r.status != 501);
}

Status Client::pause(const Response& r, int attempt) const {
  const std::string wanted = header(r, "retry-after");
  const auto seconds = parse_whole(wanted, 0, 1 << 30);
  if (seconds && *seconds > kLongestPause)
    return failure(endpoint_ + " asks to wait " + wanted + " seconds: try again then");
  std::this_thread::sleep_for(seconds ? std::chrono::milliseconds(1000 * *seconds)
                                      : std::chrono::milliseconds(500) * (1 << (attempt - 1)));
  return {};
}

Status Client::get(const std::string& url, Receiver& receiver) {
  uint64_t most = receiver.held();
  for (int attempt = 1;; ++attempt) {
    Request request{url, {}};
    if (const uint64_t held = receiver.held())
      request.headers.push_back("Range: bytes=" + std::to_string(held) + "-");
    Status taken;
    bool begun = false;
    size_t refused = 0;
    const uint64_t before = receiver.held();
    const auto start = std::chrono::steady_clock::now();
    const Response r = follow(request, [&](const Response& answer, std::string_view piece) {
      if (answer.status / 100 != 2) return (refused += piece.size()) <= kMostOfARefusal;
      if (!begun) taken = receiver.begin(with_hub_headers(answer));
      begun = true;
      if (taken) taken = receiver.take(piece);
      return static_cast<bool>(taken);
    });
    if (!taken) return failure(url + ": " + taken.error().message);
    bool again = may_succeed_later(r);
    if (ok(r)) {
      Result<bool> whole = receiver.finish();
      if (!whole) return failure(url + ": " + whole.error().message);
      if (*whole) return {};
      again = true;
    }
    if (!again) return refusal(r, url);
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    const auto least = kLeastRate * std::max<int64_t>(took.count(), 1000) / 1000;
    const bool more = receiver.held() > most && receiver.held() - before >= static_cast<uint64_t>(least);
    most = std::max(most, receiver.held());
    if (more) attempt = 0;
    if (attempt == kAttempts) {
      return refusal(r, url).around("", " (after " + std::to_string(kAttempts) + " attempts)");
    }
    if (!more) {
      INVAR_CHECK_OK(pause(r, attempt));
    }
  }
}

Result<std::string> Client::get_text(const std::string& url, size_t most) {
  Text text(most);
  INVAR_CHECK_OK(get(url, text));
  return std::move(text.text);
}

Result<Response> Client::head(const std::string& url) {
  for (int attempt = 1;; ++attempt) {
    Response r = follow({url, {}, true}, [](const Response&, std::string_view) { return true; });
    if (r.failure.empty() && r.status >= 200 && r.status < 400) return r;
    if (!may_succeed_later(r) || attempt == kAttempts) return refusal(r, url);
    INVAR_CHECK_OK(pause(r, attempt));
  }
}

// X-Error-Code is the hub's. Without a token the hub answers 401 for a model that does not exist,
// too: it does not tell which names are taken.
Error Client::refusal(const Response& r, const std::string& url) const {
  const std::string code = header(r, "x-error-code");
  const std::string page = endpoint_ + "/" + model_.repository;
  if (r.unreachable && r.status == 0)
    return failure("not a folder here, not whole in the cache, and " + endpoint_ +
                   " cannot be reached: " + r.failure);
  if (!r.failure.empty()) return failure(url + ": " + r.failure);
  if (code == "GatedRepo")
    return failure("the hub gives it only to those who accepted its licence: do that at " + page +
                   (token_.empty() ? ", then set HF_TOKEN to a token of that account"
                                   : ", with the account of the token in use"));
  if (code == "RevisionNotFound")
    return failure("the hub has no revision " + model_.revision + " of it; " + page +
                   " shows which there are");
  if (code == "RepoNotFound" ||
      (code.empty() && r.status / 100 == 4 && url.find("/api/models/") != url.npos &&
       (r.status == 401 || r.status == 403 || r.status == 404)))
    return failure("no folder of this name is here, and " + endpoint_ +
                   " has no such model, or it is private: check the name" +
                   (token_.empty() ? ", or set HF_TOKEN to a token that may read it"
                                   : "; the token in use may not read it"));
  if (r.status == 401 || r.status == 403)
    return failure(
        url + ": HTTP status " + std::to_string(r.status) + ", no permission: " +
        (token_.empty() ? "set HF_TOKEN to a token that may read it" : "the token in use may not read it"));
  std::string said = header(r, "x-error-message").substr(0, 200);
  if (!said.empty()) said = ", the hub says: " + said;
  return failure(url + ": HTTP status " + std::to_string(r.status) + said);
}

}  // namespace invar::hub
