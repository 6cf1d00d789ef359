// repro-make-stateful, a pass that Options::make_stateful asks for.
#pragma once

#include <memory>
#include <string>

#include "mlir/Pass/Pass.h"

namespace invar::compiler {

// A decoder that is computed over its whole sequence keeps keys and values between steps (plan.20).
// Without a change, *why_not says why that is not shown to be the same.
std::unique_ptr<mlir::Pass> make_stateful_pass(std::string* why_not);

}  // namespace invar::compiler
