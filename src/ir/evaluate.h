// Operations on constants are computed when a model is compiled, by the reference rows of their rooms: the bits that any row would
// have made when it runs.
#pragma once

#include <optional>
#include <string>

#include "base/attrs.h"
#include "base/status.h"
#include "ir/dialects.h"
#include "onnx/in_place.h"

namespace invar::ir {

// Bytes: shapes, indices and tables of positions, not weights, which stay where they are (onnx.19).
inline constexpr auto kSmallConstant = static_cast<int64_t>(onnx::kInPlace);
// Bytes of constants that are computed for one model: small files can describe long chains of large ones.
inline constexpr int64_t kMostEvaluated = 64 << 20;

// The attributes of an operation as its kernels read them.
Result<Attrs> attrs_of(llvm::ArrayRef<mlir::NamedAttribute>);

// The result's bytes, little-endian, where all operands are small constants that lie in the model file and the room computes
// something of them; nothing otherwise.
std::optional<std::string> evaluate(mlir::Operation*);
// The same for operands of these bytes.
std::optional<std::string> evaluate(mlir::Operation*, llvm::ArrayRef<std::string> operands);
// The bytes of a small constant.
std::optional<std::string> constant_of(mlir::Value);

}  // namespace invar::ir
