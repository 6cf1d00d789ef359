// Fuzzes what strangers say to a server: bytes over a socket, in pieces, to the real one. An answer
// is an answer of HTTP, each request that the handler gets is one that a proxy reads alike, and no
// connection stays. An input: the pieces, joined by U+001E.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "fuzz/parsers/parts.h"
#include "http/server.h"

namespace invar {
namespace {

void take(http::Request request, http::Responder responder) {
  if (request.path.empty() || request.path[0] != '/') defect("a target: " + request.path);
  for (const auto& [name, value] : request.headers)
    if (name.empty() || (name + value).find_first_of("\r\n\0", 0, 3) != std::string::npos)
      defect("a field of several lines: " + name);
  const bool length = !request.header("content-length").empty(),
             te = !request.header("transfer-encoding").empty();
  if (length && te) defect("two lengths of one body");
  if (length && std::to_string(request.body.size()) != std::string(request.header("content-length")) &&
      request.header("content-length").find_first_not_of('0') != std::string_view::npos &&
      request.header("content-length")[0] != '0')
    defect("a body of another length");
  if (request.body.size() > 5000) defect("a body beyond the limit");
  if (request.method == "GET") {
    responder.begin(200, {});
    responder.write("a");
    return responder.finish("b");
  }
  responder.answer(200, {}, "ok");
}

http::Server& server() {
  static http::Server made = [] {
    http::Limits limits;
    limits.header_bytes = 1000, limits.body_bytes = 5000;
    auto listening =
        http::Server::listen({"127.0.0.1", 0, {}}, limits, take, [](int, const std::string& message) {
          if (message.find('\n') != message.npos) defect("an error of several lines: " + message);
          return message;
        });
    if (!listening) defect(listening.error().message);
    return *std::move(listening);
  }();
  return made;
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET, to.sin_port = htons(server().port()), to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const linger at_once{1, 0};  // no port waits for the end of a connection that was closed
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const timeval patience{5, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (socket < 0 || ::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    ::close(socket);
    return 0;  // the machine has no ports left
  }
  for (const std::string_view piece : parts_of(data, size))
    if (::send(socket, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
  // A request that is known to be whole and the last one ends the connection, if nothing before
  // did.
  const std::string_view end = "\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  (void)::send(socket, end.data(), end.size(), MSG_NOSIGNAL);
  std::string got;
  char bytes[4096];
  if (size % 4 != 0) ::shutdown(socket, SHUT_WR);
  for (ssize_t n; (n = ::recv(socket, bytes, sizeof bytes, 0)) > 0;) {
    got.append(bytes, static_cast<size_t>(n));
    if (size % 8 == 0) break;  // a client that leaves
    if (size % 4 == 0 && got.find("\r\n\r\n") != got.npos) break;
  }
  ::close(socket);
  if (!got.empty() && !got.starts_with(std::string_view("HTTP/1.1 ").substr(0, got.size())))
    defect("an answer: " + got);
  return 0;
}
