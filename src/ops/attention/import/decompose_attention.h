// Attention decomposed as in the body of ONNX's function.
#pragma once

#include "compiler/room_api.h"

namespace invar::compiler {

inline constexpr int64_t kF32 = 1, kF64 = 11;  // TensorProto.DataType, for softmax_precision

// [B, S, H * D] or [B, H, S, D] -> [B, H, S, D].
Result<Value> to_heads_first(NodeView&, Value x, int64_t heads);
// Attention with scores as a result or f64 weights.
Status decompose_attention(NodeView&, int64_t q_heads, int64_t kv_heads, float scale, float softcap);

}  // namespace invar::compiler
