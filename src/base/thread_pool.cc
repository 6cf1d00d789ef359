// The thread pool with static partition, see thread_pool.h.
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace invar {
namespace {

// A decoding step is a few hundred short phases, and waking a sleeping thread takes about 50 us. So
// a waiting thread first spins (tens of us, as long as the pause between two phases or steps), then
// yields its core between looks, then sleeps. With more threads than cores it does not spin, since
// that would hold the core that the awaited thread needs.
constexpr int kSpins = 1000;
constexpr int kYields = 50;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns the first value of `a` that differs from `old`.
uint32_t wait_change(const std::atomic<uint32_t>& a, uint32_t old, int spins) {
  uint32_t now;
  for (int i = 0; i < spins; ++i) {
    if ((now = a.load(std::memory_order_acquire)) != old) return now;
    pause();
  }
  for (int i = 0; i < kYields; ++i) {
    if ((now = a.load(std::memory_order_acquire)) != old) return now;
    std::this_thread::yield();
  }
  while ((now = a.load(std::memory_order_acquire)) == old) a.wait(old, std::memory_order_acquire);
  return now;
}

// A worker's mailbox, on its own cache line so that posting to one worker does not disturb another.
// A posted job is computed by the thread that raises `claimed` to its number: the worker, or the
// calling thread if it is done before the worker is awake. All earlier jobs are claimed by then,
// because run() returns only when its ranges are done.
struct alignas(64) Mailbox {
  std::atomic<uint32_t> posted{0};
  std::atomic<uint32_t> claimed{0};

  bool claim(uint32_t job) {
    uint32_t before = job - 1;
    return claimed.compare_exchange_strong(before, job, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
};

}  // namespace

int available_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

struct Pool::Impl {
  int spins;
  std::vector<Mailbox> mailboxes;  // [0] is unused
  std::vector<std::thread> threads;
  alignas(64) std::atomic<uint32_t> busy{0};
  std::atomic<bool> stop{false};
  // The job; written before posting, read after receiving.
  const std::function<void(int, int64_t, int64_t)>* f = nullptr;
  int64_t units = 0;
  int active = 1;

  explicit Impl(int n) : spins(n <= available_cores() ? kSpins : 0), mailboxes(n) {}

  void compute(int range, int worker) const {
    // units * range could overflow; quotient and remainder cannot.
    const int64_t q = units / active, r = units % active;
    const int64_t begin = q * range + std::min<int64_t>(range, r);
    (*f)(worker, begin, begin + q + (range < r ? 1 : 0));
  }

  void work(int worker) {
    uint32_t seen = 0;
    for (;;) {
      seen = wait_change(mailboxes[worker].posted, seen, spins);
      if (stop.load(std::memory_order_acquire)) return;
      if (!mailboxes[worker].claim(seen)) continue;
      compute(worker, worker);
      if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) busy.notify_one();
    }
  }

  void post(int worker) {
    mailboxes[worker].posted.fetch_add(1, std::memory_order_release);
    mailboxes[worker].posted.notify_one();
  }
};

Pool::Pool(int threads, const Around& around) : impl_(std::make_unique<Impl>(std::max(1, threads))) {
  Impl* p = impl_.get();
  p->threads.reserve(p->mailboxes.size());
  for (int w = 1; w < threads; ++w) {
    try {
      p->threads.emplace_back([p, w, around] {
        if (around) {
          around([p, w] { p->work(w); });
        } else {
          p->work(w);
        }
      });
    } catch (const std::system_error&) {
      return;  // a limit of processes or of memory: threads() says how many there are
    }
  }
}

Pool::~Pool() {
  impl_->stop.store(true, std::memory_order_release);
  for (int w = 1; w < threads(); ++w) impl_->post(w);
  for (auto& t : impl_->threads) t.join();
}

int Pool::threads() const {
  return static_cast<int>(impl_->threads.size()) + 1;
}

void Pool::run(int64_t units, const std::function<void(int, int64_t, int64_t)>& f, int at_most) {
  if (units <= 0) return;
  Impl& p = *impl_;
  p.f = &f;
  p.units = units;
  p.active = static_cast<int>(std::min<int64_t>({units, threads(), std::max(1, at_most)}));
  p.busy.store(static_cast<uint32_t>(p.active - 1), std::memory_order_relaxed);
  for (int w = 1; w < p.active; ++w) p.post(w);
  p.compute(0, 0);
  for (int w = 1; w < p.active; ++w)
    if (p.mailboxes[w].claim(p.mailboxes[w].posted.load(std::memory_order_relaxed))) {
      p.compute(w, 0);
      p.busy.fetch_sub(1, std::memory_order_relaxed);
    }
  for (uint32_t left; (left = p.busy.load(std::memory_order_acquire)) != 0;)
    wait_change(p.busy, left, p.spins);
}

}  // namespace invar
