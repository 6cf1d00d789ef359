// Window attributes, auto_pad, the number of windows along a dimension, the type of a convolution.
#include "compiler/lowering/builders/sliding_window.h"

#include "kernels/call.h"

namespace invar::compiler {

Result<AutoPad> auto_pad(const NodeView& node) {
  Attribute a = node.attribute("auto_pad");
  if (!a) return AutoPad::notset;
  auto text = dyn_cast<StringAttr>(a);
  if (text && (text.getValue() == "NOTSET" || text.getValue().empty())) return AutoPad::notset;
  if (text && text.getValue() == "VALID") return AutoPad::valid;
  if (text && text.getValue() == "SAME_UPPER") return AutoPad::same_upper;
  if (text && text.getValue() == "SAME_LOWER") return AutoPad::same_lower;
  return bad_input("attribute \"auto_pad\" is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
}

void distribute_pad(Window& w, size_t axis, int64_t total, bool more_at_end) {
  const int64_t less = total / 2, more = total - less;
  w.pads[axis] = more_at_end ? less : more;
  w.pads[w.kernel.size() + axis] = more_at_end ? more : less;
}

Result<Window> parse_window(const NodeView& node, const std::vector<int64_t>& kernel) {
  const size_t rank = node.shape(0).size();
  if (rank < 3 || rank > 5)
    return not_covered("covered are one to three spatial dimensions; the operand has rank " +
                       std::to_string(rank));
  const size_t axes = rank - 2;
  Window w;
  auto list = [&](const char* name, size_t length, int64_t fallback,
                  int64_t least) -> Result<std::vector<int64_t>> {
    INVAR_TRY(std::vector<int64_t> given, node.ints_attr(name));
    if (given.empty()) return std::vector<int64_t>(length, fallback);
    if (given.size() != length)
      return bad_input("attribute \"" + std::string(name) + "\" has " + std::to_string(given.size()) +
                       " numbers for " + std::to_string(axes) + " spatial dimensions");
    for (int64_t n : given)
      if (n < least || n >= int64_t{1} << 30)
        return not_covered("attribute \"" + std::string(name) + "\" contains " + std::to_string(n));
    return given;
  };
  INVAR_TRY(w.kernel, list("kernel_shape", axes, 0, 1));
  INVAR_TRY(w.strides, list("strides", axes, 1, 1));
  INVAR_TRY(w.dilations, list("dilations", axes, 1, 1));
  INVAR_TRY(w.pads, list("pads", 2 * axes, 0, 0));
  if (!kernel.empty() && w.kernel != kernel && w.kernel[0] != 0)
    return bad_input("attribute \"kernel_shape\" is not the kernel of the weights");
  if (!kernel.empty()) w.kernel = kernel;
  if (w.kernel.size() != axes || w.kernel[0] == 0)
    return bad_input("there is no kernel for the spatial dimensions");
  return w;
}

Status resolve_pads(const NodeView& node, AutoPad how, Window& w) {
  if (how == AutoPad::notset) return {};
  Shape x = node.shape(0);
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    int64_t total = 0;
    if (how != AutoPad::valid) {
      const Dim& in = x[2 + i];
      if (!in.constant() && w.strides[i] != 1)
        return not_covered(
            "attribute \"auto_pad\" with a stride and a spatial dimension that is not a constant");
      total = w.effective_kernel(i) - 1;
      if (in.constant()) {
        const int64_t outputs = (in.value + w.strides[i] - 1) / w.strides[i];
        total = std::max<int64_t>((outputs - 1) * w.strides[i] + w.effective_kernel(i) - in.value, 0);
      }
    }
    distribute_pad(w, i, total, how == AutoPad::same_upper);
  }
  return {};
}

std::optional<Dim> window_count(const Dim& in, int64_t reach, int64_t stride, int64_t begin, int64_t end,
                                bool ceil) {
  if (!in.constant()) {
    // Rounding up adds a window only if it begins inside the operand or the begin pad: ceil((in +
    // begin) / stride) windows do, and that many fit if the last one exceeds the end pad by less
    // than a stride.
    if (ceil && end > reach) return std::nullopt;
    const int64_t end_slack = ceil ? std::min(end - reach + stride, int64_t{0}) : end - reach + stride;
    const std::optional<DimExpr> size = dim_expr_of(in);
    const std::optional<DimExpr> free = size ? sum(*size, begin + end_slack + (ceil ? stride - 1 : 0)) : size;
    const std::optional<DimExpr> n = free ? floor_div(*free, stride) : free;
    return n ? std::optional(Dim::of(*n)) : std::nullopt;
  }
  const int64_t free = in.value + begin + end - reach;
  if (free < 0 && !(ceil && free > -stride)) return Dim::of(0);
  int64_t n = (ceil ? (free + stride - 1) / stride : free / stride) + 1;
  if (ceil && (n - 1) * stride >= in.value + begin) --n;
  return Dim::of(n);
}

Result<ValueType> infer_convolution(InferredCall& in, DType dtype, const ConvolutionAttributes& a,
                                    TransposedLength length) {
  const bool transposed = static_cast<bool>(length);
  const Shape &x = in[0].shape, &w = in[1].shape;
  const int64_t groups = a.groups, rank = static_cast<int64_t>(x.size()), axes = rank - 2;
  if (rank < 3 || rank > 5 || w.size() != x.size())
    return not_covered("covered are one to three spatial dimensions, in operand and weights");
  if (a.strides.size != axes || a.dilations.size != axes || a.pads.size != 2 * axes)
    return bad_input("strides, dilations or pads do not have a number for each spatial dimension");
  for (const Dim& size : w)
    if (!size.constant()) return not_covered("weights whose shape is not constant");
  if (!x[1].constant())
    return in.unequal_dims(x[1], Dim::of(transposed ? w[0].value : w[1].value * groups),
                           "channels of operand and weights");
  if (groups < 1 || x[1].value % groups || w[0].value % groups)
    return bad_input("channels do not divide into " + std::to_string(groups) + " groups");
  if (w[transposed ? 0 : 1].value != (transposed ? x[1].value : x[1].value / groups))
    return bad_input(text_of(x[1]) + " channels, weights " + text_of(w) + ", groups " +
                     std::to_string(groups));
  Shape to = {x[0], transposed ? Dim::of(w[1].value * groups) : w[0]};
  if (in.has(2) && in[2].shape != Shape{to[1]})
    return bad_input("a bias that does not have an element for each channel of the result");
  for (int64_t i = 0; i < axes; ++i) {
    const Dim& size = x[static_cast<size_t>(2 + i)];
    const int64_t reach = (w[static_cast<size_t>(2 + i)].value - 1) * a.dilations[i] + 1;
    const std::optional<Dim> n =
        transposed ? length(size, reach, i)
                   : window_count(size, reach, a.strides[i], a.pads[i], a.pads[axes + i], /*ceil=*/false);
    if (!n) return not_covered("spatial dimension " + std::to_string(i) + " is not a constant");
    if (n->constant() && n->value < 0) return bad_input("pads that leave less than nothing");
    to.push_back(*n);
  }
  return ValueType{dtype, to};
}

}  // namespace invar::compiler
