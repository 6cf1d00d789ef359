// invar serve: OpenAI's protocol over HTTP, until a signal ends it.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "commands.h"
#include "console.h"
#include "generate/engine/execution.h"
#include "http/server.h"
#include "progress/interrupt.h"
#include "serve/service.h"
#include "serving/opened.h"
#include "serving/supervisor.h"

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

http::Limits limits_of(const ServeCommand& c) {
  http::Limits limits;
  limits.header_bytes = static_cast<uint32_t>(std::min<uint64_t>(c.max_header, uint64_t{1} << 30));
  limits.body_bytes = c.max_body;
  limits.connections = static_cast<size_t>(c.max_connections);
  limits.header = std::chrono::seconds(c.header_timeout), limits.body = std::chrono::seconds(c.body_timeout);
  limits.idle = std::chrono::seconds(c.idle_timeout), limits.write = std::chrono::seconds(c.write_timeout);
  return limits;
}

// Of an address of a database what is no password.
std::string place_of_receipts(const ServeCommand& c) {
  if (c.store.empty()) return c.receipts;
  const size_t scheme = c.store.find("://");
  if (scheme == c.store.npos) return c.store;
  return c.store.substr(0, scheme);
}

// What is of one model alone.
Status check_several(const ServeCommand& c) {
  const struct {
    const char* option;
    bool given;
  } options[] = {{"--revision", !c.model.revision.empty()},
                 {"--plan", !c.model.plan.empty()},
                 {"--task-dir", !c.model.task_dir.empty()},
                 {"--name", !c.model.name.empty()},
                 {"--tensor-parallel", c.execution.tensor_parallel != 1},
                 {"--lora-modules", !c.lora_modules.empty()}};
  for (const auto& [option, given] : options)
    if (given)
      return bad_input(std::string(option) + " is of one model, and " + std::to_string(c.model_names.size()) +
                       " are given with --model-name: start a server for each");
  return {};
}

Result<Opened> open_models(const ServeCommand& c, generate::Observer& observer) {
  if (c.model_names.size() > 1) {
    INVAR_CHECK_OK(check_several(c));
  }
  Opened opened;
  generate::ModelOptions options = c.model;
  for (const std::string& name : c.model_names) {
    options.model_name = name;
    INVAR_CHECK_OK(open_model(options, c.execution, {.batch_size = c.batch_size, .positions = c.context},
                              c.lora_modules, opened, observer));
  }
  return opened;
}

Status do_serve(const ServeCommand& c) {
  Console console(false);
  const auto starting = generate::start(c.execution);
  INVAR_TRY(const Opened opened, open_models(c, console));
  serve::ServiceOptions options;
  options.archive = {c.receipts, c.store, c.store_prompts, c.answer_repeats, c.store_failure == "continue"};
  options.archive.keep = {c.store_max_age, c.store_max_receipts};
  options.queue = static_cast<size_t>(c.queue);
  options.api_keys = c.api_key_file;
  options.log = log_as(c.log);
  INVAR_TRY(const auto service, serve::Service::make(opened.models(), options));
  Ending ending;
  service->on_failure([&](const Error& error) { ending.by(error); });
  INVAR_TRY(http::Server server,
            http::Server::listen(
                {c.host, static_cast<uint16_t>(c.port), c.allowed_hosts, c.allowed_origins}, limits_of(c),
                [&](http::Request request, http::Responder responder) {
                  service->handle(std::move(request), std::move(responder));
                },
                [&](int status, const std::string& message) {
                  if (options.log)
                    options.log({{"event", "refusal"}, {"status", status}, {"message", message}});
                  return serve::Service::error_body(status, message);
                }));
  service->count_connections([&] { return server.connections(); });
  std::signal(SIGHUP, SIG_IGN);
  on_next_signal([&] { ending.by_signal(); });
  console.note("serve", "http://" + c.host + ":" + std::to_string(server.port()) + "/v1, " +
                            opened.describe() + ", receipts in " + place_of_receipts(c));
  tell_supervisor("READY=1\nSTATUS=serving");
  const Status ended = ending.wait();
  tell_supervisor("STOPPING=1\nSTATUS=draining");
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
