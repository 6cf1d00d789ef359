// The answer to a request of embeddings, rerank or score: texts -> vectors or scores, each with its
// receipt, as `invar embed` and `invar rerank` have them.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "generate/encoder/encoder.h"
#include "http/server.h"
#include "serve/protocol/call.h"
#include "serve/service.h"

namespace invar::serve {

class EncoderReply : public std::enable_shared_from_this<EncoderReply> {
 public:
  EncoderReply(Service&, TextEncoder&, Call, http::Responder, http::Headers);
  ~EncoderReply();
  // A problem: nothing has begun, and the responder is given back.
  std::optional<Problem> start();
  http::Responder take_responder() { return std::move(responder_); }

 private:
  std::optional<Problem> take_texts();
  std::optional<Problem> add_pairs();
  void compute();  // on the encoder's thread
  // What was computed together from then on.
  void count(const std::vector<generate::EncoderOutput>&, std::chrono::steady_clock::time_point begun);
  void keep();
  void take_kept(const Status&);
  void finish();
  void fail(const Problem&);
  json::Value embeddings() const;
  json::Value ranked() const;
  json::Value scores() const;
  json::Value usage() const;
  json::Value invar() const;

  Service& service_;
  TextEncoder& encoder_;
  const Call call_;
  http::Responder responder_;
  http::Headers headers_;
  std::vector<generate::EncoderText> texts_;
  std::vector<generate::EncoderOutput> outputs_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> gone_{false};
  size_t kept_ = 0;
  bool all_kept_ = true;
  bool counted_ = false;
  const Service::Answering answering_{service_};
};

}  // namespace invar::serve
