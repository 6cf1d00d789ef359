// Errors of a GPU, or of its memory, in the middle of a case: exceptions, or the end of the process
// where there are none (WebAssembly, which has no GPU).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "base/status.h"

namespace invar::conformance {

[[noreturn]] inline void give_up(const Error& error) {
#ifdef __cpp_exceptions
  throw std::runtime_error(error.message);
#else
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::abort();
#endif
}

// Returns the result of f, or the error that it gave up with.
template <class F>
auto or_error(const F& f) -> decltype(f()) {
#ifdef __cpp_exceptions
  try {
    return f();
  } catch (const std::runtime_error& e) {
    return bad_input(e.what());
  }
#else
  return f();
#endif
}

}  // namespace invar::conformance
