// plan -> torch, and the printing of the torch dialect as Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace invar::compiler {

// The function attribute that says which operations the module has: "reproducible" or "plain".
inline constexpr char kTorchOperations[] = "torch.operations";

// plan -> torch: the calls of invar.primitives, or with `plain` torch's own functions, that a
// module makes. `errors`, which may be null, receives what torch cannot say.
std::unique_ptr<mlir::Pass> lower_to_torch_pass(std::vector<Error>* errors = nullptr, bool plain = false);
// The source of the module, of a program with this digest.
Result<std::string> print_torch_module(mlir::ModuleOp, const std::string& digest);

}  // namespace invar::compiler
