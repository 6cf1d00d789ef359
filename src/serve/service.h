// OpenAI's protocol over an engine: requests over HTTP -> answers, each with its receipt. The bits
// of an answer depend on its own request alone (plan.11).
//
// Threads: the server's (src/http) reads and writes sockets, the generator's computes, two prepare
// requests (JSON, template, tokens), one makes the texts of answers, one writes receipts.
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
#include "serve/metrics.h"
#include "serve/protocol/call.h"
#include "serve/threads/generator.h"
#include "serve/threads/worker.h"

namespace invar::serve {

struct ServiceOptions {
  std::string receipts;       // the folder of HASH.json
  size_t queue = 1024;        // requests that wait for a sequence, at most
  std::string api_keys = {};  // a file with one key a line; "": everybody may ask
};

class Service {
 public:
  // The engine outlives it, and was opened for no request.
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

  const std::string& model_name() const { return name_; }

 private:
  friend class Reply;
  friend class Replay;
  // A request, and its answer to come.
  struct Asked {
    http::Request request;
    http::Responder responder;
    http::Headers headers;  // that every answer to it has
  };
  explicit Service(generate::Engine&, ServiceOptions);
  void route(Asked);
  bool authorized(const http::Request&) const;
  // The number of its API key; 0: none is asked for.
  uint64_t client_of(const http::Request&) const;
  void respond(Asked&, int status, const json::Value& body, http::Headers more = {});
  void refuse(Asked&, const Problem&);
  void prepare(Asked&, bool chat);
  void tokenize(Asked&);
  void detokenize(Asked&);
  void receipt(Asked&);
  void replay(Asked&);
  json::Value model_json() const;
  json::Value tokenizer_info() const;
  Outcome<generate::Request> request_of(const Call&, generate::Prompt,
                                        std::optional<std::vector<int32_t>> tokens,
                                        const std::shared_ptr<const generate::RequestSettings>&) const;
  Outcome<std::vector<generate::Request>> requests_of(Call&) const;
  Outcome<std::string> text_of(const std::vector<int32_t>& ids) const;
  // The state in which a request cannot begin, if it is one.
  std::optional<Problem> closed() const;
  Status save(const generate::Answer&);
  std::string receipt_path(const std::string& hash) const;

  generate::Engine& engine_;
  const generate::Model& model_;
  const ServiceOptions options_;
  std::string name_, fingerprint_;
  std::vector<Digest> keys_;  // SHA-256 of each
  Metrics metrics_;
  std::atomic<bool> draining_{false}, failed_{false};
  std::atomic<size_t> open_{0};  // requests that are being answered
  std::mutex mutex_;
  std::condition_variable idle_;
  std::function<void(const Error&)> on_failure_;
  std::function<size_t()> connections_;
  // In the order in which they end: each may post to those that are declared before it.
  Worker store_, text_;
  Generator generator_;
  Worker preparation_;
};

}  // namespace invar::serve
