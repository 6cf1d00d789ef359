// The program that a plan was compiled from (spec/program.md).
#pragma once

#include <optional>
#include <string>

#include "compiler/compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "onnx/normal_form.h"

namespace invar::compiler {

struct Program {
  std::string text;
  plan::Source source;
};
// The program of the exporter's recipe, if options trust the one in the metadata; else that of the
// graph, or nothing if it has no normal form. The tensors' digests are those of the plan's weights
// as far as it has them.
Result<std::optional<Program>> program_of(const onnx::Graph&, const plan::Plan&, const onnx::AppliedChoices&,
                                          const Options&);
// The choices that idiom recognition noted in a module whose graph has its nodes' numbers.
onnx::AppliedChoices applied_choices(mlir::ModuleOp);

}  // namespace invar::compiler
