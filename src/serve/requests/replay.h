// A receipt -> a verdict, by the engine that serves: the answer is computed again, in the batch,
// from what the receipt binds.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "generate/verify/verify.h"
#include "http/server.h"
#include "serve/service.h"

namespace invar::serve {

class Replay : public std::enable_shared_from_this<Replay> {
 public:
  Replay(Service&, http::Responder, http::Headers);
  // A problem: it is no receipt, or nothing can be computed; the responder is given back.
  std::optional<Problem> start(std::string_view receipt);
  http::Responder take_responder() { return std::move(responder_); }

 private:
  // The findings of what needs no computation.
  Result<generate::Request> compare_request();
  void compare(const generate::Answer&);
  void finish();

  Service& service_;
  LanguageModel* model_;  // that the receipt is of
  http::Responder responder_;
  http::Headers headers_;
  receipt::Receipt claimed_;
  generate::Verdict verdict_;
  std::weak_ptr<Job> job_;
  const Service::Answering answering_{service_};
};

}  // namespace invar::serve
