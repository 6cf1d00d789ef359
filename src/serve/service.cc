#include "serve/service.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file/file.h"
#include "base/hash/random.h"
#include "base/text/utf8.h"
#include "serve/replay.h"
#include "serve/reply.h"

namespace invar::serve {

using json::Value;

struct Service::Asked {
  http::Request request;
  http::Responder responder;
  http::Headers headers;  // that every answer to it has
};

namespace {

// OpenAI's protocol says so, and clients count on it.
constexpr int64_t kCompletionTokens = 16;

std::string label_of(const http::Request& request) {
  const std::string_view given = request.header("x-request-id");
  const bool plain = !given.empty() && given.size() <= 128 &&
                     std::ranges::all_of(given, [](char c) { return c > ' ' && c < 0x7f; });
  if (plain) return std::string(given);
  const auto bytes = random_bytes();
  return bytes ? "req-" + to_hex(*bytes).substr(0, 24) : "req-0";
}

uint64_t random_seed() {  // of 48 bits, which every client's numbers hold
  const auto bytes = random_bytes();
  uint64_t seed = 0;
  for (int i = 0; i < 6 && bytes; ++i) seed = seed << 8 | (*bytes)[static_cast<size_t>(i)];
  return seed;
}

Problem problem_of_request(const Error& e) {
  if (e.code == Code::not_covered) return {400, e.message, "", "not_covered"};
  if (e.code == Code::bad_input) return {400, e.message};
  return {500, e.message};
}

Problem too_long(int64_t positions, int64_t tokens, const std::string& of_answer) {
  return {400,
          "the context of this server is " + std::to_string(positions) + " tokens; the prompt has " +
              std::to_string(tokens) + of_answer + ": shorten it",
          "", "context_length_exceeded"};
}

// Every key is compared, whole, so that the time says nothing.
bool any_equal(const std::vector<Digest>& keys, const Digest& given) {
  unsigned found = 0;
  for (const Digest& key : keys) {
    unsigned different = 0;
    for (size_t i = 0; i < key.size(); ++i) different |= static_cast<unsigned>(key[i] ^ given[i]);
    found |= static_cast<unsigned>(different == 0);
  }
  return found != 0;
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
  std::string_view given = request.header("authorization");
  constexpr std::string_view bearer = "Bearer ";
  if (!given.starts_with(bearer)) return false;
  return any_equal(keys_, sha256(given.substr(bearer.size())));
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

// --- requests of answers -------------------------------------------------------------------------

Outcome<generate::Request> Service::request_of(
    const Call& call, generate::Prompt prompt, std::optional<std::vector<int32_t>> tokens,
    const std::shared_ptr<const generate::RequestSettings>& settings) const {
  if (!tokens) {
    auto encoded = generate::Request::encode(model_, prompt, "the prompt");
    if (!encoded) return problem_of_request(encoded.error());
    tokens = *std::move(encoded);
  }
  const int64_t positions = engine_.positions(), n = static_cast<int64_t>(tokens->size());
  if (n >= positions) return too_long(positions, n, "");
  if (const auto most = call.sampling.max_new_tokens; most && *most > positions - n)
    return too_long(positions, n, ", and " + std::to_string(*most) + " new ones are asked for");
  auto made = generate::Request::make(model_, std::move(prompt), *std::move(tokens), settings, "the prompt");
  if (!made) return problem_of_request(made.error());
  made->max_new_tokens = std::min(made->max_new_tokens, positions - n);
  return *std::move(made);
}

// The text that has exactly these ids: a receipt binds a text.
Outcome<std::string> Service::text_of(const std::vector<int32_t>& ids) const {
  const prompt::Tokenizer& tokenizer = model_.folder.tokenizer;
  for (const int32_t id : ids)
    if (id >= tokenizer.vocab_size())
      return Problem{400,
                     "prompt: id " + std::to_string(id) + " is not in the vocabulary of " +
                         std::to_string(tokenizer.vocab_size()) + " tokens: these ids are of another model",
                     "prompt"};
  // The special tokens at the begin are those that the tokenizer adds to a text, or are written in
  // it.
  for (const size_t left_out : {size_t{0}, size_t{1}}) {
    if (left_out > 0 && (ids.size() < 2 || !tokenizer.is_special(ids[0]))) break;
    std::string text = tokenizer.decode(std::span(ids).subspan(left_out), /*skip_special_tokens=*/false);
    const auto again = tokenizer.encode(text);
    if (again && *again == ids) return text;
  }
  return Problem{
      400,
      "prompt: no text has exactly these token ids, and a receipt binds a text: send the text, or the "
      "ids that /tokenize makes of it",
      "prompt", "unsupported_parameter"};
}

Outcome<std::vector<generate::Request>> Service::requests_of(Call& call) const {
  if (!call.model.empty() && call.model != name_)
    return Problem{404, "model: no model " + call.model + " here: " + name_, "model", "model_not_found"};
  call.sampling.seed = call.seed.value_or(random_seed());
  generate::RequestOptions options;
  options.sampling = call.sampling;
  options.fill_memory = call.chat;
  if (!call.chat && !call.sampling.max_new_tokens) options.sampling.max_new_tokens = kCompletionTokens;
  auto settings = generate::RequestSettings::make(model_, std::move(options));
  if (!settings) return problem_of_request(settings.error());
  std::vector<generate::Request> requests;
  const auto add = [&](generate::Prompt prompt,
                       std::optional<std::vector<int32_t>> ids) -> std::optional<Problem> {
    auto made = request_of(call, std::move(prompt), std::move(ids), *settings);
    if (!made) return made.problem();
    requests.push_back(std::move(*made));
    return std::nullopt;
  };
  if (call.chat) {
    auto chat = chat_of(call);
    if (!chat) return chat.problem();
    if (auto problem = add({"", std::nullopt, std::move(*chat), "messages"}, std::nullopt)) return *problem;
    return requests;
  }
  auto prompts = prompts_of(call);
  if (!prompts) return prompts.problem();
  for (GivenPrompt& given : *prompts) {
    if (given.ids) {
      auto text = text_of(*given.ids);
      if (!text) return text.problem();
      given.text = std::move(*text);
    }
    if (auto problem = add({std::move(given.text), std::nullopt}, std::move(given.ids))) return *problem;
  }
  return requests;
}

void Service::prepare(Asked& asked, bool chat) {
  if (const auto problem = closed()) return refuse(asked, *problem);
  auto call = read_call(asked.request.body, chat);
  if (!call) return refuse(asked, call.problem());
  auto requests = requests_of(*call);
  if (!requests) return refuse(asked, requests.problem());
  const auto reply =
      std::make_shared<Reply>(*this, std::move(*call), std::move(asked.responder), asked.headers);
  if (const auto problem = reply->start(std::move(*requests))) {
    asked.responder = reply->take_responder();
    refuse(asked, *problem);
  }
}

// --- texts and tokens ----------------------------------------------------------------------------

void Service::tokenize(Asked& asked) {
  const auto body = json::parse(asked.request.body, "the body");
  if (!body) return refuse(asked, {400, body.error().message});
  std::vector<int32_t> ids;
  if (const Value& messages = body->get("messages"); messages.is_array()) {
    Call call;
    call.chat = true, call.messages = messages, call.tools = body->get("tools");
    call.variables = body->get("chat_template_kwargs");
    auto chat = chat_of(call);
    if (!chat) return refuse(asked, chat.problem());
    generate::Prompt prompt{"", std::nullopt, std::move(*chat), "messages"};
    auto encoded = generate::Request::encode(model_, prompt);
    if (!encoded) return refuse(asked, problem_of_request(encoded.error()));
    ids = *std::move(encoded);
  } else if (body->get("prompt").is_string()) {
    const Value& special = body->get("add_special_tokens");
    auto encoded =
        model_.folder.tokenizer.encode(body->get("prompt").text, special.is_null() || special.is_true());
    if (!encoded) return refuse(asked, problem_of_request(encoded.error()));
    ids = *std::move(encoded);
  } else {
    return refuse(asked, {400, "prompt: a text is needed, or messages", "prompt"});
  }
  respond(asked, 200,
          {{"count", ids.size()},
           {"max_model_len", engine_.positions()},
           {"tokens", ids},
           {"token_strs", nullptr}});
}

void Service::detokenize(Asked& asked) {
  const auto body = json::parse(asked.request.body, "the body");
  if (!body) return refuse(asked, {400, body.error().message});
  if (!body->get("tokens").is_array())
    return refuse(asked, {400, "tokens: a list of ids is needed", "tokens"});
  auto ids = ids_of(body->get("tokens"), "tokens");
  if (!ids) return refuse(asked, ids.problem());
  for (const int32_t id : *ids)
    if (id >= model_.folder.tokenizer.vocab_size())
      return refuse(asked, {400, "tokens: id " + std::to_string(id) + " is not in the vocabulary", "tokens"});
  respond(asked, 200, {{"prompt", model_.folder.tokenizer.decode(*ids, /*skip_special_tokens=*/false)}});
}

Value Service::tokenizer_info() const {
  Value info = {{"vocab_size", model_.folder.tokenizer.vocab_size()},
                {"model_max_length", model_.folder.context},
                {"add_bos_token", false}};
  for (const auto& [name, token] : model_.folder.chat_templates.special_tokens) info[name] = token;
  const auto with = model_.folder.tokenizer.encode("a"), without = model_.folder.tokenizer.encode("a", false);
  if (with && without && with->size() > without->size())
    info["add_bos_token"] = with->front() != without->front();
  if (!info.contains("eos_token") && !model_.folder.stop_tokens.empty())
    info["eos_token"] = model_.folder.tokenizer.decode(std::span(model_.folder.stop_tokens).first(1),
                                                       /*skip_special_tokens=*/false);
  const auto& templates = model_.folder.chat_templates.texts;
  if (const auto found = templates.find("default"); found != templates.end())
    info["chat_template"] = found->second;
  return info;
}

// --- receipts ------------------------------------------------------------------------------------

std::string Service::receipt_path(const std::string& hash) const {
  return options_.receipts + "/" + hash + ".json";
}

Status Service::save(const generate::Answer& answer) {
  ++metrics_.receipts;
  const std::string path = receipt_path(answer.receipt_hash);
  std::error_code ec;
  if (std::filesystem::exists(path, ec)) return {};  // the same answer, given before
  return write_file(path, receipt::print(answer.receipt));
}

void Service::receipt(Asked& asked) {
  const std::string hash = asked.request.path.substr(std::string_view("/v1/receipts/").size());
  const auto text = digest_from_hex(hash) ? read_file(receipt_path(hash)) : bad_input("");
  if (!text)
    return refuse(
        asked,
        {404, "no receipt " + std::string(json::brief(hash)) + " here: an id has 64 hexadecimal digits", "",
         "receipt_not_found"});
  http::Headers headers = asked.headers;
  headers.push_back({"content-type", "application/json"});
  metrics_.count_status(200);
  asked.responder.answer(200, std::move(headers), *text);
}

void Service::replay(Asked& asked) {
  if (const auto problem = closed()) return refuse(asked, *problem);
  const auto replay = std::make_shared<Replay>(*this, std::move(asked.responder), asked.headers);
  if (const auto problem = replay->start(asked.request.body)) {
    asked.responder = replay->take_responder();
    refuse(asked, *problem);
  }
}

}  // namespace invar::serve
