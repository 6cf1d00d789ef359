// Constant folding: runs the kernel of an operation at compile time. Small constants use the
// reference kernel, large ones the kernel that this machine would choose (weight_evaluation.cc).
// All kernels of an operation compute the same bits, so folding changes none.
#pragma once

#include <optional>
#include <string>

#include "base/attributes.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/dialects/dialects.h"
#include "kernels/cpu_kernel.h"
#include "onnx/raw_data_index.h"

namespace invar::compiler {

// The largest constant, in bytes, that is folded as an attribute: shapes, indices, position tables.
// Larger ones are weights, which stay in their files (onnx.19).
inline constexpr auto kSmallConstant = static_cast<int64_t>(onnx::kInlineLimit);
// The most bytes of constants that one model may compute, since a small file can describe a long
// chain.
inline constexpr int64_t kMaxFoldedBytes = 64 << 20;

// Converts MLIR attributes to the form that kernels read.
Result<Attributes> kernel_attributes(llvm::ArrayRef<mlir::NamedAttribute>);

// The result's bytes, little-endian. Nothing if an operand is not a small constant, or if the
// kernel refuses.
std::optional<std::string> fold_constant(mlir::Operation*);
// The same with the operands' bytes given.
std::optional<std::string> fold_constant(mlir::Operation*, llvm::ArrayRef<std::string> operands);
// The bytes of a small constant; nothing if v is none.
std::optional<std::string> constant_bytes(mlir::Value);

struct alignas(64) CacheLine {
  std::byte bytes[64];
};
using AlignedBuffer = std::vector<CacheLine>;
inline AlignedBuffer aligned_buffer(size_t bytes) {
  return AlignedBuffer(bytes / sizeof(CacheLine) + 1);
}
inline size_t byte_size(const ops::View& view) {
  return static_cast<size_t>(view.elements()) * size_of(view.dtype);
}
// The view of a tensor type without data. Nothing for dynamic shapes and types that kernels do not
// have, or if it needs more than `max_bytes`.
std::optional<ops::View> static_view(mlir::Type, int64_t max_bytes = kSmallConstant);
// Runs a kernel on `in` and writes `out`. False if the operation refuses the operands or an index
// is out of bounds.
bool run_kernel(mlir::Operation*, const ops::CpuKernel& row, std::span<const ops::View> in, ops::View& out,
                Pool*);

}  // namespace invar::compiler
