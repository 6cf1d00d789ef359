// The memory that a program takes, before any weight of it is read.
#pragma once

#include <string>

#include "plan/plan.h"

namespace invar::run {

// The bytes that weights take on the host where they are read into place, with the largest of those
// that are packed. WebAssembly alone, which maps no files (weights/read_weights.cc).
Result<uint64_t> weights_needed(const plan::Plan&, const std::string& folder);

}  // namespace invar::run
