// An ONNX model -> its plan, in a temporary folder beside links to the weights.
#pragma once

#include "generate/task_cache.h"
#include "generate/tensors.h"

namespace invar::generate {

// Of program.model. Past keys and values are tensors, but for a decoder that `keeps_memory`: it
// keeps them between steps where that gives the same bits (plan.20), else the observer is told why.
Result<CompiledModel> compile_onnx(const TensorProgram& program, OperationSet, bool keeps_memory, Observer&);

}  // namespace invar::generate
