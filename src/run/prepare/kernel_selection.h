// Selects the kernel that runs an operation on an instruction set or a GPU.
#pragma once

#include <string>

#include "base/status.h"
#include "run/eager.h"

namespace invar::run {

// The kernel of an instruction set that check_isa() accepts ("": the best here), or of a GPU.
Result<ops::KernelRef> select_kernel(const std::string& op, const std::string& isa, bool gpu);

}  // namespace invar::run
