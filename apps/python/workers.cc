// Threads and GPUs, see workers.h.
#include "workers.h"

#include <array>
#include <atomic>
#include <mutex>

#include "arrays.h"
#include "device/calling_thread.h"
#include "run/thread_setup.h"

namespace invar::python {
namespace {

constexpr int kMaxGpus = 64;

struct Gpu {
  std::unique_ptr<run::EagerDevice> device;
  run::EagerMemory memory;
};
struct Workers {
  std::mutex pool_mutex, gpu_mutex;
  int threads = 0;
  std::unique_ptr<Pool> pool;
  run::EagerMemory memory;  // of the host
  std::array<std::atomic<Gpu*>, kMaxGpus> gpus = {};
  std::atomic<int> most_gpus = 0;  // no GPU of this number or a higher one is open
};
Workers& workers() {
  static auto* all = new Workers;
  return *all;
}

Gpu& opened(int index) {
  Workers& w = workers();
  if (index < 0 || index >= kMaxGpus)
    throw Raised{
        not_covered("cuda:" + std::to_string(index) + ": covered are " + std::to_string(kMaxGpus) + " GPUs")};
  if (Gpu* known = w.gpus[index].load(std::memory_order_acquire)) return *known;
  const std::lock_guard one(w.gpu_mutex);
  if (Gpu* known = w.gpus[index].load()) return *known;
  const DeviceScope here(index);
  auto made = std::make_unique<Gpu>();
  made->device = or_raise(run::EagerDevice::open(index));
  w.gpus[index].store(made.release(), std::memory_order_release);
  w.most_gpus = std::max(w.most_gpus.load(), index + 1);
  return *w.gpus[index].load();
}

}  // namespace

void set_threads(int threads) {
  Workers& w = workers();
  const std::lock_guard one(w.pool_mutex);
  w.pool = or_raise(run::start_pool(threads));
  w.threads = threads;
}

namespace {
std::string& chosen_isa() {
  static auto* isa = new std::string;
  return *isa;
}
}  // namespace

void set_isa(const std::string& isa) {
  or_raise(run::check_isa(isa));
  chosen_isa() = isa;
}
const std::string& default_isa() {
  return chosen_isa();
}

void with_pool(const std::function<void(Pool&, run::EagerMemory&)>& f) {
  Workers& w = workers();
  const std::lock_guard one(w.pool_mutex);
  if (!w.pool) w.pool = or_raise(run::start_pool(w.threads));
  f(*w.pool, w.memory);
}

void after_fork() {
  Workers& w = workers();
  (void)w.pool.release();  // its destructor would wait for threads that are not there
  new (&w.pool_mutex) std::mutex;
  new (&w.gpu_mutex) std::mutex;
  new (&w.memory) run::EagerMemory;  // of which another thread may have been in the middle
}

run::EagerDevice& gpu(int index) {
  return *opened(index).device;
}
run::EagerMemory& gpu_memory(int index) {
  return opened(index).memory;
}

void raise_faults() {
  Workers& w = workers();
  for (int i = 0; i < w.most_gpus.load(std::memory_order_relaxed); ++i) {
    Gpu* const one = w.gpus[i].load(std::memory_order_acquire);
    if (!one) continue;
    if (const std::string names = one->device->take_faults(); !names.empty())
      throw Raised{bad_input(names + ": an earlier call on cuda:" + std::to_string(i) +
                             " had an index out of bounds, so its result is not to be used; the same call "
                             "on the host names the index")};
  }
}

}  // namespace invar::python
