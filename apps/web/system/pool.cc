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
