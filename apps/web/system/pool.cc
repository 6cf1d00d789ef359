// base/thread_pool.h without threads: whoever calls run() computes everything.
#include "base/thread_pool.h"

namespace invar {

struct Pool::Impl {};

Pool::Pool(int, const Around&) {}
Pool::~Pool() = default;
int Pool::threads() const {
  return 1;
}
void Pool::run(int64_t units, const std::function<void(int, int64_t, int64_t)>& f, int) {
  if (units > 0) f(0, 0, units);
}

int available_cores() {
  return 1;
}

}  // namespace invar

// Objects of the one thread end with the program.
extern "C" {
int __cxa_atexit(void (*)(void*), void*, void*);
int __cxa_thread_atexit(void (*end)(void*), void* object, void* library) {
  return __cxa_atexit(end, object, library);
}
}
