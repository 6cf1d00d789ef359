// Sliding windows over the spatial dimensions (from 2 on) of an operand [N, C, ...]: what convolutions and pools share of import.
#pragma once
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;  // all begins, then all ends
  int64_t reach(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

enum class AutoPad { notset, valid, same_upper, same_lower };
Result<AutoPad> auto_pad(const Node&);
// Half of `total` at the begin; an odd one more at the end if `more_at_end`.
void split_pad(Window&, size_t axis, int64_t total, bool more_at_end);

// Attributes kernel_shape, strides, dilations and pads; of weights of this kernel if it is not empty. Operand 0 has the spatial
// dimensions.
Result<Window> window_of(const Node&, const std::vector<int64_t>& kernel);
// The pads that auto_pad means for windows that slide over operand 0.
Status resolve_pads(const Node&, AutoPad, Window&);

// The number of windows in `in` elements: rounded down, or (ceil) up as long as a window begins before the end pad.
std::optional<Extent> windows_in(const Extent& in, int64_t reach, int64_t stride, int64_t begin, int64_t end,
                                 bool ceil);

}  // namespace invar::compiler
