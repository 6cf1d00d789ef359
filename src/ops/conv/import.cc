// Lowering of Conv and ConvTranspose, and the types of their results.
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

}  // namespace

Result<ValueType> infer_conv(InferredCall& call, const ops::ConvAttributes& a) {
  return infer_convolution(call, DType::f32, {a.strides, a.dilations, a.pads, a.groups});
}

Result<ValueType> infer_conv_transpose(InferredCall& call, const ops::ConvTransposeAttributes& a) {
  const auto length = [&](const Dim& in, int64_t reach, int64_t i) -> std::optional<Dim> {
    const int64_t end = a.pads[a.pads.size / 2 + i], more = a.output_padding[i] + reach - a.pads[i] - end;
    if (in.constant()) return Dim::of((in.value - 1) * a.strides[i] + more);
    const std::optional<DimExpr> size = dim_expr_of(in);
    const std::optional<DimExpr> span = size ? product(*size, a.strides[i]) : size;
    const std::optional<DimExpr> n = span ? sum(*span, more - a.strides[i]) : span;
    return n ? std::optional(Dim::of(*n)) : std::nullopt;
  };
  return infer_convolution(call, DType::f32, {a.strides, a.dilations, a.pads, a.groups}, length);
}

void import_conv(RuleRegistry& registry) {
  registry.add_rule("Conv", 1, convolution);
  registry.add_rule("ConvTranspose", 1, conv_transpose);
}

}  // namespace invar::compiler
