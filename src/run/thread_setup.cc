// The thread pool of a session or a function, see thread_setup.h.
#include "run/thread_setup.h"

#include <algorithm>
#include <atomic>

#include "num/env.h"

namespace invar::run {

Error wrong_arithmetic() {
  return {Code::internal,
          "this thread does not compute IEEE arithmetic as specified (rounding or flush-to-zero)"};
}

Result<std::unique_ptr<Pool>> start_pool(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    return bad_input("threads must be 0 (one per core) to " + std::to_string(kMaxThreads));
  if (threads == 0) threads = std::min(available_cores(), kMaxThreads);
  struct Start {
    std::atomic<int> checked{0}, wrong{0};
  };
  const auto start = std::make_shared<Start>();
  auto check = [start] {
    start->wrong += !num::arithmetic_env_ok();
    ++start->checked;
    start->checked.notify_one();
  };
  auto pool = std::make_unique<Pool>(threads, [check](const std::function<void()>& work) {
    const num::ArithmeticEnv env;
    check();
    work();
  });
  const num::ArithmeticEnv env;
  check();
  for (int done; (done = start->checked) < pool->threads();) start->checked.wait(done);
  if (start->wrong) return wrong_arithmetic();
  return pool;
}

}  // namespace invar::run
