// invar serve: OpenAI's protocol over HTTP, until a signal ends it.
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "commands.h"
#include "console.h"
#include "generate/engine/engine.h"
#include "generate/engine/execution.h"
#include "http/server.h"
#include "progress/interrupt.h"
#include "serve/service.h"

namespace invar::cli {
namespace {

// What ends the server: a signal, or an error after which nothing can be computed.
class Ending {
 public:
  void by_signal() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void by(const Error& error) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (status_) status_ = error;
    changed_.notify_all();
  }
  Status wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  Status status_;
};

// What is left of connections has so long to take the last bytes.
constexpr std::chrono::seconds kLastBytes{5};

void drain(serve::Service& service, http::Server& server, std::chrono::seconds most) {
  service.drain();
  if (!service.wait_idle(most)) {
    service.end_all();
    service.wait_idle(kLastBytes);
  }
  server.drain();
  for (std::chrono::milliseconds waited{0}; server.connections() > 0 && waited < kLastBytes;
       waited += std::chrono::milliseconds(10))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  server.stop();
}

Status do_serve(const ServeCommand& c) {
  Console console(false);
  const auto starting = generate::start(c.execution);
  INVAR_TRY(const auto model, generate::Model::open(c.model, console));
  INVAR_TRY(generate::Engine engine,
            generate::Engine::open(model, c.execution, {.batch_size = c.batch_size, .positions = c.context},
                                   {}, console));
  INVAR_TRY(const auto service,
            serve::Service::make(engine, {c.receipts, static_cast<size_t>(c.queue), c.api_key_file}));
  http::Limits limits;
  limits.body_bytes = c.max_body;
  Ending ending;
  service->on_failure([&](const Error& error) { ending.by(error); });
  INVAR_TRY(http::Server server, http::Server::listen(
                                     {c.host, static_cast<uint16_t>(c.port), c.allowed_hosts}, limits,
                                     [&](http::Request request, http::Responder responder) {
                                       service->handle(std::move(request), std::move(responder));
                                     },
                                     serve::Service::error_body));
  service->count_connections([&] { return server.connections(); });
  std::signal(SIGHUP, SIG_IGN);
  on_next_signal([&] { ending.by_signal(); });
  console.note("serve", "http://" + c.host + ":" + std::to_string(server.port()) + "/v1, model " +
                            service->model_name() + ", " + std::to_string(engine.session().sequences()) +
                            " sequences of " + std::to_string(engine.positions()) + " tokens, receipts in " +
                            c.receipts);
  const Status ended = ending.wait();
  console.note("drain", "running answers have " + std::to_string(c.drain_timeout) +
                            " s; a second signal ends at once");
  drain(*service, server, std::chrono::seconds(c.drain_timeout));
  service->count_connections(nullptr);
  return ended;
}

}  // namespace

int serve(const ServeCommand& c) {
  return exit_code(do_serve(c));
}

}  // namespace invar::cli
