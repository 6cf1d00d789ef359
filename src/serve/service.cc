#include "serve/service.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file/file.h"
#include "base/hash/random.h"

namespace invar::serve {

using json::Value;

namespace {

std::string label_of(const http::Request& request) {
  const std::string_view given = request.header("x-request-id");
  const bool plain = !given.empty() && given.size() <= 128 &&
                     std::ranges::all_of(given, [](char c) { return c > ' ' && c < 0x7f; });
  if (plain) return std::string(given);
  const auto bytes = random_bytes();
  return bytes ? "req-" + to_hex(*bytes).substr(0, 24) : "req-0";
}

// The number of the key that is equal, from 1 on; 0: none is. Every key is compared, whole, so that
// the time says nothing.
uint64_t equal_key(const std::vector<Digest>& keys, const Digest& given) {
  uint64_t found = 0;
  for (size_t n = 0; n < keys.size(); ++n) {
    unsigned different = 0;
    for (size_t i = 0; i < given.size(); ++i) different |= static_cast<unsigned>(keys[n][i] ^ given[i]);
    found |= (n + 1) & (uint64_t{0} - static_cast<uint64_t>(different == 0));
  }
  return found;
}

}  // namespace

Service::Service(generate::Engine& engine, ServiceOptions options)
    : engine_(engine),
      model_(engine.model()),
      options_(std::move(options)),
      name_(model_.location.name),
      generator_(engine, options_.queue, text_,
                 [this](const Error& error) {
                   failed_ = true;
                   std::function<void(const Error&)> tell;
                   {
                     const std::lock_guard lock(mutex_);
                     tell = on_failure_;
                   }
                   if (tell) tell(error);
                 }),
      preparation_(2) {
  const receipt::Receipt& of = model_.described;
  fingerprint_ = "fp_" + to_hex(sha256(to_hex(of.program) + to_hex(of.weights) + of.numerics)).substr(0, 32);
}

Service::~Service() {
  preparation_.stop(), generator_.stop(), text_.stop(), store_.stop();
}

Result<std::unique_ptr<Service>> Service::make(generate::Engine& engine, ServiceOptions options) {
  std::error_code ec;
  std::filesystem::create_directories(options.receipts, ec);
  if (ec) return bad_input(options.receipts + ": no folder for receipts: " + ec.message());
  std::vector<Digest> keys;
  if (!options.api_keys.empty()) {
    INVAR_TRY(const std::string text, read_file(options.api_keys));
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty() && line[0] != '#') keys.push_back(sha256(line));
      at = end + 1;
    }
    if (keys.empty()) return bad_input(options.api_keys + ": no key in it: one a line");
  }
  std::unique_ptr<Service> service(new Service(engine, std::move(options)));
  service->keys_ = std::move(keys);
  return service;
}

std::string Service::error_body(int status, const std::string& message) {
  return json::dump(json_of(Problem{status, message}));
}

void Service::drain() {
  draining_ = true;
}

bool Service::wait_idle(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, most, [this] { return open_ == 0; });
}

void Service::end_all() {
  generator_.end_all({Code::internal, "the server is stopping: ask again later"});
}

void Service::on_failure(std::function<void(const Error&)> f) {
  const std::lock_guard lock(mutex_);
  on_failure_ = std::move(f);
}

void Service::count_connections(std::function<size_t()> f) {
  const std::lock_guard lock(mutex_);
  connections_ = std::move(f);
}

std::optional<Problem> Service::closed() const {
  if (failed_) return Problem{503, "nothing can be computed any more: see the log of the server"};
  if (draining_) return Problem{503, "the server is stopping: ask again later"};
  return std::nullopt;
}

// --- routes --------------------------------------------------------------------------------------

bool Service::authorized(const http::Request& request) const {
  if (keys_.empty() || request.path == "/health" || request.path == "/ready" || request.path == "/ping")
    return true;
  return client_of(request) > 0;
}

uint64_t Service::client_of(const http::Request& request) const {
  const std::string_view given = request.header("authorization");
  constexpr std::string_view bearer = "Bearer ";
  return given.starts_with(bearer) ? equal_key(keys_, sha256(given.substr(bearer.size()))) : 0;
}

void Service::respond(Asked& asked, int status, const Value& body, http::Headers more) {
  more.insert(more.end(), asked.headers.begin(), asked.headers.end());
  more.push_back({"content-type", "application/json"});
  metrics_.count_status(status);
  asked.responder.answer(status, std::move(more), json::dump(body));
}

void Service::refuse(Asked& asked, const Problem& problem) {
  http::Headers more;
  if (problem.status == 429 || problem.status == 503) more.push_back({"retry-after", "1"});
  if (problem.status == 503) more.push_back({"x-should-retry", "true"});
  if (problem.status == 500) more.push_back({"x-should-retry", "false"});
  if (problem.status == 401) more.push_back({"www-authenticate", "Bearer"});
  respond(asked, problem.status, json_of(problem), std::move(more));
}

void Service::handle(http::Request request, http::Responder responder) {
  const std::string label = label_of(request);
  Asked asked{std::move(request), std::move(responder), {{"x-request-id", label}}};
  if (!authorized(asked.request))
    return refuse(asked, {401, "an API key is needed: Authorization: Bearer KEY", "", "invalid_api_key"});
  route(std::move(asked));
}

void Service::route(Asked asked) {
  using Do = void (*)(Service&, Asked&);
  struct Route {
    std::string_view method, path;  // a path that ends with / has more
    bool waits;                     // not on the thread of the sockets
    Do run;
  };
  static constexpr Route routes[] = {
      {"GET", "/health", false,
       [](Service& s, Asked& a) {
         s.respond(a, 200, {{"status", "ok"}});
       }},
      {"GET", "/ping", false,
       [](Service& s, Asked& a) {
         s.respond(a, 200, {{"status", "ok"}});
       }},
      {"GET", "/ready", false,
       [](Service& s, Asked& a) {
         if (const auto problem = s.closed()) return s.refuse(a, *problem);
         s.respond(a, 200, {{"status", "ready"}});
       }},
      {"GET", "/version", false,
       [](Service& s, Asked& a) {
         s.respond(a, 200, {{"version", INVAR_VERSION}});
       }},
      {"GET", "/v1/models", false,
       [](Service& s, Asked& a) {
         s.respond(a, 200, {{"object", "list"}, {"data", json::list({s.model_json()})}});
       }},
      {"GET", "/v1/models/", false,
       [](Service& s, Asked& a) {
         const std::string asked_for = a.request.path.substr(std::string_view("/v1/models/").size());
         if (asked_for != s.name_)
           return s.refuse(a, {404, "no model " + asked_for + " here: " + s.name_, "", "model_not_found"});
         s.respond(a, 200, s.model_json());
       }},
      {"GET", "/metrics", false,
       [](Service& s, Asked& a) {
         std::function<size_t()> connections;
         {
           const std::lock_guard lock(s.mutex_);
           connections = s.connections_;
         }
         http::Headers headers = a.headers;
         headers.push_back({"content-type", "text/plain; version=0.0.4; charset=utf-8"});
         a.responder.answer(200, std::move(headers),
                            s.metrics_.print(s.generator_.load(), connections ? connections() : 0));
       }},
      {"GET", "/tokenizer_info", true, [](Service& s, Asked& a) { s.respond(a, 200, s.tokenizer_info()); }},
      {"POST", "/tokenize", true, [](Service& s, Asked& a) { s.tokenize(a); }},
      {"POST", "/detokenize", true, [](Service& s, Asked& a) { s.detokenize(a); }},
      {"POST", "/v1/chat/completions", true, [](Service& s, Asked& a) { s.prepare(a, true); }},
      {"POST", "/v1/completions", true, [](Service& s, Asked& a) { s.prepare(a, false); }},
      {"POST", "/v1/receipts/verify", true, [](Service& s, Asked& a) { s.replay(a); }},
      {"GET", "/v1/receipts/", true, [](Service& s, Asked& a) { s.receipt(a); }},
  };
  const std::string& path = asked.request.path;
  const std::string_view method = asked.request.method == "HEAD" ? "GET" : asked.request.method;
  std::string allowed;
  for (const Route& route : routes) {
    const bool here = route.path.ends_with('/')
                          ? path.starts_with(route.path) && path.size() > route.path.size()
                          : path == route.path;
    if (!here) continue;
    if (route.method != method) {
      if (allowed.empty()) allowed = route.method;
      continue;
    }
    const std::string_view type = asked.request.header("content-type");
    if (method == "POST" && !type.starts_with("application/json"))
      return refuse(asked, {415, "the body is JSON: Content-Type: application/json"});
    if (!route.waits) return route.run(*this, asked);
    preparation_.post(
        [this, run = route.run, shared = std::make_shared<Asked>(std::move(asked))] { run(*this, *shared); });
    return;
  }
  if (!allowed.empty())
    return respond(asked, 405, json_of(Problem{405, path + " takes " + allowed}), {{"allow", allowed}});
  refuse(asked, {404, path + ": nothing is here: docs/guide/serve.md lists what is"});
}

Value Service::model_json() const {
  const receipt::Receipt& of = model_.described;
  return {{"id", name_},
          {"object", "model"},
          {"created", 0},
          {"owned_by", "invar"},
          {"max_model_len", engine_.positions()},
          {"program", to_hex(of.program)},
          {"weights", to_hex(of.weights)},
          {"numerics", of.numerics},
          {"profile", of.profile},
          {"revision", of.revision}};
}

}  // namespace invar::serve
