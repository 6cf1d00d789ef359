// Lowering of CausalConvWithState, and the type inference of repro.causal_conv.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// Operands: x [batch, channels, length], weights [channels, 1, width], a bias, the past
// [batch, channels, width - 1]. Result 1 is the past of the next call.
struct CausalConvNode {
  Dim batch, length;
  int64_t channels, before;  // before: width - 1
};

// The operation itself, with positions before channels. `state`: its name; empty: there is none.
Result<Value> emit_causal_conv(NodeView& node, const CausalConvNode& c, const std::string& state) {
  INVAR_TRY(const Value x, transpose(node, node.in(0), {0, 2, 1}));
  INVAR_TRY(const Value w, reshape(node, node.in(1), {Dim::of(c.channels), Dim::of(c.before + 1)}));
  SmallVector<Value> in = {x, w};
  if (node.has(2)) in.push_back(node.in(2));
  SmallVector<NamedAttribute> attrs;
  if (!state.empty()) attrs.push_back(node.attr("state", state));
  INVAR_TRY(const Value out, node.make<CausalConvOp>(in, attrs));
  return transpose(node, out, {0, 2, 1});
}

// A constant length becomes a convolution of x after the past or zeros, which meet weights that are
// not finite, too (causal_conv.6).
Result<Value> emit_padded_conv(NodeView& node, const CausalConvNode& c) {
  const Dim whole = Dim::of(c.length.value + c.before);
  const Shape shape = {c.batch, Dim::of(c.channels), whole};
  Value all = node.in(0);
  if (node.has(3)) {
    INVAR_TRY(all, concat(node, {node.in(3), node.in(0)}, 2));
    if (shape_of(all.getType()) != shape)
      return bad_input("operand 3 is not one position less than the kernel");
  } else if (c.before) {
    INVAR_TRY(all, node.make<PadOp>(all, node.attr("begins", Ints({0, 0, c.before})),
                                    tensor_of(shape, element_of(all))));
  }
  SmallVector<Value> in = {all, node.in(1)};
  if (node.has(2)) in.push_back(node.in(2));
  const int64_t one = 1, none[] = {0, 0};
  INVAR_TRY(const Value out,
            node.make<ConvOp>(in, {node.attr("strides", Ints(one)), node.attr("dilations", Ints(one)),
                                   node.attr("pads", Ints(none)), node.attr("groups", c.channels)}));
  INVAR_TRY(const Value past, slice(node, all, 2, c.length.value, c.before));
  node.replace(1, past);
  return out;
}

// Tells whether operand 3 and result 1 are memory between steps.
bool keeps_state(const NodeView& node, const CausalConvNode& c) {
  if (!node.has(3) || !node.can_become_state(3, 1)) return false;
  const Shape past = node.shape(3);
  return past.size() == 3 && known_equal(past[0], c.batch) && past[1] == Dim::of(c.channels) &&
         past[2] == Dim::of(c.before);
}

Status causal_convolution(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 4, {"activation"}, 2));
  std::string activation = "none";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("activation"))) activation = given.str();
  // ONNX accepts both names, and both mean SiLU.
  const bool gated = activation == SiluOp::getOperationName().split('.').second ||
                     activation == SwishOp::getOperationName().split('.').second;
  if (activation != "none" && !gated) return bad_input("attribute \"activation\" is \"" + activation + "\"");
  const Shape x = node.shape(0), w = node.shape(1);
  if (x.size() != 3 || w.size() != 3) return bad_input("operand or weights are not of rank 3");
  if (!x[1].constant() || !w[2].constant() || w[2].value < 1)
    return not_covered("channels or kernel of unknown size");
  const CausalConvNode c{x[0], x[2], x[1].value, w[2].value - 1};
  Value out;
  if (x[2].constant()) {
    INVAR_TRY(out, emit_padded_conv(node, c));
  } else if (keeps_state(node, c)) {
    INVAR_TRY(out, emit_causal_conv(node, c, node.become_state(3, 1)));
  } else if (!node.has(3) && !result_is_used(node, 1)) {
    INVAR_TRY(out, emit_causal_conv(node, c, ""));
  } else {
    return not_covered("a length of unknown size with a state that is no memory between steps");
  }
  if (gated) {
    INVAR_TRY(out, node.make<SiluOp>(out));
  }
  return node.replace(out);
}

}  // namespace

Result<ValueType> infer_causal_conv(InferredCall& in) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  if (x.size() != 3 || w.size() != 2) return not_covered("covered are x of rank 3 and weights of rank 2");
  if (!x[2].constant() || w[0] != x[2] || !w[1].constant())
    return bad_input(text_of(x[2]) + " channels and weights " + text_of(w));
  if (w[1].value < 1 || w[1].value > 8) return not_covered("a width that is none of 1 to 8");
  if (in.has(2) && in[2].shape != Shape{x[2]})
    return bad_input("a bias that does not have an element for each channel");
  return in[0];
}

void import_causal_conv(RuleRegistry& registry) {
  registry.add_rule("CausalConvWithState", 27, causal_convolution);
}

}  // namespace invar::compiler
