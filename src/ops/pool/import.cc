// Lowering of the pools, the global pools and LRN, and the type inference of the pools.
#include "compiler/room_api.h"
#include "ops/pool/attributes.h"

namespace invar::compiler {
namespace {

// The attributes of every pool. With auto_pad, rounding up and down give the same number of
// windows.
Result<SmallVector<NamedAttribute>> pool_attrs(NodeView& node) {
  INVAR_TRY(Window w, parse_window(node, {}));
  INVAR_TRY(AutoPad how, auto_pad(node));
  INVAR_TRY(int64_t ceil, node.int_attr("ceil_mode", 0));
  INVAR_CHECK_OK(resolve_pads(node, how, w));
  return SmallVector<NamedAttribute>{
      node.attr("kernel", Ints(w.kernel)), node.attr("strides", Ints(w.strides)),
      node.attr("dilations", Ints(w.dilations)), node.attr("pads", Ints(w.pads)),
      node.attr("ceil_mode", int64_t{ceil != 0 && how == AutoPad::notset})};
}

Status max_pool(NodeView& node) {
  INVAR_CHECK_OK(node.expect(
      1, 1, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"}, 2));
  INVAR_TRY(SmallVector<NamedAttribute> attrs, pool_attrs(node));
  INVAR_TRY(int64_t by_columns, node.int_attr("storage_order", 0));
  INVAR_TRY(Value out, node.make<MaxPoolOp>(node.in(0), attrs));
  if (node.num_results() > 1 && !node.out(1).use_empty()) {
    attrs.push_back(node.attr("column_major", int64_t{by_columns != 0}));
    INVAR_TRY(Value indices, node.make<MaxPoolIndicesOp>(node.in(0), attrs));
    node.replace(1, indices);
  }
  return node.replace(out);
}

Status average_pool(NodeView& node) {
  INVAR_CHECK_OK(node.expect(
      1, 1, {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"}));
  INVAR_TRY(SmallVector<NamedAttribute> attrs, pool_attrs(node));
  INVAR_TRY(int64_t padded, node.int_attr("count_include_pad", 0));
  attrs.push_back(node.attr("count_include_pad", int64_t{padded != 0}));
  INVAR_TRY(Value out, node.make<AveragePoolOp>(node.in(0), attrs));
  return node.replace(out);
}

// The power of a norm, a float before opset 2.
Result<float> norm_power(NodeView& node) {
  if (node.version() < 2) return node.float_attr("p", 2);
  INVAR_TRY(const int64_t p, node.int_attr("p", 2));
  return static_cast<float>(p);
}

// A p-norm: `norm` computes it for p = 1 and 2; other p are the p-th root of the 1-norm of |x|^p.
template <class Norm>
Result<Value> lower_p_norm(NodeView& node, Norm norm) {
  INVAR_TRY(const float power, norm_power(node));
  if (power == 1 || power == 2) return norm(node.in(0), static_cast<int64_t>(power));
  if (!(power >= 1)) return bad_input("attribute \"p\" is " + std::to_string(power));
  INVAR_TRY(Value x, node.make<AbsOp>(node.in(0)));
  INVAR_TRY(x, node.make<PowOp>({x, node.constant(power)}));
  INVAR_TRY(x, norm(x, int64_t{1}));
  return node.make<PowOp>({x, node.constant(1 / power)});
}

Status lp_pool(NodeView& node) {
  INVAR_CHECK_OK(
      node.expect(1, 1, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "p", "pads", "strides"}));
  INVAR_TRY(const SmallVector<NamedAttribute> attrs, pool_attrs(node));
  INVAR_TRY(Value out, lower_p_norm(node, [&](Value x, int64_t p) {
              SmallVector<NamedAttribute> with_p(attrs);
              with_p.push_back(node.attr("p", p));
              return node.make<LpPoolOp>(x, with_p);
            }));
  return node.replace(out);
}

// A global pool is a reduction over the spatial dimensions, which are kept.
template <class Op>
Result<Value> reduce_spatial(NodeView& node, Value x) {
  const size_t rank = node.shape(0).size();
  if (rank < 2) return bad_input("an operand of rank " + std::to_string(rank) + " has no channels");
  std::vector<int64_t> axes;
  for (size_t d = 2; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  return node.make<Op>(x, {node.attr("axes", Ints(axes)), node.attr("keepdims", int64_t{1})});
}

template <class Op>
Status global_pool(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  INVAR_TRY(Value out, reduce_spatial<Op>(node, node.in(0)));
  return node.replace(out);
}

Status global_lp_pool(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"p"}));
  INVAR_TRY(Value out, lower_p_norm(node, [&](Value x, int64_t p) {
              return p == 1 ? reduce_spatial<ReduceL1Op>(node, x) : reduce_spatial<ReduceL2Op>(node, x);
            }));
  return node.replace(out);
}

// x / (bias + alpha * mean)^beta, where mean is that of the squares of `size` channels around each
// channel, with zeros beyond the ends: an average pool along the channels, which become a spatial
// dimension.
Status local_response(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"alpha", "beta", "bias", "size"}));
  INVAR_TRY(float alpha, node.float_attr("alpha", 1e-4f));
  INVAR_TRY(float beta, node.float_attr("beta", 0.75f));
  INVAR_TRY(float bias, node.float_attr("bias", 1.0f));
  INVAR_TRY(int64_t size, node.int_attr("size", 0));
  Shape shape = node.shape(0), windows = shape;
  if (size < 1) return bad_input("attribute \"size\" is " + std::to_string(size));
  if (shape.size() < 2 || shape.size() > 4) return not_covered("covered are ranks 2 to 4");
  windows.insert(windows.begin() + 1, Dim::of(1));
  const size_t axes = shape.size() - 1;
  std::vector<int64_t> kernel(axes, 1), ones(axes, 1), pads(2 * axes, 0);
  kernel[0] = size, pads[0] = (size - 1) / 2, pads[axes] = size / 2;
  const Value x = node.in(0);
  INVAR_TRY(Value v, node.make<MulOp>({x, x}));
  INVAR_TRY(v, node.make<ReshapeOp>(v, {}, tensor_of(windows, element_of(x))));
  INVAR_TRY(v, node.make<AveragePoolOp>(
                   v, {node.attr("kernel", Ints(kernel)), node.attr("strides", Ints(ones)),
                       node.attr("dilations", Ints(ones)), node.attr("pads", Ints(pads)),
                       node.attr("ceil_mode", int64_t{0}), node.attr("count_include_pad", int64_t{1})}));
  INVAR_TRY(v, node.make<ReshapeOp>(v, {}, tensor_of(shape, element_of(x))));
  INVAR_TRY(v, node.make<MulOp>({v, node.constant(alpha)}));
  INVAR_TRY(v, node.make<AddOp>({v, node.constant(bias)}));
  INVAR_TRY(v, node.make<PowOp>({v, node.constant(beta)}));
  INVAR_TRY(Value out, node.make<DivOp>({x, v}));
  return node.replace(out);
}

}  // namespace

Result<ValueType> infer_pool(InferredCall& in, const ops::MaxPoolAttributes& a) {
  const Shape& x = in[0].shape;
  if (x.size() < 3 || x.size() > 5) return not_covered("covered are one to three spatial dimensions");
  const auto axes = static_cast<int64_t>(x.size()) - 2;
  if (a.kernel.size != axes || a.strides.size != axes || a.dilations.size != axes || a.pads.size != 2 * axes)
    return bad_input("kernel, strides, dilations or pads do not have a number for each spatial dimension");
  Shape to = {x[0], x[1]};
  for (int64_t i = 0; i < axes; ++i) {
    std::optional<Dim> n =
        window_count(x[static_cast<size_t>(2 + i)], (a.kernel[i] - 1) * a.dilations[i] + 1, a.strides[i],
                     a.pads[i], a.pads[axes + i], in.integer("ceil_mode").value_or(0) != 0);
    if (!n) return not_covered("spatial dimension " + std::to_string(i) + " is not a constant");
    to.push_back(*n);
  }
  return ValueType{DType::f32, to};
}

void import_pool(RuleRegistry& registry) {
  registry.add_rule("MaxPool", 1, max_pool, Widening::exact);
  registry.add_rule("AveragePool", 1, average_pool);
  registry.add_rule("LpPool", 1, lp_pool);
  registry.add_rule("LRN", 1, local_response);
  registry.add_rule("GlobalMaxPool", 1, global_pool<ReduceMaxOp>);
  registry.add_rule("GlobalAveragePool", 1, global_pool<ReduceMeanOp>);
  registry.add_rule("GlobalLpPool", 1, global_lp_pool);
}

}  // namespace invar::compiler
