// Long because Boost.Beast and Asio take seconds to compile: this file alone includes them.
// One thread does all of it.
#include "http/server.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "http/head.h"
#include "http/origins.h"

#ifdef INVAR_BOOST
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#endif

namespace invar::http {

std::string_view Request::header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (known == name) return value;
  return {};
}

Responder::Responder(Whole whole) : whole_(std::make_unique<Whole>(std::move(whole))) {}

// Whether there is no connection, but a function that gets the answer.
bool Responder::give_whole(int status, Headers& headers, std::string& body) {
  if (!whole_) return false;
  (*std::exchange(whole_, nullptr))(status, std::move(headers), std::move(body));
  return true;
}

#ifdef INVAR_BOOST

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;
using Failure = beast::error_code;

namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

using Parser = beast::http::request_parser<beast::http::string_body>;

// What a client may send beyond a request that is being answered.
constexpr size_t kReadAtOnce = 16 << 10;
// A piece that one deadline of writing holds for.
constexpr size_t kWriteAtOnce = 256 << 10;

std::string chunk_of(std::string_view bytes) {
  char size[24];
  std::string out(size, static_cast<size_t>(std::snprintf(size, sizeof size, "%zx\r\n", bytes.size())));
  return out.append(bytes).append("\r\n");
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
  Impl(const Limits& l, Handler h, ErrorBody e)
      : limits(l), handler(std::move(h)), error_body(std::move(e)) {}
  void accept();
  void accepted(tcp::socket);

  const Limits limits;
  const Handler handler;
  const ErrorBody error_body;
  Doors doors;
  std::atomic<size_t> count{0};
  std::atomic<bool> draining{false}, stopped{false};
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer again{io};                      // until accept() is tried once more
  std::vector<std::weak_ptr<Responder::Impl>> open;  // of the thread of io
  std::thread thread;
};

// A connection, with at most one request that is being answered. What a Responder asks for comes
// from any thread and is posted; everything else happens on the server's.
class Responder::Impl : public std::enable_shared_from_this<Responder::Impl> {
 public:
  Impl(std::shared_ptr<Server::Impl> server, tcp::socket socket)
      : server_(std::move(server)), stream_(std::move(socket)), timer_(server_->io) {
    ++server_->count;
  }
  ~Impl() { --server_->count; }

  void read();
  void close();
  void close_if_idle() {
    if (!busy_) close();
  }
  // Of any thread.
  template <class F>
  void later(F f) {
    if (server_->stopped) return;
    asio::post(server_->io, [self = shared_from_this(), f = std::move(f)]() mutable { f(*self); });
  }
  void send_whole(int status, const Headers&, const std::string& body);
  void send_head(int status, const Headers&, std::string ping);
  bool ready() const { return pending_.load() < server_->limits.stream_bytes; }
  void reserve(size_t bytes) { pending_ += bytes; }
  void send_piece(std::string_view piece);
  void end_pieces(std::string_view piece);
  void when_gone(std::function<void()> f);
  void when_ended(std::function<void(const Responder::End&)> f) { on_end_ = std::move(f); }

 private:
  void watch();
  void expire_after(std::chrono::milliseconds);
  void begin_request();
  void parse();
  void take_origin();
  bool take_header();
  void take_request();
  void refuse(const Failure&);
  void refuse(int status, const std::string& message);
  void linger();
  void gone();
  void ended(bool complete);
  void add_head(int status, const Headers&, std::optional<size_t> length);
  void write_more();
  void wait_to_ping();

  const std::shared_ptr<Server::Impl> server_;
  beast::tcp_stream stream_;
  asio::steady_timer timer_;  // of an idle connection, and of pings
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool busy_ = false;       // a request has begun, and its answer is not written
  bool answering_ = false;  // it is with the handler, or its answer is being written
  bool header_taken_ = false;
  size_t fields_ = 0;      // of the header
  std::string origin_;     // of the page that asks; "": none does
  bool watching_ = false;  // a read waits for the next request or the client's end
  bool writing_ = false, lingering_ = false, closed_ = false;
  bool chunked_ = false, close_after_ = false, without_body_ = false, finished_ = false;
  std::string out_, sending_;  // what waits; what the kernel is given, from sent_ on
  size_t sent_ = 0;
  Responder::End end_;
  std::function<void(const Responder::End&)> on_end_;
  std::string ping_;
  std::atomic<size_t> pending_{0};  // bytes that the reader has not taken
  std::mutex mutex_;
  bool is_gone_ = false;
  std::function<void()> on_gone_;
};

void Server::Impl::accept() {
  acceptor.async_accept(io, [self = shared_from_this()](const Failure& failure, tcp::socket socket) {
    if (failure == asio::error::operation_aborted || self->stopped) return;
    if (!failure) {
      self->accepted(std::move(socket));
      return self->accept();
    }
    // No more files may be open, for example.
    self->again.expires_after(std::chrono::milliseconds(100));
    self->again.async_wait([self](const Failure& cancelled) {
      if (!cancelled) self->accept();
    });
  });
}

void Server::Impl::accepted(tcp::socket socket) {
  if (count.load() >= limits.connections) return;  // which closes it
  Failure ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto connection = std::make_shared<Responder::Impl>(shared_from_this(), std::move(socket));
  std::erase_if(open, [](const auto& weak) { return weak.expired(); });
  open.push_back(connection);
  connection->read();
}

void Responder::Impl::close() {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  stream_.close();
  ended(false);
  gone();
}

void Responder::Impl::ended(bool complete) {
  if (const auto f = std::exchange(on_end_, nullptr)) {
    end_.complete = complete;
    f(end_);
  }
}

void Responder::Impl::gone() {
  std::function<void()> f;
  {
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
    f = std::exchange(on_gone_, nullptr);
  }
  if (f && !finished_) f();
}

void Responder::Impl::when_gone(std::function<void()> f) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_gone_) {
      on_gone_ = std::move(f);
      return;
    }
  }
  f();
}

// --- a request comes -----------------------------------------------------------------------------

void Responder::Impl::read() {
  if (closed_) return;
  const Limits& limits = server_->limits;
  parser_.emplace();
  parser_->header_limit(limits.header_bytes);
  parser_->body_limit(limits.body_bytes);
  // An extension says nothing that anybody here reads, and has hidden requests from proxies.
  static auto refuse_extension = [](std::uint64_t, beast::string_view extension, Failure& failure) {
    if (!extension.empty()) failure = beast::http::error::bad_chunk_extension;
  };
  parser_->on_chunk_header(refuse_extension);
  finished_ = chunked_ = without_body_ = header_taken_ = false;
  end_ = {};
  ping_.clear();
  if (buffer_.size() > 0) return begin_request();
  if (server_->draining) return close();
  expire_after(limits.idle);
  watch();
}

// A deadline of what the client has to say.
void Responder::Impl::expire_after(std::chrono::milliseconds most) {
  timer_.expires_after(most);
  timer_.async_wait([self = shared_from_this()](const Failure& cancelled) {
    if (!cancelled && !self->answering_) self->close();
  });
}

// Reads what comes, also while an answer is computed, so that the end of a connection is seen. The
// only read of the socket.
void Responder::Impl::watch() {
  if (watching_ || closed_) return;
  watching_ = true;
  stream_.expires_never();
  stream_.async_read_some(buffer_.prepare(kReadAtOnce),
                          [self = shared_from_this()](const Failure& failure, size_t bytes) {
                            self->watching_ = false;
                            // What was read may be told after the last write, which closed.
                            if (failure || self->closed_) return self->close();
                            self->buffer_.commit(bytes);
                            if (self->lingering_) {
                              self->buffer_.clear();
                              return self->watch();
                            }
                            if (!self->busy_) return self->begin_request();
                            if (!self->answering_) return self->parse();
                            // Of requests to come so much is taken, and no more.
                            if (self->buffer_.size() < kReadAtOnce) self->watch();
                          });
}

void Responder::Impl::begin_request() {
  busy_ = true;
  expire_after(server_->limits.header);
  parse();
}

// Gives the parser what was read, and reads on where that is not all.
void Responder::Impl::parse() {
  while (!parser_->is_done()) {
    Failure failure;
    const bool in_header = !parser_->is_header_done();
    size_t used = 0;
    if (buffer_.size() > 0) used = parser_->put(buffer_.data(), failure);
    const std::string_view taken(static_cast<const char*>(buffer_.data().data()), used);
    // obs-fold (RFC 9112, 5.2), by which two servers read one header differently.
    if (in_header && (taken.find("\r\n ") != taken.npos || taken.find("\r\n\t") != taken.npos))
      return refuse(400, "a header has a line for each field");
    buffer_.consume(used);
    if (failure && failure != beast::http::error::need_more) return refuse(failure);
    if (parser_->is_header_done() && !header_taken_) {
      header_taken_ = true;
      if (!take_header()) return;
      continue;
    }
    if (failure || used == 0) {
      // Lines of chunks and trailers are short.
      if (buffer_.size() > std::max<size_t>(server_->limits.header_bytes, kReadAtOnce))
        return refuse(400, "no HTTP request: a line is too long");
      return watch();
    }
  }
  take_request();
}

// The fields of a message, with their names in lower case.
static Headers fields_of(const beast::http::request_header<>& message) {
  Headers fields;
  for (const auto& field : message)
    fields.emplace_back(lower({field.name_string().data(), field.name_string().size()}),
                        std::string(field.value()));
  return fields;
}

// As far as the header was read.
void Responder::Impl::take_origin() {
  const beast::string_view origin = parser_->get()[beast::http::field::origin];
  origin_.assign(origin.data(), origin.size());
}

// Whether to read on.
bool Responder::Impl::take_header() {
  const auto& header = parser_->get();
  const Head head{std::string(header.target()), header.version(), fields_of(header)};
  if (const auto refusal = refusal_of(head, server_->doors)) {
    refuse(refusal->first, refusal->second);
    return false;
  }
  fields_ = static_cast<size_t>(std::distance(header.begin(), header.end()));
  expire_after(server_->limits.body);
  const beast::string_view expect = header[beast::http::field::expect];
  if (lower({expect.data(), expect.size()}) == "100-continue") {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    write_more();
  }
  return true;
}

void Responder::Impl::take_request() {
  const auto& fields = parser_->get();
  // A field in a trailer would pass a proxy that sets or removes it in headers.
  if (static_cast<size_t>(std::distance(fields.begin(), fields.end())) != fields_)
    return refuse(400, "a request has no trailer");
  timer_.cancel();
  answering_ = true;
  take_origin();
  auto message = parser_->release();
  close_after_ = !message.keep_alive();
  chunked_ = message.version() >= 11;
  without_body_ = message.method() == beast::http::verb::head;
  Request request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const size_t query = target.find('?');
  request.path = target.substr(0, query);
  if (query != target.npos) request.query = target.substr(query + 1);
  request.headers = fields_of(message);
  request.body = std::move(message.body());
  request.preflight = request.method == "OPTIONS" && allows(server_->doors.origins, origin_) &&
                      message.count(beast::http::field::access_control_request_method) > 0;
  if (buffer_.size() < kReadAtOnce) watch();
  server_->handler(std::move(request), Responder(shared_from_this()));
}

void Responder::Impl::refuse(const Failure& failure) {
  using beast::http::error;
  if (failure == error::header_limit)
    return refuse(431, "the header has more than " + std::to_string(server_->limits.header_bytes) + " bytes");
  if (failure == error::body_limit)
    return refuse(413, "the body has more than " + std::to_string(server_->limits.body_bytes) + " bytes");
  if (failure == beast::error::timeout || failure == error::end_of_stream ||
      failure == error::partial_message ||
      failure.category() != beast::http::make_error_code(error::bad_version).category())
    return close();
  refuse(400, "no HTTP request: " + failure.message());
}

void Responder::Impl::refuse(int status, const std::string& message) {
  timer_.cancel();
  take_origin();
  close_after_ = lingering_ = true, busy_ = answering_ = true;
  send_whole(status, {{"content-type", "application/json"}}, server_->error_body(status, message));
}

// What the client still sends is read for a while: a connection that is closed before that loses
// the answer that says why.
void Responder::Impl::linger() {
  if (closed_) return;
  Failure ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  timer_.expires_after(std::chrono::seconds(2));
  timer_.async_wait([self = shared_from_this()](const Failure& cancelled) {
    if (!cancelled) self->close();
  });
  buffer_.clear();
  watch();
}

// --- its answer ----------------------------------------------------------------------------------

void Responder::Impl::add_head(int status, const Headers& headers, std::optional<size_t> length) {
  end_.status = status;
  close_after_ |= server_->draining.load();
  if (!length && !chunked_) close_after_ = true;
  out_ += "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason(status)) + "\r\n";
  const auto add = [this](const Headers& all) {
    for (const auto& [name, value] : all) out_ += name + ": " + value + "\r\n";
  };
  add(headers), add(origin_headers(server_->doors.origins, origin_));
  if (length)
    out_ += status == 204 ? "" : "content-length: " + std::to_string(*length) + "\r\n";
  else if (chunked_)
    out_ += "transfer-encoding: chunked\r\n";
  if (close_after_) out_ += "connection: close\r\n";
  out_ += "\r\n";
}

void Responder::Impl::send_whole(int status, const Headers& headers, const std::string& body) {
  if (closed_) return;
  add_head(status, headers, body.size());
  if (!without_body_) out_ += body;
  finished_ = true;
  write_more();
}

void Responder::Impl::send_head(int status, const Headers& headers, std::string ping) {
  if (closed_) return;
  ping_ = std::move(ping);
  add_head(status, headers, std::nullopt);
  write_more();
  if (!ping_.empty()) wait_to_ping();
}

void Responder::Impl::wait_to_ping() {
  timer_.expires_after(server_->limits.keep_alive);
  timer_.async_wait([self = shared_from_this()](const Failure& cancelled) {
    if (cancelled || self->closed_ || self->finished_ || self->ping_.empty()) return;
    if (self->out_.empty() && !self->writing_) self->send_piece(self->ping_);
    self->wait_to_ping();
  });
}

void Responder::Impl::send_piece(std::string_view piece) {
  if (closed_ || finished_ || piece.empty()) return;
  if (!without_body_) out_ += chunked_ ? chunk_of(piece) : std::string(piece);
  write_more();
}

void Responder::Impl::end_pieces(std::string_view piece) {
  if (closed_ || finished_) return;
  send_piece(piece);
  if (chunked_ && !without_body_) out_ += "0\r\n\r\n";
  finished_ = true;
  timer_.cancel();
  write_more();
}

void Responder::Impl::write_more() {
  if (writing_ || closed_) return;
  if (sent_ == sending_.size()) {
    sending_.clear(), sent_ = 0;
    sending_.swap(out_);
  }
  if (sending_.empty()) {
    pending_ = 0;
    if (!finished_) return;
    answering_ = false;
    {
      const std::lock_guard lock(mutex_);
      on_gone_ = nullptr;
    }
    ended(true);
    if (lingering_) return linger();
    if (close_after_) return close();
    busy_ = false;
    return read();
  }
  writing_ = true;
  stream_.expires_after(server_->limits.write);
  const size_t bytes = std::min(sending_.size() - sent_, kWriteAtOnce);
  asio::async_write(stream_, asio::buffer(sending_.data() + sent_, bytes),
                    [self = shared_from_this(), bytes](const Failure& failure, size_t) {
                      self->writing_ = false;
                      if (failure) return self->close();
                      self->sent_ += bytes, self->end_.bytes += bytes;
                      self->write_more();
                    });
}

Responder::Responder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Responder::Responder(Responder&&) noexcept = default;
Responder& Responder::operator=(Responder&&) noexcept = default;

Responder::~Responder() {
  Headers none;
  std::string nothing;
  if (give_whole(0, none, nothing)) return;
  if (impl_) impl_->later([](Impl& c) { c.close(); });
}

void Responder::answer(int status, Headers headers, std::string body) {
  if (give_whole(status, headers, body)) return;
  if (!impl_) return;
  impl_->later([status, headers = std::move(headers), body = std::move(body)](Impl& c) {
    c.send_whole(status, headers, body);
  });
  impl_.reset();
}

void Responder::begin(int status, Headers headers, std::string ping) {
  if (!impl_) return;
  impl_->later([status, headers = std::move(headers), ping = std::move(ping)](Impl& c) {
    c.send_head(status, headers, ping);
  });
}

bool Responder::ready() const {
  return !impl_ || impl_->ready();
}

void Responder::write(std::string piece) {
  if (!impl_) return;
  impl_->reserve(piece.size());
  impl_->later([piece = std::move(piece)](Impl& c) { c.send_piece(piece); });
}

void Responder::finish(std::string piece) {
  if (!impl_) return;
  impl_->reserve(piece.size());
  impl_->later([piece = std::move(piece)](Impl& c) { c.end_pieces(piece); });
  impl_.reset();
}

void Responder::on_gone(std::function<void()> f) {
  if (impl_) impl_->when_gone(std::move(f));
}

void Responder::on_end(std::function<void(const End&)> f) {
  if (impl_) impl_->when_ended(std::move(f));
}

// --- the server ----------------------------------------------------------------------------------

Result<Server> Server::listen(const Address& at, const Limits& limits, Handler handler,
                              ErrorBody error_body) {
  auto impl = std::make_shared<Impl>(limits, std::move(handler), std::move(error_body));
  INVAR_TRY(impl->doors.origins, origins_of(at.origins));
  const std::string where = at.host + ":" + std::to_string(at.port);
  Failure failure;
  tcp::resolver resolver(impl->io);
  const auto found = resolver.resolve(at.host, std::to_string(at.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, failure);
  if (failure) return bad_input(at.host + ": no address of this machine: " + failure.message());
  const tcp::endpoint endpoint = found.begin()->endpoint();
  impl->acceptor.open(endpoint.protocol(), failure);
  if (!failure) impl->acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
  if (!failure) impl->acceptor.bind(endpoint, failure);
  if (!failure) impl->acceptor.listen(asio::socket_base::max_listen_connections, failure);
  if (failure) return bad_input("cannot listen at " + where + ": " + failure.message());
  impl->doors.any_host = !endpoint.address().is_loopback() && at.names.empty();
  impl->doors.names = {"localhost", "127.0.0.1", "[::1]", host_of(at.host)};
  for (const std::string& name : at.names) impl->doors.names.push_back(host_of(name));
  impl->accept();
  impl->thread = std::thread([io = &impl->io] { io->run(); });
  return Server(std::move(impl));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::Server(Server&&) noexcept = default;
Server::~Server() {
  if (impl_) stop();
}

uint16_t Server::port() const {
  Failure ignored;
  return impl_->acceptor.local_endpoint(ignored).port();
}

size_t Server::connections() const {
  return impl_->count;
}

void Server::drain() {
  impl_->draining = true;
  asio::post(impl_->io, [impl = impl_] {
    for (const auto& weak : impl->open)
      if (const auto connection = weak.lock()) connection->close_if_idle();
  });
}

void Server::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [impl = impl_] {
    Failure ignored;
    impl->stopped = true;
    impl->acceptor.close(ignored);
    impl->again.cancel();
    for (const auto& weak : impl->open)
      if (const auto connection = weak.lock()) connection->close();
  });
  impl_->thread.join();
}

#else  // without Boost

class Responder::Impl {};
struct Server::Impl {};
Responder::Responder(std::shared_ptr<Impl>) {}
Responder::Responder(Responder&&) noexcept = default;
Responder& Responder::operator=(Responder&&) noexcept = default;
Responder::~Responder() {
  answer(0, {}, "");
}
void Responder::answer(int status, Headers headers, std::string body) {
  give_whole(status, headers, body);
}
void Responder::begin(int, Headers, std::string) {}
bool Responder::ready() const {
  return true;
}
void Responder::write(std::string) {}
void Responder::finish(std::string) {}
void Responder::on_gone(std::function<void()>) {}
void Responder::on_end(std::function<void(const End&)>) {}
Result<Server> Server::listen(const Address&, const Limits&, Handler, ErrorBody) {
  return not_covered("this build has no server: build where Boost's headers are (libboost-dev)");
}
Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::Server(Server&&) noexcept = default;
Server::~Server() = default;
uint16_t Server::port() const {
  return 0;
}
size_t Server::connections() const {
  return 0;
}
void Server::drain() {}
void Server::stop() {}

#endif

}  // namespace invar::http
