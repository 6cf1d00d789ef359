// HTTP/1.1 over TCP: requests -> a handler; answers whole or in pieces. Limits and deadlines hold
// for every connection, whoever is at its other end. The only folder that knows Boost.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace invar::http {

struct Limits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 16 << 20;
  size_t connections = 1024;
  // What a stream holds for a reader that is slow, before it is not ready() for more.
  size_t stream_bytes = 64 << 10;
  std::chrono::milliseconds header = std::chrono::seconds(10);  // from the first byte of a request
  std::chrono::milliseconds body = std::chrono::seconds(60);
  std::chrono::milliseconds idle = std::chrono::seconds(60);        // between requests
  std::chrono::milliseconds write = std::chrono::seconds(30);       // until a piece is taken
  std::chrono::milliseconds keep_alive = std::chrono::seconds(15);  // of a stream that says nothing
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method, path, query;  // "POST", "/v1/models", without the "?"
  Headers headers;                  // names in lower case
  std::string body;
  // A browser asks whether a page of an origin that is allowed may send a request (CORS).
  bool preflight = false;
  // The value of the first header of this name; "" where there is none.
  std::string_view header(std::string_view lower_case_name) const;
};

// The answer to one request, from any thread. Each of its connections is closed where it is
// destroyed without an end.
class Responder {
 public:
  class Impl;
  explicit Responder(std::shared_ptr<Impl>);
  // Of no connection: `whole` gets the answer, on the thread that gives it, or status 0, where
  // there is none. It takes no pieces.
  using Whole = std::function<void(int status, Headers, std::string body)>;
  explicit Responder(Whole whole);
  Responder(Responder&&) noexcept;
  Responder& operator=(Responder&&) noexcept;
  ~Responder();

  // The whole answer.
  void answer(int status, Headers, std::string body);
  // An answer in pieces. `ping`: what is sent where there is nothing to send for long; "": nothing.
  void begin(int status, Headers, std::string ping = {});
  // False: the reader has yet to take what it was given, and more is to be given later, as one
  // piece.
  bool ready() const;
  void write(std::string piece);
  // The last piece.
  void finish(std::string piece = {});
  // Calls it once, on a thread of the server, when the client is gone before the end; at once where
  // it is gone already.
  void on_gone(std::function<void()>);
  // What became of the answer: its status, 0 where none began; the bytes that the system took of
  // it; whether these are all.
  struct End {
    int status = 0;
    uint64_t bytes = 0;
    bool complete = false;
  };
  // Calls it once, on the server's thread, when the answer has ended. To be called by the handler
  // before it returns.
  void on_end(std::function<void(const End&)>);

 private:
  bool give_whole(int status, Headers&, std::string& body);

  std::shared_ptr<Impl> impl_;
  std::unique_ptr<Whole> whole_;
};

// Gets each request on the server's thread, and must not wait.
using Handler = std::function<void(Request, Responder)>;

// The words of an error that the server itself answers with, such as a header that is too long:
// status and message -> body, of JSON.
using ErrorBody = std::function<std::string(int status, const std::string& message)>;

struct Address {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0: one that is free
  // Further names by which clients may call this host. A server on a loopback address takes its own
  // names and these alone, so that no page of a browser reaches it under another (DNS rebinding).
  std::vector<std::string> names = {};
  // Pages of these origins may use the server, as origins_of() reads them. Its own always may.
  std::vector<std::string> origins = {};
};

class Server {
 public:
  // Errors: bad_input, where the address cannot be had; not_covered: a build without Boost.
  static Result<Server> listen(const Address&, const Limits&, Handler, ErrorBody);
  Server(Server&&) noexcept;
  ~Server();  // stop()
  uint16_t port() const;
  size_t connections() const;  // that are open
  // Answers close their connections from now on, and those without a request are closed.
  void drain();
  // Closes every connection.
  void stop();

  struct Impl;

 private:
  explicit Server(std::shared_ptr<Impl>);
  std::shared_ptr<Impl> impl_;
};

}  // namespace invar::http
