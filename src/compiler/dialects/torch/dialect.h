// The torch dialect: the source of a torch.nn.Module. A header of its own, because only emit/torch
// and the driver need it.
#pragma once

#include "compiler/dialects/dialects.h"
#include "mlir/IR/SymbolTable.h"

#include "torch_dialect.h.inc"

#define GET_OP_CLASSES
#include "torch_ops.h.inc"
