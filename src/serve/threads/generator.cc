#include "serve/threads/generator.h"

#include <algorithm>
#include <utility>

namespace invar::serve {

Generator::Generator(generate::Engine& engine, size_t queue, Worker& text,
                     std::function<void(const Error&)> failed)
    : engine_(engine), queue_(queue), text_(text), failed_(std::move(failed)), thread_([this] { run(); }) {}

void Generator::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool Generator::submit(const std::vector<std::shared_ptr<Job>>& jobs) {
  {
    const std::lock_guard lock(mutex_);
    const auto sequences = static_cast<size_t>(engine_.session().sequences());
    const size_t free = sequences - std::min(running_.load(), sequences);
    if (dead_ || waiting_ + added_.size() + jobs.size() > queue_ + free) return false;
    added_.insert(added_.end(), jobs.begin(), jobs.end());
  }
  wake_.notify_one();
  return true;
}

void Generator::cancel(const std::shared_ptr<Job>& job) {
  job->cancelled = true;
  {
    const std::lock_guard lock(mutex_);
    check_cancelled_ = true;
  }
  wake_.notify_one();
}

Generator::Load Generator::load() const {
  const std::lock_guard lock(mutex_);
  return {running_, waiting_ + added_.size(), figures_};
}

void Generator::end_all(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    end_ = std::make_shared<Error>(error);
  }
  wake_.notify_one();
}

void Generator::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    for (std::shared_ptr<Job>& job : added_) jobs_.emplace(SIZE_MAX - jobs_.size(), std::move(job));
    added_.clear();
  }
  for (auto& [number, job] : jobs_)
    text_.post([job = std::move(job), error] {
      if (!job->cancelled) job->done(error);
    });
  jobs_.clear();
}

void Generator::take_new(generate::Scheduler& scheduler) {
  std::vector<std::shared_ptr<Job>> added;
  bool check = false;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock,
               [this] { return stopping_ || end_ || check_cancelled_ || !added_.empty() || !jobs_.empty(); });
    added.swap(added_);
    check = std::exchange(check_cancelled_, false);
    waiting_ += added.size();
  }
  for (std::shared_ptr<Job>& job : added)
    if (!job->cancelled) jobs_.emplace(scheduler.add(job->request, job->turn), std::move(job));
  if (check) {
    std::erase_if(jobs_, [&](const auto& entry) {
      if (!entry.second->cancelled) return false;
      scheduler.cancel(entry.first);
      return true;
    });
  }
}

void Generator::deliver(generate::Scheduler::Step step) {
  using Token = generate::Scheduler::Step::Token;
  std::vector<std::pair<std::shared_ptr<Job>, Token>> tokens;
  for (Token& token : step.tokens) tokens.emplace_back(jobs_.at(token.request), std::move(token));
  std::vector<std::pair<std::shared_ptr<Job>, Result<generate::Answer>>> done;
  for (auto& [request, answer] : step.complete)
    done.emplace_back(jobs_.extract(request).mapped(), std::move(answer));
  for (auto& [request, error] : step.failed) done.emplace_back(jobs_.extract(request).mapped(), error);
  if (tokens.empty() && done.empty()) return;
  text_.post([tokens = std::move(tokens), done = std::move(done)]() mutable {
    for (const auto& [job, token] : tokens)
      if (!job->cancelled && job->token) job->token(token.token, token.logprobs);
    for (auto& [job, answer] : done)
      if (!job->cancelled && job->done) job->done(std::move(answer));
  });
}

void Generator::publish(const generate::Scheduler& scheduler) {
  const auto figures = scheduler.figures();
  const std::lock_guard lock(mutex_);
  running_ = scheduler.running(), waiting_ = scheduler.waiting(), figures_ = figures;
}

void Generator::run() {
  generate::Observer observer;
  generate::Scheduler scheduler(engine_, observer, engine_.session().chunk(), /*by_time=*/true);
  for (;;) {
    take_new(scheduler);
    std::shared_ptr<Error> end;
    {
      const std::lock_guard lock(mutex_);
      end = std::exchange(end_, nullptr);
    }
    if (end) {
      for (const auto& [number, job] : jobs_) scheduler.cancel(number);
      fail(*end);
    }
    publish(scheduler);
    if (jobs_.empty()) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      continue;
    }
    auto step = scheduler.step();
    if (!step) {
      {
        const std::lock_guard lock(mutex_);
        dead_ = true;
      }
      fail(step.error());
      failed_(step.error());
      return;
    }
    deliver(*std::move(step));
    publish(scheduler);
  }
}

}  // namespace invar::serve
