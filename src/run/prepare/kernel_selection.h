// Which kernel runs an operation here, and what is said of one that cannot.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "kernels/kernel.h"

namespace invar::run {

// "" or an instruction set of this build that this CPU has.
Status check_isa(const std::string& isa);
// The row of `isa` ("": the best here; "cuda"), which check_isa() takes.
Result<const ops::Kernel*> choose(const std::string& op, const std::string& isa);
// index 7 at [0, 2] of operand 1 is outside -5 ... 4
std::string text_of(const ops::Stray&, const ops::View& operand);
// The first index that names no place of a call whose operands lie on the device; nothing where there is none.
Result<std::optional<ops::Stray>> stray_of(const ops::Kernel& reference, const ops::Call&, Device&);
// Kernels reported such an index, and none of the calls has one.
Error unfounded_fault();

}  // namespace invar::run
