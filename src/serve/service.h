// OpenAI's protocol, and others, over engines and encoders: requests over HTTP -> answers, each
// with its receipt. The bits of an answer depend on its own request alone (plan.11).
//
// Threads: the server's (src/http) reads and writes sockets, one of each model computes, two
// prepare requests (JSON, template, tokens), one reads recordings, one makes the texts of answers,
// one writes receipts.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "generate/engine/engine.h"
#include "http/server.h"
#include "serve/archive/archive.h"
#include "serve/metrics.h"
#include "serve/models/models.h"
#include "serve/protocol/call.h"
#include "serve/protocol/forms/form.h"
#include "serve/threads/worker.h"

namespace invar::serve {

struct ServiceOptions {
  ArchiveOptions archive;
  size_t queue = 1024;        // requests that wait for a sequence, at most
  std::string api_keys = {};  // a file with one key a line; "": everybody may ask
  bool clock = true;          // gives chats the date; else they have it, or do without
  // Gets events: what is asked and answered, and what the store says. Of any thread.
  std::function<void(json::Value)> log = {};
};

class Service {
 public:
  // The models outlive it; engines were opened for no request. A request that names none of them
  // has the first that can answer it.
  static Result<std::unique_ptr<Service>> make(const Models&, ServiceOptions);
  static Result<std::unique_ptr<Service>> make(generate::Engine&, ServiceOptions);
  ~Service();
  // http::Handler
  void handle(http::Request, http::Responder);
  // http::ErrorBody
  static std::string error_body(int status, const std::string& message);

  // No request begins from now on; those that have begun go on.
  void drain();
  // Waits until none is left, or so long. Whether none is.
  bool wait_idle(std::chrono::milliseconds);
  // Ends those that are left, with an error.
  void end_all();
  // Gets the error after which nothing can be computed any more. On another thread.
  void on_failure(std::function<void(const Error&)>);
  // What `invar_num_connections` shows.
  void count_connections(std::function<size_t()>);

 private:
  friend class Reply;
  friend class EncoderReply;
  friend class SpeechReply;
  friend class Replay;
  // A request, and its answer to come.
  struct Asked {
    http::Request request;
    http::Responder responder;
    http::Headers headers;  // that every answer to it has
  };
  explicit Service(const Models&, ServiceOptions);
  void preflight(Asked&);
  void route(Asked);
  bool authorized(const http::Request&) const;
  // The number of its API key; 0: none is asked for.
  uint64_t client_of(const http::Request&) const;
  void respond(Asked&, int status, const json::Value& body, http::Headers more = {});
  void refuse(Asked&, const Problem&);
  // Of an answer that has these headers; whether to ask again is added.
  void refuse(http::Responder&, http::Headers, const Problem&, const json::Value& body);
  // Of an answer as events, which has these headers.
  void begin_stream(http::Responder&, http::Headers);
  void prepare(Asked&, Endpoint);
  void count_tokens(Asked&);
  void encode(Asked&, Endpoint);
  void transcribe(Asked&, Endpoint);
  void ready(Asked&);
  void model(Asked&);
  void metrics(Asked&);
  void openapi(Asked&);
  void page(Asked&);
  void tokenizer_info(Asked&);
  void tokenize(Asked&);
  void detokenize(Asked&);
  void receipt(Asked&);
  void whole_receipt(Asked&);
  void replay(Asked&);
  json::Value models_json() const;
  // The model of this name; "": the first that reads text, or that hears.
  Outcome<LanguageModel*> language_model(const std::string& name, bool of_recordings = false) const;
  Outcome<TextEncoder*> text_encoder(const std::string& name, generate::EncoderKind) const;
  Problem no_model(const std::string& name) const;
  static uint64_t random_seed();
  // What a chat template shows for the date (chat.1); "": none.
  std::string date_of(const Call&) const;
  Generator::Load load() const;
  Outcome<generate::Request> request_of(const LanguageModel&, const Call&, generate::Prompt,
                                        std::optional<std::vector<int32_t>> tokens,
                                        const std::shared_ptr<const generate::RequestSettings>&) const;
  Outcome<std::vector<generate::Request>> requests_of(const LanguageModel&, Call&) const;
  // The state in which a request cannot begin, if it is one.
  std::optional<Problem> closed() const;
  // The record of a request by this model, which has these headers, without an answer.
  store::Record new_record(const http::Headers&, const std::string& model) const;
  // An answer to be kept. `done`, on the thread of the store, gets what became of it; until then
  // the receipt is there.
  struct ToKeep {
    Archive::Answered answered;
    bool repeated;
    std::function<void(const Status&)> done;
  };
  // Keeps these answers and says so in the log, on the thread of the store: with them all others
  // that wait for it then, so that the disk is waited for once.
  void keep(std::vector<ToKeep>);
  void keep_waiting();
  Outcome<generate::Prompt> prompt_of(const generate::Model&, const Call&, std::vector<int32_t>& ids) const;
  void log(json::Value event) const {
    if (options_.log) options_.log(std::move(event));
  }

  // A request that is being answered, as long as this lives: the last member of what answers it.
  class Answering {
   public:
    explicit Answering(Service& service) : service_(service) { ++service_.open_; }
    ~Answering() {
      const std::lock_guard lock(service_.mutex_);
      --service_.open_;
      service_.idle_.notify_all();
    }
    Answering(const Answering&) = delete;

   private:
    Service& service_;
  };

  const ServiceOptions options_;
  std::unique_ptr<Archive> archive_;
  std::vector<Digest> keys_;  // SHA-256 of each
  Metrics metrics_;
  std::atomic<bool> draining_{false}, failed_{false}, ended_{false};
  std::atomic<size_t> open_{0};  // requests that are being answered
  std::mutex mutex_;
  std::condition_variable idle_;
  std::function<void(const Error&)> on_failure_;
  std::function<size_t()> connections_;
  std::vector<ToKeep> to_keep_;
  // In the order in which they end: each may post to those that are declared before it.
  Worker store_, text_;
  std::vector<std::unique_ptr<LanguageModel>> models_;
  std::vector<std::unique_ptr<TextEncoder>> encoders_;
  std::atomic<size_t> waiting_bytes_{0};  // of recordings that are yet to be read
  std::atomic<size_t> samples_{0};        // of those that are being heard
  Worker recordings_;                     // reads them, so that no text waits for it
  Worker preparation_;
};

}  // namespace invar::serve
