// The thread of an engine: requests come from any thread, join the batch between two steps, and
// leave it when their answers are complete or nobody wants them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "generate/engine/engine.h"
#include "serve/threads/worker.h"

namespace invar::serve {

// A request on its way. Its functions are called on the thread of the worker `text`.
struct Job {
  generate::Request request;
  generate::Scheduler::Turn turn = {};
  std::function<void(int32_t, const std::optional<sample::StepLogprobs>&)> token;
  // Once, behind the last token; never of a job that was cancelled.
  std::function<void(Result<generate::Answer>)> done;
  std::atomic<bool> cancelled = false;
};

class Generator {
 public:
  struct Load {
    size_t running = 0, waiting = 0;
    generate::Scheduler::Figures engine = {};
  };
  // At most `queue` jobs wait. `failed` gets the error of a step, which ends everything: all jobs
  // have it. Engine and worker outlive it.
  Generator(generate::Engine&, size_t queue, Worker& text, std::function<void(const Error&)> failed);
  ~Generator() { stop(); }
  // Ends the thread, when no job is left.
  void stop();
  // All of these jobs, or false: too many wait.
  bool submit(const std::vector<std::shared_ptr<Job>>&);
  void cancel(const std::shared_ptr<Job>&);
  Load load() const;
  // Ends the jobs that are there with this error.
  void end_all(const Error&);

 private:
  void run();
  void take_new(generate::Scheduler&);
  void deliver(generate::Scheduler::Step);
  void publish(const generate::Scheduler&);
  void fail(const Error&);

  generate::Engine& engine_;
  const size_t queue_;
  Worker& text_;
  const std::function<void(const Error&)> failed_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Job>> added_;  // not yet with the scheduler
  std::shared_ptr<Error> end_;
  bool check_cancelled_ = false, stopping_ = false, dead_ = false;
  std::atomic<size_t> running_{0}, waiting_{0};
  generate::Scheduler::Figures figures_;         // as of the last step
  std::map<size_t, std::shared_ptr<Job>> jobs_;  // by the scheduler's number; of the thread
  std::thread thread_;
};

}  // namespace invar::serve
