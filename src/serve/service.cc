#include "serve/service.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/hash/random_bytes.h"
#include "base/text/display.h"

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

// The description of all requests (OpenAPI).
constexpr std::string_view kOpenapi =
#include "options/openapi.inc"
    ;
// The page at /, and what it may do.
constexpr std::string_view kPage =
#include "options/page.inc"
    ;
constexpr std::string_view kPagePolicy =
#include "options/page_policy.inc"
    ;
// What needs no key.
constexpr std::string_view kOpenPaths[] = {
#include "options/open_paths.inc"
};

// Without regard to the case of letters, as schemes and types of content are read (RFC 9110).
bool begins_with(std::string_view text, std::string_view lower) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(text.substr(0, lower.size()), lower, {}, small);
}

// Values of a body of JSON: each takes some hundred bytes, and time of a thread that others wait
// for.
constexpr size_t kMostValues = size_t{1} << 20;

// Counts what begins a value, outside of texts, before anything is read.
bool has_too_many_values(std::string_view json) {
  size_t count = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_text = !in_text;
    if (in_text && c == '\\') ++i;
    if (!in_text) count += c == ',' || c == '[' || c == '{';
  }
  return count > kMostValues;
}

// A part of a path as it was before the client escaped it: %2F is a slash.
std::string unescaped(std::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    unsigned byte = 0;
    const char *const digits = part.data() + i + 1, *const end = digits + 2;
    if (part[i] == '%' && i + 2 < part.size() && std::from_chars(digits, end, byte, 16).ptr == end)
      text += static_cast<char>(byte), i += 2;
    else
      text += part[i];
  }
  return text;
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

Service::Service(const Models& models, ServiceOptions options)
    : options_(std::move(options)), preparation_(2) {
  const auto failed = [this](const Error& error) {
    failed_ = true;
    std::function<void(const Error&)> tell;
    {
      const std::lock_guard lock(mutex_);
      tell = on_failure_;
    }
    if (tell) tell(error);
  };
  for (generate::Engine* engine : models.engines)
    models_.push_back(std::make_unique<LanguageModel>(*engine, options_.queue, text_, failed));
  for (OpenedEncoder* encoder : models.encoders) encoders_.push_back(std::make_unique<TextEncoder>(*encoder));
}

Service::~Service() {
  preparation_.stop(), recordings_.stop();
  for (const auto& model : models_) model->generator.stop();
  for (const auto& encoder : encoders_) encoder->thread.stop();
  text_.stop(), store_.stop();
}

Result<std::unique_ptr<Service>> Service::make(generate::Engine& engine, ServiceOptions options) {
  return make(Models{{&engine}, {}}, std::move(options));
}

Result<std::unique_ptr<Service>> Service::make(const Models& models, ServiceOptions options) {
  std::vector<std::string> names = models.names();
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    return bad_input("--model-name: two models are called " + *twice +
                     ": requests could not tell them apart");
  INVAR_TRY(auto archive, Archive::open(options.archive, options.log));
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
  std::unique_ptr<Service> service(new Service(models, std::move(options)));
  service->keys_ = std::move(keys);
  service->archive_ = std::move(archive);
  return service;
}

std::string Service::error_body(int status, const std::string& message) {
  return json::dump(json_of(Problem{status, message}));
}

store::Record Service::new_record(const http::Headers& headers, const std::string& model) const {
  store::Record record;
  const auto bytes = random_bytes();
  record.answer = bytes ? to_hex(*bytes).substr(0, 24) : "0";
  for (const auto& [name, value] : headers)
    if (name == "x-request-id") record.request = value;
  record.model = model;
  return record;
}

void Service::keep(std::vector<ToKeep> answers) {
  metrics_.receipts += answers.size();
  {
    const std::lock_guard lock(mutex_);
    std::ranges::move(answers, std::back_inserter(to_keep_));
  }
  store_.post([this] { keep_waiting(); });
}

void Service::keep_waiting() {
  std::vector<ToKeep> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(to_keep_);
  }
  // No larger: the first are told of it soon.
  constexpr size_t kTogether = 64;
  for (size_t begin = 0; begin < now.size(); begin += kTogether) {
    const auto part = std::span(now).subspan(begin, std::min(kTogether, now.size() - begin));
    std::vector<Archive::Answered> answers;
    for (const ToKeep& one : part) answers.push_back(one.answered);
    const Status kept = archive_->keep(std::move(answers));
    for (const auto& [answered, repeated, done] : part) {
      const store::Record& record = answered.record;
      if (kept)
        log({{"event", "answer"},
             {"request_id", record.request},
             {"choice", record.choice},
             {"model", record.model},
             {"receipt", record.receipt},
             {"finish_reason", record.finish_reason},
             {"prompt_tokens", record.prompt_tokens},
             {"completion_tokens", record.completion_tokens},
             {"from_store", repeated}});
      done(kept);
    }
  }
}

void Service::drain() {
  draining_ = true;
}

bool Service::wait_idle(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, most, [this] { return open_ == 0; });
}

void Service::end_all() {
  ended_ = true;
  for (const auto& model : models_)
    model->generator.end_all({Code::internal, "the server is stopping: ask again later"});
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
  if (!archive_->takes()) return Problem{503, "receipts cannot be kept now: ask again later"};
  return std::nullopt;
}

// --- routes --------------------------------------------------------------------------------------

bool Service::authorized(const http::Request& request) const {
  if (keys_.empty()) return true;
  if (std::ranges::find(kOpenPaths, request.path) != std::end(kOpenPaths)) return true;
  return client_of(request) > 0;
}

uint64_t Service::client_of(const http::Request& request) const {
  if (const auto key = request.header("x-api-key"); !key.empty()) return equal_key(keys_, sha256(key));
  const std::string_view given = request.header("authorization");
  constexpr std::string_view bearer = "bearer ";
  return begins_with(given, bearer) ? equal_key(keys_, sha256(given.substr(bearer.size()))) : 0;
}

void Service::respond(Asked& asked, int status, const Value& body, http::Headers more) {
  more.insert(more.end(), asked.headers.begin(), asked.headers.end());
  more.push_back({"content-type", "application/json"});
  metrics_.count_status(status);
  asked.responder.answer(status, std::move(more), json::dump(body));
}

void Service::refuse(Asked& asked, const Problem& problem) {
  refuse(asked.responder, asked.headers, problem, error_body_of(problem, asked.request.path));
}

// Clients ask again after 429 and 5xx, unless a header tells otherwise.
void Service::refuse(http::Responder& responder, http::Headers headers, const Problem& problem,
                     const Value& body) {
  const int status = problem.status;
  if (status == 429 || status == 503) headers.push_back({"retry-after", "1"});
  if (status >= 500) headers.push_back({"x-should-retry", status == 503 ? "true" : "false"});
  if (status == 401) headers.push_back({"www-authenticate", "Bearer"});
  headers.push_back({"content-type", "application/json"});
  metrics_.count_status(status);
  responder.answer(status, std::move(headers), json::dump(body));
}

void Service::begin_stream(http::Responder& responder, http::Headers headers) {
  headers.insert(headers.end(), {{"content-type", "text/event-stream; charset=utf-8"},
                                 {"cache-control", "no-cache"},
                                 {"x-accel-buffering", "no"}});
  metrics_.count_status(200);
  responder.begin(200, std::move(headers), ": ping\n\n");
}

void Service::handle(http::Request request, http::Responder responder) {
  const std::string label = label_of(request);
  if (options_.log)
    responder.on_end([this, label, method = request.method, path = request.path,
                      begin = std::chrono::steady_clock::now()](const http::Responder::End& end) {
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      log({{"event", "request"},
           {"request_id", label},
           {"method", method},
           {"path", path},
           {"status", end.status},
           {"complete", end.complete},
           {"bytes", end.bytes},
           {"seconds", seconds.count()}});
    });
  Asked asked{std::move(request), std::move(responder), {{"x-request-id", label}}};
  if (asked.request.preflight) return preflight(asked);
  if (!authorized(asked.request))
    return refuse(asked, {401, "an API key is needed: Authorization: Bearer KEY", "", "invalid_api_key"});
  route(std::move(asked));
}

// A browser sends it without a key. The page may send what it wants to, and hears then what is
// wrong.
void Service::preflight(Asked& a) {
  http::Headers headers = a.headers;
  const auto allow = [&](const char* name, const char* asked_for) {
    if (const auto value = a.request.header(asked_for); !value.empty())
      headers.emplace_back(name, std::string(value));
  };
  allow("access-control-allow-methods", "access-control-request-method");
  allow("access-control-allow-headers", "access-control-request-headers");
  headers.push_back({"access-control-max-age", "600"});
  metrics_.count_status(204);
  a.responder.answer(204, std::move(headers), "");
}

void Service::route(Asked asked) {
  using Do = void (*)(Service&, Asked&);
  struct Route {
    std::string_view method, path;  // a path that ends with / has more
    bool waits;                     // not on the thread of the sockets
    bool form;                      // the body sends a file
    Do run;
  };
  static constexpr Route routes[] = {
#include "options/routes.inc"
  };
  const std::string& path = asked.request.path;
  const std::string_view method = asked.request.method == "HEAD" ? "GET" : asked.request.method;
  std::string allowed;
  for (const Route& route : routes) {
    const bool more = route.path.size() > 1 && route.path.ends_with('/');
    // A path that is a row of its own is no id.
    const bool here = more ? path.starts_with(route.path) && path.size() > route.path.size() &&
                                 std::ranges::find(routes, path, &Route::path) == std::end(routes)
                           : path == route.path;
    if (!here) continue;
    if (route.method != method) {
      allowed.append(allowed.empty() ? "" : ", ").append(route.method);
      continue;
    }
    const std::string_view type = asked.request.header("content-type");
    if (route.form && !begins_with(type, "multipart/form-data"))
      return refuse(asked, {415, "the body is a form with a file: Content-Type: multipart/form-data"});
    if (method == "POST" && !route.form && !begins_with(type, "application/json"))
      return refuse(asked, {415, "the body is JSON: Content-Type: application/json"});
    if (!route.waits) return route.run(*this, asked);
    preparation_.post([this, run = route.run, json = method == "POST" && !route.form,
                       shared = std::make_shared<Asked>(std::move(asked))] {
      if (json && has_too_many_values(shared->request.body))
        return refuse(*shared,
                      {400, "the body: it has more than " + std::to_string(kMostValues) + " values"});
      run(*this, *shared);
    });
    return;
  }
  if (!allowed.empty())
    return respond(asked, 405, json_of(Problem{405, path + " takes " + allowed}), {{"allow", allowed}});
  refuse(asked, {404, path + ": nothing is here: docs/guide/serve.md lists what is"});
}

void Service::ready(Asked& a) {
  if (const auto problem = closed()) return refuse(a, *problem);
  respond(a, 200, {{"status", "ready"}});
}

void Service::model(Asked& a) {
  const std::string asked_for = unescaped(a.request.path.substr(std::string_view("/v1/models/").size()));
  for (const Value& model : models_json().items)
    if (model.get("id").text == asked_for) return respond(a, 200, model);
  refuse(a, no_model(asked_for));
}

void Service::metrics(Asked& a) {
  std::function<size_t()> connections;
  {
    const std::lock_guard lock(mutex_);
    connections = connections_;
  }
  http::Headers headers = a.headers;
  headers.push_back({"content-type", "text/plain; version=0.0.4; charset=utf-8"});
  a.responder.answer(200, std::move(headers),
                     metrics_.print(load(), archive_->load(), connections ? connections() : 0));
}

void Service::openapi(Asked& a) {
  http::Headers headers = a.headers;
  headers.push_back({"content-type", "application/json"});
  a.responder.answer(200, std::move(headers), std::string(kOpenapi));
}

void Service::page(Asked& a) {
  http::Headers headers = a.headers;
  headers.insert(headers.end(), {{"content-type", "text/html; charset=utf-8"},
                                 {"content-security-policy", std::string(kPagePolicy)},
                                 {"x-content-type-options", "nosniff"},
                                 {"referrer-policy", "no-referrer"},
                                 {"cache-control", "no-cache"}});
  a.responder.answer(200, std::move(headers), std::string(kPage));
}

Value Service::models_json() const {
  Value all = Value::array;
  for (const auto& model : models_) all.add(model->describe());
  for (const auto& encoder : encoders_) all.add(encoder->describe());
  return all;
}

Generator::Load Service::load() const {
  Generator::Load sum;
  for (const auto& model : models_) {
    const Generator::Load one = model->generator.load();
    sum.running += one.running, sum.waiting += one.waiting;
    sum.engine.preemptions += one.engine.preemptions;
    sum.engine.prefix_queries += one.engine.prefix_queries, sum.engine.prefix_hits += one.engine.prefix_hits;
    sum.engine.kv_cache_usage = std::max(sum.engine.kv_cache_usage, one.engine.kv_cache_usage);
  }
  for (const auto& encoder : encoders_) sum.waiting += encoder->waiting;
  return sum;
}

Problem Service::no_model(const std::string& name) const {
  std::string known;
  for (const auto& model : models_) known += (known.empty() ? "" : ", ") + model->name;
  for (const auto& encoder : encoders_) known += (known.empty() ? "" : ", ") + encoder->opened.name;
  return {404, "model: no model " + excerpt(name) + " here: " + known, "model", "model_not_found"};
}

Outcome<LanguageModel*> Service::language_model(const std::string& name, bool of_recordings) const {
  for (const auto& model : models_)
    if (name.empty() ? model->hears() == of_recordings : name == model->name) {
      if (model->hears() == of_recordings) return model.get();
      return Problem{400,
                     "model: " + name +
                         (of_recordings ? " reads text, and hears no recording"
                                        : " hears recordings, and reads no text: ask "
                                          "/v1/audio/transcriptions"),
                     "model"};
    }
  for (const auto& encoder : encoders_)
    if (name.empty() || name == encoder->opened.name)
      return Problem{400, "model: " + encoder->opened.name + " is an encoder, which writes no text", "model"};
  if (name.empty())
    return Problem{
        400, std::string("model: this server has no model that ") + (of_recordings ? "hears" : "writes text"),
        "model"};
  return no_model(name);
}

Outcome<TextEncoder*> Service::text_encoder(const std::string& name, generate::EncoderKind kind) const {
  const char* what = kind == generate::EncoderKind::scores ? "a reranker" : "a model of embeddings";
  for (const auto& encoder : encoders_)
    if (encoder->opened.kind == kind && (name.empty() || name == encoder->opened.name)) return encoder.get();
  for (const Value& model : models_json().items)
    if (model.get("id").text == name) return Problem{400, "model: " + name + " is not " + what, "model"};
  if (name.empty()) return Problem{400, std::string("model: this server has not ") + what, "model"};
  return no_model(name);
}

}  // namespace invar::serve
