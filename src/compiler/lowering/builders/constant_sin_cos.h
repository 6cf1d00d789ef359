// Sine and cosine of f64 constants, as position tables have them (onnx.18).
#pragma once
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

// Replaces the node Sin or Cos of a constant; not_covered beyond 2^20.
Status lower_constant_sin_f64(NodeView&, bool cosine);

}  // namespace invar::compiler
