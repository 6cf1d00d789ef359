// Sliding windows over the spatial dimensions (from 2 on) of an operand [N, C, ...]: attributes of
// convolutions and pools.
#pragma once
#include "compiler/inference/result_type.h"
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;  // all begins, then all ends
  int64_t effective_kernel(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

enum class AutoPad { notset, valid, same_upper, same_lower };
Result<AutoPad> auto_pad(const NodeView&);
// Distributes `total` padding to both ends of an axis; the odd element goes to the end if
// `more_at_end`.
void distribute_pad(Window&, size_t axis, int64_t total, bool more_at_end);

// Reads kernel_shape, strides, dilations and pads for operand 0. `kernel`: that of the weights;
// empty if there are none.
Result<Window> parse_window(const NodeView&, const std::vector<int64_t>& kernel);
// Computes the pads of operand 0 from the attribute auto_pad.
Status resolve_pads(const NodeView&, AutoPad, Window&);

// The number of windows along a dimension, rounded down. `ceil` rounds it up, but counts no window
// that begins in the end pad.
std::optional<Dim> window_count(const Dim& in, int64_t reach, int64_t stride, int64_t begin, int64_t end,
                                bool ceil);

// The attributes that all convolutions have.
struct ConvolutionAttributes {
  const ops::IntegerList &strides, &dilations, &pads;
  int64_t groups;
};
// The size of a transposed convolution along an axis.
using TransposedLength = llvm::function_ref<std::optional<Dim>(const Dim& in, int64_t reach, int64_t axis)>;
// The type of a convolution of x by weights and a bias, or of a transposed one where its length is
// given: batch, output channels, spatial sizes.
Result<ValueType> infer_convolution(InferredCall&, DType, const ConvolutionAttributes&,
                                    TransposedLength = nullptr);

}  // namespace invar::compiler
