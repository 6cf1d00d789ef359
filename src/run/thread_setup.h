// Starts the thread pool of a session or a function, and checks the arithmetic of its threads.
#pragma once

#include <memory>

#include "base/status.h"
#include "base/thread_pool.h"

namespace invar::run {

// This thread's floating-point environment is not the one that the specification requires.
Error wrong_arithmetic();
// A pool of `threads` workers (0: one per core), or of as many as the system starts. Every worker
// has the specified floating-point environment, else an error.
Result<std::unique_ptr<Pool>> start_pool(int threads);

}  // namespace invar::run
