// What the rooms' import.cc and torch.cc use of the compiler, and their only header of it: rules
// for ONNX nodes, rewrites, rules of results' types, and spellings in torch. The rooms write
// patterns over MLIR's values, so it includes MLIR (docs/design/adr/0108-rooms-see-one-header.md).
#pragma once

#include "compiler/dialects/constant_data.h"
#include "compiler/emit/torch/spelling.h"
#include "compiler/inference/result_type.h"
#include "compiler/lowering/builders/argsort.h"
#include "compiler/lowering/builders/constant_sin_cos.h"
#include "compiler/lowering/builders/expr_builder.h"
#include "compiler/lowering/builders/nonzero_indices.h"
#include "compiler/lowering/builders/normalization.h"
#include "compiler/lowering/builders/sliding_window.h"
#include "compiler/lowering/op_builder.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/idiom_recognition.h"
