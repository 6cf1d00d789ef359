// Tensors -> tensors and their receipt, and the verification of such a receipt (receipt.40 to
// receipt.42). What `invar infer --input` and `invar verify --input` do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "generate/cache/task_cache.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "generate/verify/verify.h"
#include "receipt/receipt.h"
#include "run/function.h"

namespace invar::generate {

// The program to run: a plan, or an ONNX model and what changes its program, or an encoder.
struct TensorProgram {
  std::string plan;                                   // a file; else the model is compiled
  std::string model;                                  // a .onnx file
  ModelOptions encoder;                               // or the checkpoint of an encoder
  std::vector<std::pair<std::string, int64_t>> dims;  // dimensions that are fixed
  run::Function::NamedTensors bound;                  // inputs that become constants
  std::string choices = "all";                        // numerics choices that may be applied
  Profile profile = Profile::fp32;  // of a model that is compiled; verification asks the receipt
  // The inputs of the one call that a model is compiled for, where no plan serves all (onnx.40).
  // Null: a plan for all calls.
  const run::Function::NamedTensors* call = nullptr;
};

struct TensorAnswer {
  run::Function::NamedTensors outputs;
  OperationSet operation_set = OperationSet::reproducible;
  std::string isa;
  std::vector<std::string> libraries;
  std::string receipt_hash;  // "" without a receipt
};
// Runs a plan that was loaded from `path`, or that prepare_call() made of the model there. With
// receipt_path, which must not be empty then, it writes a receipt. Errors, beside those of a run:
// bad_input where the plan does not name the program of a graph.
Result<TensorAnswer> infer_tensors(CompiledModel program, const std::string& path,
                                   const run::Function::NamedTensors& inputs, const ExecutionOptions&,
                                   const std::optional<std::string>& receipt_path, Observer&);

// Whether the text claims to be a receipt of tensors.
bool is_tensor_receipt(std::string_view text);
// Compiles the model (a plan is taken as it is given) and computes the outputs again from `inputs`.
// The reader looks at signatures. Errors: no program or no input is given, or the operation set
// lets nobody verify here (not_covered).
Result<Verdict> verify_tensors(std::string_view text, const std::string& name, Reader&, const InBatch*,
                               const TensorProgram&, const run::Function::NamedTensors& inputs,
                               const ExecutionOptions&, Observer&);

// A receipt of either kind: what is of tensors alone, or of steps alone, is refused for the other.
// `execution` and `selection` are those of the verifier.
Result<Verdict> verify_any(std::string_view text, const std::string& name, const InBatch*, Verifier&,
                           const TensorProgram&, const run::Function::NamedTensors& inputs,
                           const ExecutionOptions& execution, const receipt::StepSelection& selection,
                           Observer&);

}  // namespace invar::generate
