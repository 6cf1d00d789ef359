// Parts of <mutex>, <shared_mutex>, <condition_variable>, <thread> and <future> that a C++ library
// without threads lacks. Included in front of every file of src/device and src/run, and of the
// verifier. There is one lane and one stage, so no thread is ever started, and nothing waits.
#pragma once

#include <cstdlib>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace std {

struct mutex {
  void lock() {}
  void unlock() {}
  bool try_lock() { return true; }
};

using shared_mutex = mutex;

template <class M>
class unique_lock {
 public:
  unique_lock() = default;
  explicit unique_lock(M&) {}
  void lock() {}
  void unlock() {}
};
template <class M>
using shared_lock = unique_lock<M>;

struct condition_variable {
  template <class Lock, class Condition>
  void wait(Lock&, Condition holds) {
    if (!holds()) abort();  // nobody could change that
  }
  template <class Lock>
  void wait(Lock&) {
    abort();
  }
  void notify_one() {}
  void notify_all() {}
};

struct thread {
  thread() = default;
  template <class F, class... Args>
  explicit thread(F&&, Args&&...) {
    abort();
  }
  bool joinable() const { return false; }
  void join() {}
  static unsigned hardware_concurrency() { return 1; }
};

namespace this_thread {
inline void yield() {}
}  // namespace this_thread

enum class launch { async = 1, deferred = 2 };

template <class T>
class future {
 public:
  future() = default;
  explicit future(T value) : value_(std::move(value)) {}
  bool valid() const { return value_.has_value(); }
  void wait() const {}
  T get() {
    T value = *std::move(value_);
    value_.reset();
    return value;
  }

 private:
  optional<T> value_;
};

template <>
class future<void> {
 public:
  bool valid() const { return false; }
};

// Runs at once.
template <class F>
future<invoke_result_t<F>> async(launch, F&& f) {
  return future<invoke_result_t<F>>(f());
}

}  // namespace std
