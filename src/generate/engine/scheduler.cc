// Many answers, several computed together.
#include <algorithm>
#include <utility>

#include "generate/engine/engine_impl.h"
#include "num/env.h"

namespace invar::generate {

struct Scheduler::Impl {
  struct Row {
    size_t request;
    GenerationLoop loop;
  };
  void begin_waiting();

  Engine::Impl& engine;
  Observer& observer;
  std::vector<std::unique_ptr<Row>> rows;  // by the session's sequence; null: it is free
  std::vector<Request*> requests = {};     // by number; null: cancelled or answered
  size_t waiting = 0;                      // the first that no sequence has had yet
  std::unique_ptr<Phase> decoding = {};    // prompts and answers
  int64_t made = 0, total = 0;             // tokens of answers; the most there can be
};

// A free sequence takes the next request at once, so that later steps are full.
void Scheduler::Impl::begin_waiting() {
  for (size_t i = 0; i < rows.size(); ++i) {
    while (waiting < requests.size() && !requests[waiting]) ++waiting;
    if (rows[i] || waiting == requests.size()) continue;
    rows[i].reset(
        new Row{waiting, {*engine.session, engine.task(*requests[waiting]), 0, static_cast<int64_t>(i)}});
    ++waiting;
  }
}

Scheduler::Scheduler(Engine& engine, Observer& observer)
    : impl_(new Impl{
          *engine.impl_, observer,
          std::vector<std::unique_ptr<Impl::Row>>(static_cast<size_t>(engine.session().sequences()))}) {
  impl_->engine.held.clear(), impl_->engine.memory_user = nullptr;
}
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

size_t Scheduler::add(Request& request) {
  impl_->requests.push_back(&request);
  impl_->total += request.max_new_tokens;
  return impl_->requests.size() - 1;
}

void Scheduler::cancel(size_t request) {
  if (!std::exchange(impl_->requests.at(request), nullptr)) return;
  for (auto& row : impl_->rows)
    if (row && row->request == request) row.reset();
}

Result<std::optional<Scheduler::Complete>> Scheduler::next() {
  const num::ArithmeticEnv env;
  Engine::Impl& e = impl_->engine;
  if (!impl_->decoding) impl_->decoding = impl_->observer.phase("decode");
  for (;;) {
    for (auto& row : impl_->rows) {
      if (!row || !row->loop.complete()) continue;
      e.session->finish_overlapped();
      const std::unique_ptr<Impl::Row> done = std::move(row);
      Request& request = *std::exchange(impl_->requests[done->request], nullptr);
      INVAR_TRY(Answer answer, e.seal(request, done->loop.generation(), impl_->observer));
      return std::optional(Complete{done->request, std::move(answer)});
    }
    impl_->begin_waiting();
    std::vector<GenerationLoop*> open;
    for (const auto& row : impl_->rows)
      if (row) open.push_back(&row->loop);
    if (open.empty()) {
      impl_->decoding->done(std::to_string(impl_->made) + " tokens");
      impl_->decoding.reset();
      return std::optional<Complete>();
    }
    const auto tokens = [&] {
      size_t count = 0;
      for (const GenerationLoop* loop : open) count += loop->generation().tokens.size();
      return static_cast<int64_t>(count);
    };
    impl_->made -= tokens();
    INVAR_CHECK_OK(GenerationLoop::advance(*e.session, open));
    impl_->made += tokens();
    impl_->decoding->progress(impl_->made, impl_->total, "tokens");
  }
}

}  // namespace invar::generate
