// An ONNX model -> its plan, in a folder beside links to the weights.
#pragma once

#include "generate/cache/task_cache.h"
#include "generate/tensors/tensors.h"

namespace invar::onnx {
struct Graph;
}

namespace invar::generate {

// Compiles program.model. A decoder that `keeps_memory` keeps past keys and values between steps
// where that gives the same bits (plan.20), else the observer is told why. Others take tensors.
Result<CompiledModel> compile_onnx(const TensorProgram& program, OperationSet, bool keeps_memory, Observer&);
// The same in this folder, which also receives plan.invar: sets plan and hashed of `made`. `graph`:
// program.model, where the caller has read it, which is moved from.
Status compile_onnx_into(const std::string& folder, const TensorProgram&, OperationSet, bool keeps_memory,
                         Observer&, CompiledModel& made, onnx::Graph* graph = nullptr);
// Whether the value of an input of a call may be in the call's plan: few integers or booleans.
bool may_be_in_plan(DType, size_t bytes);
// The plan of program.model for the inputs program.call, from a task folder where one is kept.
Result<CompiledModel> prepare_call(const TensorProgram& program, Observer&);
// The note about a decoder that keeps none.
inline constexpr char kWholePrefix[] = "each token is computed over its whole prefix";
// The name of the file in it with the constants that no file of the model holds apart.
inline constexpr char kOnnxConstants[] = "invar.constants";

}  // namespace invar::generate
