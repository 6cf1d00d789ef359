// The threads and GPUs of operations that are called one by one. They are the process's and outlive
// the interpreter's end.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "run/eager.h"

namespace invar::python {

// Sets how many threads later calls use; 0: as many as there are cores.
void set_threads(int threads);
// The instruction set of the host for later calls that force none; "": the best here.
void set_isa(const std::string& isa);
const std::string& default_isa();
// Calls f while no other thread uses the pool and its memory. The caller does not hold the GIL.
void with_pool(const std::function<void(Pool&, run::EagerMemory&)>& f);
// The GPU of this number, and the memory of calls that wait.
run::EagerDevice& gpu(int index);
run::EagerMemory& gpu_memory(int index);
// Runs in the child of a fork, where no thread of the pool lives and locks may be held for ever.
void after_fork();
// Raises what take_faults() reports of any GPU that was used.
void raise_faults();

}  // namespace invar::python
