// Lowering of Conv and ConvTranspose, and the type inference of the convolutions.
#include "compiler/room_api.h"
#include "ops/conv/attributes.h"

namespace invar::compiler {
namespace {

Result<std::vector<int64_t>> kernel_shape(const NodeView& node) {
  std::vector<int64_t> kernel;
  const Shape w = node.shape(1);
  if (w.size() != node.shape(0).size()) return bad_input("operand and weights differ in rank");
  for (size_t i = 2; i < w.size(); ++i) {
    if (!w[i].constant() || w[i].value < 1) return not_covered("weights without a kernel of constant size");
    kernel.push_back(w[i].value);
  }
  return kernel;
}

template <class Op>
Status emit_conv(NodeView& node, const Window& w, SmallVector<NamedAttribute> more = {}) {
  INVAR_TRY(int64_t groups, node.int_attr("group", 1));
  SmallVector<Value> in = {node.in(0), node.in(1)};
  if (node.has(2)) in.push_back(node.in(2));
  more.append({node.attr("strides", Ints(w.strides)), node.attr("dilations", Ints(w.dilations)),
               node.attr("pads", Ints(w.pads)), node.attr("groups", groups)});
  INVAR_TRY(Value out, node.make<Op>(in, more));
  return node.replace(out);
}

Status convolution(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  INVAR_TRY(std::vector<int64_t> kernel, kernel_shape(node));
  INVAR_TRY(Window w, parse_window(node, kernel));
  INVAR_TRY(AutoPad how, auto_pad(node));
  INVAR_CHECK_OK(resolve_pads(node, how, w));
  return emit_conv<ConvOp>(node, w);
}

// auto_pad and output_shape determine the output size, from which the pads follow. The odd element
// of a pad goes to the end with SAME_UPPER, else to the begin.
Status conv_transpose(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 3,
                             {"auto_pad", "dilations", "group", "kernel_shape", "output_padding",
                              "output_shape", "pads", "strides"}));
  INVAR_TRY(std::vector<int64_t> kernel, kernel_shape(node));
  INVAR_TRY(Window w, parse_window(node, kernel));
  INVAR_TRY(AutoPad how, auto_pad(node));
  INVAR_TRY(std::vector<int64_t> more, node.ints_attr("output_padding"));
  INVAR_TRY(std::vector<int64_t> length, node.ints_attr("output_shape"));
  const size_t axes = w.kernel.size();
  if (more.empty()) more.resize(axes);
  if (length.size() == axes + 2)
    length.erase(length.begin(), length.begin() + 2);  // it has batch and channels, too
  if (more.size() != axes || (!length.empty() && length.size() != axes))
    return bad_input("output_padding or output_shape does not have a number for each spatial dimension");
  for (int64_t n : more)
    if (n < 0 || n >= int64_t{1} << 30)
      return not_covered("attribute \"output_padding\" contains " + std::to_string(n));
  if (!length.empty() || how != AutoPad::notset) {
    const Shape x = node.shape(0);
    for (size_t i = 0; i < axes; ++i) {
      int64_t total = 0;
      if (!length.empty() || how != AutoPad::valid) {
        // SAME: the result has stride times the dimension, whatever the dimension is.
        total = more[i] + w.effective_kernel(i) - w.strides[i];
        if (!length.empty() && !x[2 + i].constant())
          return not_covered("output_shape with a spatial dimension that is not a constant");
        if (!length.empty()) total += x[2 + i].value * w.strides[i] - length[i];
      }
      if (total < 0) more[i] -= total, total = 0;  // +0, or the bias, at the end
      distribute_pad(w, i, total, how == AutoPad::same_upper);
    }
  }
  return emit_conv<ConvTransposeOp>(node, w, {node.attr("output_padding", Ints(more))});
}

// The result's shape: batch, output channels, and spatial sizes from length(in, effective kernel,
// axis, end pad index). a: attributes that all convolutions have.
template <class Attributes, class Length>
Result<ValueType> infer_convolution(InferredCall& in, const Attributes& a, bool transposed, Length length) {
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
    const auto d = static_cast<size_t>(2 + i);
    std::optional<Dim> n = length(x[d], (w[d].value - 1) * a.dilations[i] + 1, i, axes + i);
    if (!n) return not_covered("spatial dimension " + std::to_string(i) + " is not a constant");
    if (n->constant() && n->value < 0) return bad_input("pads that leave less than nothing");
    to.push_back(*n);
  }
  return ValueType{DType::f32, to};
}

}  // namespace

Result<ValueType> infer_conv(InferredCall& call, const ops::ConvAttributes& a) {
  return infer_convolution(call, a, false, [&](const Dim& in, int64_t reach, int64_t i, int64_t end) {
    return window_count(in, reach, a.strides[i], a.pads[i], a.pads[end], false);
  });
}

Result<ValueType> infer_conv_transpose(InferredCall& call, const ops::ConvTransposeAttributes& a) {
  return infer_convolution(call, a, true,
                           [&](const Dim& in, int64_t reach, int64_t i, int64_t end) -> std::optional<Dim> {
                             const int64_t more = a.output_padding[i] + reach - a.pads[i] - a.pads[end];
                             if (in.constant()) return Dim::of((in.value - 1) * a.strides[i] + more);
                             const std::optional<DimExpr> size = dim_expr_of(in);
                             const std::optional<DimExpr> span = size ? product(*size, a.strides[i]) : size;
                             const std::optional<DimExpr> n = span ? sum(*span, more - a.strides[i]) : span;
                             return n ? std::optional(Dim::of(*n)) : std::nullopt;
                           });
}

void import_conv(RuleRegistry& registry) {
  registry.add_rule("Conv", 1, convolution);
  registry.add_rule("ConvTranspose", 1, conv_transpose);
}

}  // namespace invar::compiler
