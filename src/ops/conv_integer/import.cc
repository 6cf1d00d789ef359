// The type of an integer convolution. Nodes become one in the rooms of quantization, and by the
// choice integer-1.
#include "compiler/room_api.h"
#include "ops/conv_integer/attributes.h"

namespace invar::compiler {

Result<ValueType> infer_conv_integer(InferredCall& in, const ops::ConvIntegerAttributes& a) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  const int64_t rank = static_cast<int64_t>(x.size()), axes = rank - 2;
  if (rank < 3 || rank > 5 || w.size() != x.size())
    return not_covered("covered are one to three spatial dimensions, in operand and weights");
  if (a.strides.size != axes || a.dilations.size != axes || a.pads.size != 2 * axes)
    return bad_input("strides, dilations or pads do not have a number for each spatial dimension");
  for (const Dim& size : w)
    if (!size.constant()) return not_covered("weights whose shape is not constant");
  if (!x[1].constant())
    return in.unequal_dims(x[1], Dim::of(w[1].value * a.groups), "channels of operand and weights");
  if (a.groups < 1 || x[1].value % a.groups || w[0].value % a.groups || w[1].value != x[1].value / a.groups)
    return bad_input(text_of(x[1]) + " channels, weights " + text_of(w) + ", groups " +
                     std::to_string(a.groups));
  if (in[2].shape != Shape{w[0]})
    return bad_input("a bias that does not have an element for each channel of the result");
  Shape to = {x[0], w[0]};
  for (int64_t i = 0; i < axes; ++i) {
    const auto d = static_cast<size_t>(2 + i);
    std::optional<Dim> n = window_count(x[d], (w[d].value - 1) * a.dilations[i] + 1, a.strides[i], a.pads[i],
                                        a.pads[axes + i], false);
    if (!n) return not_covered("spatial dimension " + std::to_string(i) + " is not a constant");
    to.push_back(*n);
  }
  return ValueType{DType::i32, to};
}

void import_conv_integer(RuleRegistry&) {}

}  // namespace invar::compiler
