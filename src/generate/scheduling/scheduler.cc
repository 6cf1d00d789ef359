// Many answers, several computed together.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "generate/engine/engine_impl.h"
#include "num/env.h"

namespace invar::generate {

struct Scheduler::Impl {
  struct Row {
    size_t request;
    GenerationLoop loop;
    size_t told = 0;  // tokens that steps have brought
  };
  void begin_waiting();
  void seal_complete(Step&);
  // Computes a part of the prompts; the loops that take a token now.
  Result<std::vector<GenerationLoop*>> ready();

  Engine::Impl& engine;
  Observer& observer;
  const int64_t prompt_tokens;
  std::vector<std::unique_ptr<Row>> rows;    // by the session's sequence; null: it is free
  std::map<size_t, Request*> requests = {};  // without those that are cancelled or answered
  size_t added = 0;
  size_t first_waiting = 0;              // the first that no sequence has had yet
  std::deque<Complete> answered = {};    // that next() has yet to return
  std::unique_ptr<Phase> decoding = {};  // prompts and answers
  int64_t made = 0, total = 0;           // tokens of answers; the most there can be
};

// A free sequence takes the next request at once, so that later steps are full.
void Scheduler::Impl::begin_waiting() {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]) continue;
    const auto next = requests.lower_bound(first_waiting);
    if (next == requests.end()) return;
    rows[i].reset(
        new Row{next->first, {*engine.session, engine.task(*next->second), 0, static_cast<int64_t>(i)}});
    first_waiting = next->first + 1;
  }
}

void Scheduler::Impl::seal_complete(Step& step) {
  for (auto& row : rows) {
    if (!row || (!row->loop.complete() && !row->loop.problem())) continue;
    engine.session->finish_overlapped();
    const std::unique_ptr<Row> done = std::move(row);
    Request& request = *requests.extract(done->request).mapped();
    if (done->loop.problem()) {
      step.failed.push_back({done->request, *done->loop.problem()});
      continue;
    }
    auto answer = engine.seal(request, done->loop.generation(), observer);
    if (answer)
      step.complete.push_back({done->request, *std::move(answer)});
    else
      step.failed.push_back({done->request, answer.error()});
  }
}

Result<std::vector<GenerationLoop*>> Scheduler::Impl::ready() {
  std::vector<GenerationLoop*> all, reading;
  for (const auto& row : rows)
    if (row) all.push_back(&row->loop);
  if (prompt_tokens == 0) return all;
  for (GenerationLoop* const loop : all)
    if (loop->unfed() > 0) reading.push_back(loop);
  INVAR_CHECK_OK(GenerationLoop::prefill(*engine.session, reading, prompt_tokens));
  std::erase_if(all, [](const GenerationLoop* loop) { return loop->unfed() > 0; });
  return all;
}

Scheduler::Scheduler(Engine& engine, Observer& observer, int64_t prompt_tokens)
    : impl_(new Impl{
          *engine.impl_, observer, prompt_tokens,
          std::vector<std::unique_ptr<Impl::Row>>(static_cast<size_t>(engine.session().sequences()))}) {
  impl_->engine.held.clear(), impl_->engine.memory_user = nullptr;
}
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

size_t Scheduler::add(Request& request) {
  impl_->requests[impl_->added] = &request;
  impl_->total += request.max_new_tokens;
  return impl_->added++;
}

void Scheduler::cancel(size_t request) {
  if (impl_->requests.erase(request) == 0) return;
  for (auto& row : impl_->rows)
    if (row && row->request == request) row.reset();
}

size_t Scheduler::running() const {
  return static_cast<size_t>(
      std::ranges::count_if(impl_->rows, [](const auto& row) { return row != nullptr; }));
}

size_t Scheduler::waiting() const {
  return impl_->requests.size() - running();
}

Result<Scheduler::Step> Scheduler::step() {
  const num::ArithmeticEnv env;
  Step step;
  impl_->begin_waiting();
  INVAR_TRY(std::vector<GenerationLoop*> open, impl_->ready());
  std::erase_if(open, [](const GenerationLoop* loop) { return loop->complete(); });  // without a token
  if (!open.empty()) {
    INVAR_CHECK_OK(GenerationLoop::advance(*impl_->engine.session, open));
  }
  for (const auto& row : impl_->rows)
    for (; row && row->told < row->loop.generation().tokens.size(); ++row->told) {
      const Generation& made = row->loop.generation();
      auto& token = step.tokens.emplace_back(Step::Token{row->request, made.tokens[row->told], {}});
      if (row->told < made.logprobs.size()) token.logprobs = made.logprobs[row->told];
    }
  impl_->made += static_cast<int64_t>(step.tokens.size());
  impl_->seal_complete(step);
  return step;
}

Result<std::optional<Scheduler::Complete>> Scheduler::next() {
  if (!impl_->decoding) impl_->decoding = impl_->observer.phase("decode");
  while (impl_->answered.empty() && !impl_->requests.empty()) {
    INVAR_TRY(Step done, step());
    impl_->decoding->progress(impl_->made, impl_->total, "tokens");
    if (!done.failed.empty()) return done.failed.front().error;
    for (Complete& complete : done.complete) impl_->answered.push_back(std::move(complete));
  }
  if (impl_->answered.empty()) {
    impl_->decoding->done(std::to_string(impl_->made) + " tokens");
    impl_->decoding.reset();
    return std::optional<Complete>();
  }
  Complete first = std::move(impl_->answered.front());
  impl_->answered.pop_front();
  return std::optional(std::move(first));
}

}  // namespace invar::generate
