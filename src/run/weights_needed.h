// The memory that a program takes, before any weight of it is read.
#pragma once

#include <span>
#include <string>

#include "plan/plan.h"
#include "plan/stages.h"

namespace invar::run {

// The bytes that weights take on the host where they are read into place, with the largest of those
// that are packed. WebAssembly alone, which maps no files (weights/read_weights.cc).
Result<uint64_t> weights_needed(const plan::Plan&, const std::string& folder);

// Sets `state` and `fixed_state` of the costs of these stages, as the kernels of the host say
// (partitions/state_sizes.cc). Errors are those of a preparation.
Status measure_states(std::span<plan::Stage>);

}  // namespace invar::run
