// An ONNX model -> its plan, in a temporary folder beside links to the weights.
#pragma once

#include "generate/task_cache.h"
#include "generate/tensors.h"

namespace invar::generate {

// Of program.model. `stateless`: past keys and values stay tensors.
Result<CompiledModel> compile_onnx(const TensorProgram& program, OperationSet, bool stateless, Observer&);

}  // namespace invar::generate
