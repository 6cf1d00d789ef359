// Requests to the hub: redirects, the token, repetition of what may succeed later, and what the
// hub's refusals mean.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "hub/http/curl.h"
#include "hub/hub.h"

namespace invar::hub {

// A file or a text that is received in one or several attempts.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // Bytes that are here already: the next attempt asks for those behind them.
  virtual uint64_t held() const = 0;
  // Before the first byte of an answer: its headers, and of those that begin with x- the hub's,
  // where the hub sent us to a storage server. An error ends the transfer, here as below.
  virtual Status begin(const Response&) = 0;
  virtual Status take(std::string_view piece) = 0;
  // The answer has ended. false: bytes are missing, ask again.
  virtual Result<bool> finish() = 0;
};

class Client {
 public:
  static Result<Client> open(const ModelName&);
  const std::string& endpoint() const { return endpoint_; }

  // Asks until the receiver has everything. A cut transfer goes on at once; attempts that bring
  // nothing new, or less than kLeastRate, are repeated five times, after a pause that doubles or is
  // the hub's Retry-After.
  Status get(const std::string& url, Receiver&);
  // The whole body, of at most `most` bytes.
  Result<std::string> get_text(const std::string& url, size_t most);
  // The headers that the hub itself answers with; a storage server is not asked.
  Result<Response> head(const std::string& url);

 private:
  Client(Curl curl, ModelName model, std::string endpoint, std::string token)
      : curl_(std::move(curl)),
        model_(std::move(model)),
        endpoint_(std::move(endpoint)),
        token_(std::move(token)) {}
  Response follow(Request, const Curl::Body&);
  bool may_succeed_later(const Response&) const;
  Response with_hub_headers(Response) const;
  Status pause(const Response&, int attempt) const;
  Error refusal(const Response&, const std::string& url) const;
  Error failure(const std::string& what) const;

  Curl curl_;
  ModelName model_;
  std::string endpoint_, token_;
  bool connected_ = false;                     // an exchange has succeeded: the network is there
  std::map<std::string, std::string> of_hub_;  // headers of the hub's own answer to the last request
};

}  // namespace invar::hub
