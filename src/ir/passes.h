// The stages of the compiler. Passes report through diagnostics and never throw.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "onnx/onnx.h"
#include "plan/plan.h"

namespace invar::ir {

// Loads the three dialects.
void load_dialects(mlir::MLIRContext&);

// ONNX graph -> onnx dialect. Total: whatever the graph holds has a form here.
mlir::OwningOpRef<mlir::ModuleOp> import_graph(mlir::MLIRContext&, const onnx::Graph&);

// onnx -> repro by the rules of the rooms, types inferred on the way. What cannot be converted is collected in
// `refused` (null: only reported as diagnostics) and fails the pass.
struct Refusals {
  std::vector<Error> list;
};
std::unique_ptr<mlir::Pass> to_repro(Refusals* refused = nullptr);

// Bit-keeping rewrites of the rooms, equal weights merged, dead code removed.
std::unique_ptr<mlir::Pass> fold(Refusals* refused = nullptr);

// repro -> plan: weights hashed from `folder`, buffer slots assigned.
struct Storage {
  std::string folder, constants_file;
  int threads = 0;
  std::string constants;      // out: the content of constants_file
  std::vector<Error> errors;  // out
};
std::unique_ptr<mlir::Pass> to_plan(Storage* storage);

// The plan dialect as data.
Result<plan::Plan> plan_from(mlir::ModuleOp);

}  // namespace invar::ir
