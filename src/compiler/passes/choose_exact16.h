// repro-choose-exact16, a pass that Options::exact16 asks for.
#pragma once

#include <memory>
#include <vector>

#include "compiler/passes/passes.h"

namespace invar::compiler {

// Products of an activation with a tensor of the program, and attention, become operations of the
// profile exact16 (exact16.9, exact16.11). The pass runs before every rewrite, so that its result
// does not depend on the optimization level. Products that exact16 does not cover go to `refused`,
// and the pass fails; null: to diagnostics.
std::unique_ptr<mlir::Pass> choose_exact16_pass(std::vector<RefusedNodes>* refused);

}  // namespace invar::compiler
