#include "bench/load/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "hub/http/curl.h"

namespace invar::bench {
namespace {

using json::Value;
using Time = std::chrono::steady_clock;

double seconds_between(Time::time_point from, Time::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// SplitMix64: the same loads on every machine.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

struct Ask {
  std::string path, body;  // of a stream
};

// What came of one.
struct Told {
  Time::time_point start, end;
  std::vector<Time::time_point> pieces;
  uint64_t prompt_tokens = 0, tokens = 0;
  std::string error;
};

// Server-sent events -> times of their texts.
class Events {
 public:
  explicit Events(Told& told) : told_(told) {}
  void take(std::string_view piece) {
    const auto now = Time::now();
    text_ += piece;
    size_t at = 0;
    for (size_t end; (end = text_.find('\n', at)) != text_.npos; at = end + 1)
      line(std::string_view(text_).substr(at, end - at), now);
    text_.erase(0, at);
  }

 private:
  void line(std::string_view line, Time::time_point now) {
    constexpr std::string_view data = "data: ";
    if (!line.starts_with(data)) return;
    const Value event = json::read_or_null(line.substr(data.size()));
    if (event.contains("error")) told_.error = event.get("error").get("message").text;
    if (const Value& usage = event.get("usage"); usage.is_object()) {
      told_.prompt_tokens = usage.get("prompt_tokens").to_uint64();
      told_.tokens = usage.get("completion_tokens").to_uint64();
    }
    bool says = false;
    for (const Value& choice : event.get("choices").items) {
      says |= !choice.get("text").text.empty();
      for (const char* const name : {"content", "reasoning_content", "reasoning", "tool_calls"}) {
        const Value& part = choice.get("delta").get(name);
        says |= !part.text.empty() || !part.empty();
      }
    }
    if (says) told_.pieces.push_back(now);
  }

  Told& told_;
  std::string text_;
};

class Client {
 public:
  Client(const LoadSettings& s, std::vector<std::string> headers)
      : settings_(s), headers_(std::move(headers)) {}
  Status open() {
    auto curl = hub::Curl::open(settings_.timeout, "");
    if (!curl) return bad_input("no requests can be sent without libcurl (libcurl.so.4): install libcurl4");
    curl_.emplace(*std::move(curl));
    return {};
  }
  Result<std::string> get(const std::string& path) {
    std::string text;
    const hub::Response r = curl_->exchange({settings_.url + path, headers_}, [&](const auto&, auto piece) {
      text += piece;
      return true;
    });
    if (r.status == 200 && r.failure.empty()) return text;
    return bad_input(settings_.url + path + ": " +
                     (r.failure.empty() ? "status " + std::to_string(r.status) : r.failure));
  }
  Told ask(const Ask& ask) {
    Told told;
    Events events(told);
    std::string refusal;
    told.start = Time::now();
    const hub::Response r = curl_->exchange({settings_.url + ask.path, headers_, false, ask.body},
                                            [&](const hub::Response& head, std::string_view piece) {
                                              if (head.status == 200)
                                                events.take(piece);
                                              else
                                                refusal += piece;
                                              return true;
                                            });
    told.end = Time::now();
    if (!r.failure.empty()) {
      told.error = r.failure;
    } else if (r.status != 200) {
      const std::string why = json::read_or_null(refusal).get("error").get("message").text;
      told.error = "status " + std::to_string(r.status) + (why.empty() ? "" : ": " + json::brief(why));
    }
    if (told.tokens == 0) told.tokens = told.pieces.size();  // a server that counts none
    return told;
  }

 private:
  const LoadSettings& settings_;
  std::vector<std::string> headers_;
  std::optional<hub::Curl> curl_;
};

Result<std::vector<std::string>> headers_of(const LoadSettings& s) {
  std::vector<std::string> headers{"Content-Type: application/json", "Accept: text/event-stream"};
  if (s.api_key_file.empty()) return headers;
  INVAR_TRY(const std::string text, read_file(s.api_key_file));
  headers.push_back("Authorization: Bearer " + text.substr(0, text.find_first_of("\r\n")));
  return headers;
}

void make_stream(Value& body, const std::string& model) {
  if (!body.contains("model")) body["model"] = model;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
}

// The path after the URL, which ends with /v1.
std::string path_after(const std::string& url) {
  return url.starts_with("/v1/") ? url.substr(3) : url;
}

Result<std::vector<Ask>> asks_of_file(const LoadSettings& s, const std::string& model) {
  INVAR_TRY(const std::string text, read_file(s.requests_file));
  std::vector<Ask> asks;
  size_t number = 0;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    ++number;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = s.requests_file + ":" + std::to_string(number);
    INVAR_TRY(Value row, json::read(line, where, json::Order::as_written));
    if (!row.get("url").is_string() || !row.get("body").is_object())
      return bad_input(where + ": a line of OpenAI's batch form has url and body");
    make_stream(row["body"], model);
    asks.push_back({path_after(row.get("url").text), json::dump(row.get("body"))});
  }
  if (asks.empty()) return bad_input(s.requests_file + ": no line in it");
  return asks;
}

std::vector<Ask> made_asks(const LoadSettings& s, const std::string& model) {
  static constexpr const char* kWords[] = {"sun",  "river", "stone",  "letter", "garden", "winter", "silver",
                                           "road", "king",  "answer", "window", "music",  "ship",   "bread"};
  uint64_t state = s.seed ^ 0x70726f6d7074;
  std::vector<Ask> asks;
  for (int i = 0; i < s.requests; ++i) {
    std::string text;
    for (int n = 0; n < s.prompt_words; ++n)
      text += (n ? " " : "") + std::string(kWords[next_random(state) % std::size(kWords)]);
    Value body = {{"model", model}, {"max_tokens", s.max_tokens}, {"temperature", 0}};
    if (s.chat)
      body["messages"] = json::list({Value{{"role", "user"}, {"content", text}}});
    else
      body["prompt"] = text;
    make_stream(body, model);
    asks.push_back({s.chat ? "/chat/completions" : "/completions", json::dump(body)});
  }
  return asks;
}

// Seconds from the begin: times between arrivals have an exponential distribution.
std::vector<double> arrivals(double rate, size_t count, uint64_t seed) {
  std::vector<double> at;
  uint64_t state = seed ^ 0x6172726976616c;
  double now = 0;
  for (size_t i = 0; i < count; ++i) {
    at.push_back(now);
    const double uniform = static_cast<double>((next_random(state) >> 11) + 1) / 9007199254740992.0;
    now += -std::log(uniform) / rate;
  }
  return at;
}

class Load {
 public:
  Load(const LoadSettings& s, const std::vector<Ask>& asks, const std::vector<std::string>& headers,
       generate::Phase& phase)
      : settings_(s), asks_(asks), headers_(headers), phase_(phase) {}

  // Answers of `clients`, or where it is 0 of requests that come by themselves at `rate`.
  LoadRow run(int clients, double rate) {
    const auto start = Time::now();
    std::vector<std::thread> threads;
    std::atomic<size_t> next{0};
    const std::vector<double> times =
        clients > 0 ? std::vector<double>() : arrivals(rate, asks_.size(), settings_.seed);
    for (int i = 0; i < clients; ++i)
      threads.emplace_back([&] {
        Client client(settings_, headers_);
        if (!client.open()) return;
        for (size_t n; (n = next++) < asks_.size();) take(client.ask(asks_[n]));
      });
    for (size_t n = 0; n < times.size(); ++n) {
      std::this_thread::sleep_until(
          start + std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(times[n])));
      threads.emplace_back([&, n] {
        Client client(settings_, headers_);
        if (client.open()) take(client.ask(asks_[n]));
      });
    }
    for (std::thread& thread : threads) thread.join();
    LoadRow row = std::move(row_);
    row.clients = clients, row.rate = rate, row.requests = asks_.size();
    row.seconds = seconds_between(start, last_);
    for (auto* const list : {&row.first, &row.gaps, &row.whole}) std::ranges::sort(*list);
    return row;
  }

 private:
  void take(const Told& told) {
    const std::lock_guard lock(mutex_);
    phase_.progress(static_cast<int64_t>(++done_), static_cast<int64_t>(asks_.size()), "requests");
    last_ = std::max(last_, told.end);
    if (!told.error.empty()) {
      ++row_.errors[told.error];
      return;
    }
    row_.whole.push_back(seconds_between(told.start, told.end));
    row_.prompt_tokens += told.prompt_tokens, row_.tokens += told.tokens;
    for (size_t i = 0; i < told.pieces.size(); ++i)
      (i ? row_.gaps : row_.first)
          .push_back(seconds_between(i ? told.pieces[i - 1] : told.start, told.pieces[i]));
  }

  const LoadSettings& settings_;
  const std::vector<Ask>& asks_;
  const std::vector<std::string>& headers_;
  generate::Phase& phase_;
  std::mutex mutex_;
  LoadRow row_;
  Time::time_point last_{};
  size_t done_ = 0;
};

}  // namespace

size_t LoadRow::failed() const {
  size_t all = 0;
  for (const auto& [message, times] : errors) all += times;
  return all;
}

double quantile(const std::vector<double>& ascending, double share) {
  if (ascending.empty()) return 0;
  const double last = static_cast<double>(ascending.size() - 1);
  return ascending[static_cast<size_t>(std::lround(share * last))];
}

Result<LoadReport> measure_load(const LoadSettings& given, generate::Observer& observer) {
  LoadSettings s = given;
  while (s.url.ends_with('/')) s.url.pop_back();
  INVAR_TRY(const auto headers, headers_of(s));
  LoadReport report{s.url, s.served_model, {}};
  if (report.model.empty()) {
    Client client(s, headers);
    INVAR_CHECK_OK(client.open());
    INVAR_TRY(const std::string models, client.get("/models"));
    const Value listed = json::read_or_null(models).get("data");
    if (listed.empty()) return bad_input(s.url + "/models: lists no model: give --served-model");
    report.model = listed.items[0].get("id").text;
  }
  std::vector<Ask> asks = made_asks(s, report.model);
  if (!s.requests_file.empty()) {
    INVAR_TRY(asks, asks_of_file(s, report.model));
  }
  std::vector<std::pair<int, double>> loads;
  for (const int clients : s.clients) loads.emplace_back(clients, 0);
  for (const double rate : s.rates) loads.emplace_back(0, rate);
  if (loads.empty()) loads = {{1, 0}, {8, 0}, {32, 0}};
  for (const auto& [clients, rate] : loads) {
    const auto phase = observer.phase("measure");
    report.rows.push_back(Load(s, asks, headers, *phase).run(clients, rate));
    const LoadRow& row = report.rows.back();
    if (row.whole.empty() && !row.errors.empty())
      return bad_input(s.url + ": no request has an answer: " + row.errors.begin()->first);
    phase->done(std::to_string(row.whole.size()) + " answers");
  }
  return report;
}

}  // namespace invar::bench
