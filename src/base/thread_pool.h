// A thread pool with static partition: the ranges of a job are a function of (units, threads)
// alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

namespace invar {

constexpr int kMaxThreads = 1024;  // of a pool that a user sizes

class Pool {
 public:
  // `around` is called once in every thread that the pool starts and must call its argument, which
  // is the thread's whole work. It sets up per-thread state such as num's ArithmeticEnv, since base
  // knows no arithmetic. The calling thread is worker 0 and sets up its own.
  using Around = std::function<void(const std::function<void()>& work)>;
  // `threads` >= 1. The pool has fewer threads if the system starts fewer, such as for a limit of
  // processes or memory.
  explicit Pool(int threads, const Around& around = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  int threads() const;
  // Splits [0, units) into n = min(units, threads, at_most) contiguous near-equal ranges, calls
  // f(worker, begin, end) for each, and returns when all are done. Range w belongs to worker w. If
  // that thread is not awake yet, the calling thread computes the range as worker 0, so a busy
  // machine slows a job down but never stalls it. No two threads have the same worker number. f
  // must neither throw nor call run.
  void run(int64_t units, const std::function<void(int worker, int64_t begin, int64_t end)>& f,
           int at_most = 1 << 30);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Cores this process may use (its affinity mask, where the system has one).
int available_cores();

// Handing work to another thread costs about a microsecond, in which one core moves this many
// bytes.
constexpr int64_t kBytesPerWorker = 16 << 10;
// How many workers a call is worth that moves `bytes`: Pool::run's at_most.
inline int workers_for(int64_t bytes, int at_most) {
  return static_cast<int>(std::clamp<int64_t>(bytes / kBytesPerWorker, 1, at_most));
}

}  // namespace invar
