// The threads of a session or a function of tensors.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "base/status.h"

namespace invar::run {

Error wrong_arithmetic();
// `threads` workers, 0 = one per core, or as many as the system starts; each computes as specified.
Result<std::unique_ptr<Pool>> start_pool(int threads);

}  // namespace invar::run
