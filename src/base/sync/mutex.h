// std::mutex, which a C++ library without threads (WebAssembly's) does not have.
#pragma once

#include <mutex>

namespace invar {

#ifdef __wasi__
struct Mutex {
  void lock() {}
  void unlock() {}
};
#else
using Mutex = std::mutex;
#endif

}  // namespace invar
