// Operations on constants are computed when a model is compiled, small ones by the reference rows of their rooms, large ones by the
// rows that would run them here (evaluate_weights.cc): the bits that any row would have made when it runs.
#pragma once

#include <optional>
#include <string>

#include "base/attributes.h"
#include "base/thread_pool.h"
#include "base/status.h"
#include "compiler/dialects/dialects.h"
#include "onnx/raw_data_index.h"
#include "kernels/kernel.h"

namespace invar::compiler {

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

struct alignas(64) Line {
  std::byte bytes[64];
};
using Memory = std::vector<Line>;
inline Memory memory(size_t bytes) {
  return Memory(bytes / sizeof(Line) + 1);
}
inline size_t bytes_of(const ops::View& view) {
  return static_cast<size_t>(view.elements()) * size_of(view.dtype);
}
// What a value of this type is to a kernel, without data; nothing where it is none, or has more bytes than `most`.
std::optional<ops::View> view_of(mlir::Type, int64_t most = kSmallConstant);
// The result `out` by this row of the operation, where the room takes the operands and they name places that there are.
bool compute(mlir::Operation*, const ops::Kernel& row, std::span<const ops::View> in, ops::View& out, Pool*);

}  // namespace invar::compiler
