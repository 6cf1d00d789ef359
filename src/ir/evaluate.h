// Operations on constants are computed when a model is compiled, by the reference rows of their rooms: the bits that any row would
// have made when it runs.
#pragma once

#include <optional>
#include <string>

#include "base/attrs.h"
#include "base/status.h"
#include "ir/dialects.h"

namespace invar::ir {

inline constexpr int64_t kSmallConstant =
    1 << 16;  // bytes: shapes, indices and tables of positions, not weights

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
