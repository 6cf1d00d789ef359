// What comes over a socket, byte by byte: requests that are none, limits, streams, and clients that
// leave.
#include "http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <optional>
#include <semaphore>
#include <thread>

namespace invar::http {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A client that says exactly these bytes.
class Client {
 public:
  explicit Client(uint16_t port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(port), to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Client() { close(); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void end() { ::shutdown(socket_, SHUT_WR); }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Reads what is there. Whether more may come.
  bool drain() {
    const timeval patience{0, 5000};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char piece[4096];
    ssize_t n;
    while ((n = ::recv(socket_, piece, sizeof piece, 0)) > 0) continue;
    return n < 0 && errno == EAGAIN;
  }
  // All that comes until the server closes, or until `end` has come.
  std::string read(std::string_view end = {}) {
    std::string all;
    char piece[4096];
    while (end.empty() || all.find(end) == all.npos) {
      const ssize_t n = ::recv(socket_, piece, sizeof piece, 0);
      if (n <= 0) break;
      all.append(piece, static_cast<size_t>(n));
    }
    return all;
  }

 private:
  int socket_;
};

class HttpTest : public ::testing::Test {
 protected:
  void start(Handler handler, std::vector<std::string> names = {}, std::vector<std::string> origins = {}) {
    auto made = Server::listen(
        {"127.0.0.1", 0, std::move(names), std::move(origins)}, limits_, std::move(handler),
        [](int status, const std::string& message) { return std::to_string(status) + " " + message; });
    if (!made && made.error().code == Code::not_covered) GTEST_SKIP() << "this build has no Boost";
    ASSERT_TRUE(made) << made.error().message;
    server_.emplace(*std::move(made));
  }
  // Says what it got.
  static void echo(Request request, Responder responder) {
    std::string body = request.method + " " + request.path + "?" + request.query + " " + request.body;
    responder.answer(200, {{"x-kept", std::string(request.header("x-kept"))}}, std::move(body));
  }
  std::string answer(std::string_view bytes) {
    Client client(server_->port());
    client.send(bytes);
    return client.read();
  }

  Limits limits_;
  std::optional<Server> server_;
};

TEST_F(HttpTest, RequestsAndAnswers) {
  start(echo);
  if (!server_) return;
  const std::string end = "Host: localhost\r\nConnection: close\r\n\r\n";
  const std::string got = answer("GET /a/b?c=d HTTP/1.1\r\nX-Kept: yes\r\n" + end);
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\nx-kept: yes\r\ncontent-length: 13\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\n\r\nGET /a/b?c=d "));
  EXPECT_THAT(answer("HEAD / HTTP/1.1\r\n" + end), testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(answer("GET / HTTP/1.0\r\n\r\n"), HasSubstr("GET /? "));
  EXPECT_THAT(
      answer("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + end + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
      HasSubstr("POST /? abcde"));
  EXPECT_THAT(answer("POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n" + end + "abc"),
              StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
  // One after another over a connection, the second before the answer to the first.
  Client client(server_->port());
  client.send("GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\n" + end);
  const std::string both = client.read();
  EXPECT_THAT(both, HasSubstr("GET /1? "));
  EXPECT_THAT(both, HasSubstr("GET /2? "));
}

// None of these reaches the handler.
TEST_F(HttpTest, WhatIsNoRequest) {
  limits_.header_bytes = 2000, limits_.body_bytes = 100;
  std::atomic<int> handled = 0;
  start([&](Request, Responder) { ++handled; });
  if (!server_) return;
  const std::string get = "GET / HTTP/1.1\r\n", host = "Host: localhost\r\n";
  const std::string post = "POST / HTTP/1.1\r\n" + host, chunked = "Transfer-Encoding: chunked\r\n";
  const std::pair<std::string, std::string> cases[] = {
      {"\r\n\r\n\r\n", "400"},
      {"hello\r\n\r\n", "400"},
      {"GET / HTTP/9.9\r\n" + host + "\r\n", "400"},
      {"GET  / HTTP/1.1\r\n" + host + "\r\n", "400"},
      {"GET http://localhost/ HTTP/1.1\r\n" + host + "\r\n", "400"},
      {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", "400"},
      {get + "\r\n", "400"},
      {get + host + host + "\r\n", "400"},
      {get + host + " folded: x\r\n\r\n", "400"},
      {get + host + "a: b\r\n\tfolded\r\n\r\n", "400"},
      {post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "400"},
      {"GET / HTTP/1.1\nHost: localhost\n\n", "400"},
      {get + host + "a: b\n\r\n", "400"},
      {get + host + "a: b\rc: d\r\n\r\n", "400"},
      {get + "Host: localhost@evil.example\r\n\r\n", "400"},
      {get + "Host: localhost:1/evil\r\n\r\n", "400"},
      {get + "Host: localhost, evil\r\n\r\n", "400"},
      {get + host + "Authorization: a\r\nAuthorization: b\r\n\r\n", "400"},
      {get + host + std::string("a: \0b\r\n\r\n", 9), "400"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
      {"\x16\x03\x01\x02", "400"},
      {std::string(3000, 'A'), "431"},
      {get + host + "bad name: x\r\n\r\n", "400"},
      {get + host + "a: \x01\r\n\r\n", "400"},
      {get + "Host: evil.example\r\n\r\n", "421"},
      {get + host + "Origin: null\r\n\r\n", "403"},
      {get + host + "Origin: http://evil.example\r\n\r\n", "403"},
      {get + host + "a: " + std::string(3000, 'x') + "\r\n\r\n", "431"},
      {post + "Content-Length: 101\r\n\r\n", "413"},
      {post + "Content-Length: 99999999999999999999999\r\n\r\n", "400"},
      {post + "Content-Length: -1\r\n\r\n", "400"},
      {post + "Content-Length: +1\r\n\r\na", "400"},
      {post + "Content-Length: 1, 1\r\n\r\na", "400"},
      {post + "Content-Length : 1\r\n\r\na", "400"},
      {post + "Content-Length:\r\n\r\na", "400"},
      {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
      {post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", "400"},
      {post + "Content-Length: 3\r\n" + chunked + "\r\n0\r\n\r\n", "400"},
      {post + chunked + "Content-Length: 3\r\n\r\n0\r\n\r\n", "400"},
      {post + chunked + chunked + "\r\n0\r\n\r\n", "400"},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
      {post + "Transfer-Encoding: identity\r\n\r\n", "501"},
      {post + "Transfer-Encoding: xchunked\r\n\r\n", "501"},
      {post + "Transfer-Encoding: \x0b" + "chunked\r\n\r\n", "400"},
      {"POST / HTTP/1.0\r\n" + chunked + "\r\n0\r\n\r\n", "501"},
      {post + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\na", "415"},
      {post + chunked + "\r\n3;a=b\r\nabc\r\n0\r\n\r\n", "400"},
      {post + chunked + "\r\n3 \r\nabc\r\n0\r\n\r\n", "400"},
      {post + chunked + "\r\n0x3\r\nabc\r\n0\r\n\r\n", "400"},
      {post + chunked + "\r\n10000000000000003\r\nabc\r\n0\r\n\r\n", "400"},
      {post + chunked + "\r\n3\r\nabcXX0\r\n\r\n", "400"},
      {post + chunked + "\r\n0\r\nAuthorization: Bearer a\r\n\r\n", "400"},
      {post + chunked + "\r\n" + std::string(100000, '0'), "400"},
      {post + chunked + "\r\n3;" + std::string(100000, 'a'), "400"},
      {post + chunked + "\r\n0\r\na: " + std::string(100000, 'a'), "400"},
      {post + chunked + "\r\nxyz\r\nabc\r\n0\r\n\r\n", "400"},
      {post + chunked + "\r\n65\r\n" + std::string(101, 'a') + "\r\n0\r\n\r\n", "413"},
  };
  for (const auto& [bytes, status] : cases)
    EXPECT_THAT(answer(bytes), StartsWith("HTTP/1.1 " + status + " ")) << bytes;
  EXPECT_EQ(handled, 0);
}

TEST_F(HttpTest, OtherNamesOfTheHost) {
  start(echo, {"models.example"});
  if (!server_) return;
  const std::string end = "Connection: close\r\n\r\n";
  for (const char* host : {"models.example", "Models.Example:8000", "127.0.0.1:1", "[::1]:80", "localhost"})
    EXPECT_THAT(answer("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n" + end), HasSubstr("200 OK"));
  EXPECT_THAT(answer("GET / HTTP/1.1\r\nHost: localhost:8\r\nOrigin: http://localhost:8\r\n" + end),
              HasSubstr("200 OK"));
}

TEST_F(HttpTest, PagesOfOtherOrigins) {
  limits_.header_bytes = 1000;
  const auto tell = [](Request request, Responder responder) {
    responder.begin(200, {});
    responder.finish(request.preflight ? "may it?" : request.method);
  };
  start(tell, {}, {"https://A.example", R"(["http://b.example:1"])"});
  if (!server_) return;
  const std::string end = "Connection: close\r\n\r\n", host = "Host: localhost\r\n";
  const std::string get = "GET / HTTP/1.1\r\n" + host, ask = "OPTIONS / HTTP/1.1\r\n" + host;
  const std::string a = "Origin: https://a.example\r\n", wants = "Access-Control-Request-Method: PUT\r\n";
  const std::string allowed = "\r\naccess-control-allow-origin: https://a.example\r\n";
  const std::string_view vary = "\r\nvary: origin\r\n", any = "access-control";
  EXPECT_THAT(answer(get + a + end), AllOf(HasSubstr("200 OK"), HasSubstr(allowed), HasSubstr(vary)));
  EXPECT_THAT(answer(get + "Origin: http://b.example:1\r\n" + end), HasSubstr("http://b.example:1\r\n"));
  EXPECT_THAT(answer(get + end), AllOf(HasSubstr("200 OK"), HasSubstr(vary), Not(HasSubstr(any))));
  for (const char* other : {"http://a.example", "https://a.example:8", "https://a.example.evil", "null"})
    EXPECT_THAT(answer(get + "Origin: " + other + "\r\n" + end),
                AllOf(StartsWith("HTTP/1.1 403 "), Not(HasSubstr(any))));
  EXPECT_THAT(answer(get + a + a + end), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer(ask + a + wants + end), AllOf(HasSubstr("may it?"), HasSubstr(allowed)));
  EXPECT_THAT(answer(ask + a + end), HasSubstr("OPTIONS"));
  EXPECT_THAT(answer(ask + wants + end), HasSubstr("OPTIONS"));
  // Refusals, of what no handler sees, too.
  EXPECT_THAT(answer("GET / HTTP/1.1\r\nHost: other\r\n" + a + end),
              AllOf(StartsWith("HTTP/1.1 421 "), HasSubstr(allowed)));
  EXPECT_THAT(answer(get + a + "b: " + std::string(2000, 'b') + "\r\n" + end),
              AllOf(StartsWith("HTTP/1.1 431 "), HasSubstr(allowed)));
}

TEST_F(HttpTest, PagesOfAllOrigins) {
  start(echo, {}, {"*"});
  if (!server_) return;
  const std::string get = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: ";
  for (const char* origin : {"https://a.example", "null"})
    EXPECT_THAT(answer(get + origin + "\r\n\r\n"),
                AllOf(HasSubstr("\r\naccess-control-allow-origin: *\r\n"), Not(HasSubstr("vary"))));
}

TEST_F(HttpTest, DeadlinesEndConnections) {
  limits_.header = limits_.idle = limits_.body = milliseconds(50);
  start(echo);
  if (!server_) return;
  for (const char* begun :
       {"", "GET / HT", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc"})
    EXPECT_EQ(answer(begun), "") << begun;
}

TEST_F(HttpTest, NoMoreConnectionsThanAllowed) {
  limits_.connections = 1;
  start(echo);
  if (!server_) return;
  Client first(server_->port());
  first.send("GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(first.read("GET /1"), HasSubstr("200 OK"));
  EXPECT_EQ(answer("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "");
}

TEST_F(HttpTest, Streams) {
  limits_.keep_alive = milliseconds(20);
  std::thread writer;
  start([&](Request, Responder responder) {
    writer = std::thread([r = std::move(responder)]() mutable {
      r.begin(200, {}, "ping");
      r.write("one");
      std::this_thread::sleep_for(milliseconds(100));
      r.finish("two");
    });
  });
  if (!server_) return;
  const std::string got = answer("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(got, HasSubstr("transfer-encoding: chunked\r\n"));
  EXPECT_THAT(got, HasSubstr("\r\n\r\n3\r\none\r\n4\r\nping\r\n"));
  EXPECT_THAT(got, testing::EndsWith("3\r\ntwo\r\n0\r\n\r\n"));
  writer.join();
  const std::string old = answer("GET / HTTP/1.0\r\n\r\n");  // which knows no chunks
  EXPECT_THAT(old, HasSubstr("\r\n\r\noneping"));
  EXPECT_THAT(old, testing::EndsWith("two"));
  writer.join();
}

// A reader that takes nothing holds a bounded number of bytes, and is gone after the deadline.
TEST_F(HttpTest, SlowReaders) {
  limits_.write = milliseconds(200), limits_.stream_bytes = 10000;
  std::promise<size_t> taken;
  std::promise<void> gone;
  std::thread writer;
  start([&](Request, Responder responder) {
    responder.on_gone([&] { gone.set_value(); });
    writer = std::thread([&, r = std::move(responder)]() mutable {
      r.begin(200, {});
      size_t bytes = 0;
      // Until the kernel takes no more, however long it takes: then the deadline ends it.
      const auto left = gone.get_future();
      while (left.wait_for(milliseconds(1)) != std::future_status::ready && bytes < size_t{64} << 20)
        for (int i = 0; i < 100 && r.ready(); ++i) r.write(std::string(1000, 'a')), bytes += 1000;
      taken.set_value(bytes);
    });
  });
  if (!server_) return;
  Client client(server_->port(), 4096);
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_LT(taken.get_future().get(), size_t{8} << 20);  // what the kernel holds, and 10000
  writer.join();
}

// Also one who has sent part of the next request, or who says that nothing follows: the end of what
// a client sends is the end of the client.
TEST_F(HttpTest, ClientsThatLeave) {
  struct Case {
    bool more, half;
  };
  for (const auto& [more, half] : {Case{false, false}, {true, false}, {true, true}}) {
    std::promise<void> gone;
    std::optional<Responder> kept;
    std::promise<void> asked;
    start([&](Request, Responder responder) {
      responder.on_gone([&] { gone.set_value(); });
      kept.emplace(std::move(responder));
      asked.set_value();
    });
    if (!server_) return;
    Client client(server_->port());
    client.send(std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") + (more ? "GET /next HT" : ""));
    asked.get_future().wait();
    if (more) client.send("TP/1.1\r\n");
    half ? client.end() : client.close();
    gone.get_future().wait();
    if (!more) kept->answer(200, {}, "to nobody");
    kept.reset();
    server_.reset();
  }
}

// The last bytes of an answer leave, and others come, while the server is busy: it is told of both
// at once. What came on a connection that is over is no request.
TEST_F(HttpTest, BytesThatComeWithTheLastOfAnAnswer) {
  limits_.stream_bytes = 1;
  std::binary_semaphore entered{0}, leave{0};
  std::promise<Responder> begun;
  std::atomic<int> others = 0;
  start([&](Request request, Responder responder) {
    if (request.path == "/stream") return begun.set_value(std::move(responder));
    if (request.path == "/wait")
      entered.release(), leave.acquire();
    else
      ++others;
    responder.answer(200, {}, "ok");
  });
  if (!server_) return;
  Client slow(server_->port(), 4096), other(server_->port());
  slow.send("GET /stream HTTP/1.0\r\n\r\n");  // no piece ends the answer
  Responder stream = begun.get_future().get();
  stream.begin(200, {});
  const auto taken = [&] {
    for (int i = 0; i < 100 && !stream.ready(); ++i) std::this_thread::sleep_for(milliseconds(1));
    return stream.ready();
  };
  do stream.write(std::string(64 << 10, 'a'));
  while (taken());
  stream.finish();
  other.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  entered.acquire();
  slow.drain();
  slow.send("x");
  leave.release();
  other.read("ok");
  slow.read();
  EXPECT_EQ(others, 0);
}

// A request that comes byte by byte is the same request, and what is wrong with it stays wrong.
TEST_F(HttpTest, ByteByByte) {
  start(echo);
  if (!server_) return;
  const auto slowly = [&](const std::string& bytes) {
    Client client(server_->port());
    for (const char& c : bytes) client.send({&c, 1});
    return client.read();
  };
  const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  EXPECT_THAT(slowly(post + "Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc"),
              HasSubstr("POST /? abc"));
  EXPECT_THAT(slowly(post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"),
              HasSubstr("POST /? abcd"));
  EXPECT_THAT(slowly(post + "a: b\r\n c\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(slowly(post + "Transfer-Encoding: chunked\r\n\r\n3;a\r\nabc\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(HttpTest, EndsOfAnswers) {
  std::promise<Responder::End> ends[3];
  std::optional<Responder> kept;
  std::atomic<int> next = 0;
  start([&](Request request, Responder responder) {
    responder.on_end([&, i = next++](const Responder::End& end) { ends[i].set_value(end); });
    if (request.path == "/whole") return responder.answer(404, {}, "nothing");
    responder.begin(200, {});
    if (request.path == "/stream") return responder.finish("all of it");
    kept.emplace(std::move(responder));
  });
  if (!server_) return;
  const std::string end = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  for (int i = 0; i < 2; ++i) {
    const std::string got = answer((i == 0 ? "GET /whole" : "GET /stream") + end);
    const Responder::End said = ends[i].get_future().get();
    EXPECT_EQ(said.status, i == 0 ? 404 : 200);
    EXPECT_EQ(said.bytes, got.size());
    EXPECT_TRUE(said.complete);
  }
  Client client(server_->port());
  client.send("GET /kept" + end);
  EXPECT_THAT(client.read("\r\n\r\n"), HasSubstr("200 OK"));
  client.close();
  const Responder::End said = ends[2].get_future().get();
  EXPECT_EQ(said.status, 200);
  EXPECT_FALSE(said.complete);
}

TEST_F(HttpTest, DrainsAndStops) {
  std::optional<Responder> kept;
  std::promise<void> asked;
  start([&](Request, Responder responder) {
    kept.emplace(std::move(responder));
    asked.set_value();
  });
  if (!server_) return;
  Client idle(server_->port()), busy(server_->port());
  busy.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  asked.get_future().wait();
  server_->drain();
  EXPECT_EQ(idle.read(), "");
  kept->answer(200, {}, "the last");
  const std::string got = busy.read();
  EXPECT_THAT(got, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(got, testing::EndsWith("the last"));
  Client left(server_->port());
  server_->stop();
  EXPECT_EQ(left.read(), "");
}

}  // namespace
}  // namespace invar::http
