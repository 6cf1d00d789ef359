// Lowering of LinearAttention, and the type inference of the room's operations. Over positions of a
// fixed number the operator of ONNX is its recurrence, unrolled: that composition came first, and
// programs have its bits. Elsewhere it is an operation of this room, which has other last bits.
#include <cmath>

#include "compiler/room_api.h"
#include "ops/linear_attention/attributes.h"

namespace invar::compiler {
namespace {

// A node says this: its rule and its heads.
struct LinearNode {
  bool gated, delta;
  int64_t q_heads, heads;
  float scale;
};

Result<LinearNode> read_linear_node(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 6, {"chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"}, 2));
  std::string rule = "gated_delta";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("update_rule"))) rule = given.str();
  LinearNode n{};
  n.gated = rule == "gated" || rule == "gated_delta", n.delta = rule == "delta" || rule == "gated_delta";
  if (!n.gated && !n.delta && rule != "linear")
    return bad_input("attribute \"update_rule\" is \"" + rule + "\"");
  if (node.has(4) != n.gated || node.has(5) != n.delta)
    return bad_input("decay or beta is missing, or there against attribute \"update_rule\"");
  INVAR_TRY(n.q_heads, node.int_attr("q_num_heads", 0));
  INVAR_TRY(n.heads, node.int_attr("kv_num_heads", 0));
  for (unsigned i = 0; i < 3; ++i)
    if (node.shape(i).size() != 3 || !node.shape(i)[2].constant())
      return not_covered("covered are operands [batch, sequence, heads * size]");
  if (n.q_heads < 1 || n.heads < 1 || node.shape(0)[2].value % n.q_heads || node.shape(2)[2].value % n.heads)
    return bad_input("heads of queries and values do not fit their operands");
  INVAR_TRY(n.scale, node.float_attr("scale", 0));
  if (n.scale == 0)
    n.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(node.shape(0)[2].value / n.q_heads)));
  return n;
}

// [B, S, H * D] -> [B, H, S, D].
Result<Value> heads_before_rows(NodeView& node, Value x, int64_t heads) {
  const Shape s = shape_of(x.getType());
  if (s[2].value % heads) return bad_input("an operand of " + text_of(s[2]) + " columns for its heads");
  INVAR_TRY(Value split, reshape(node, x, {s[0], s[1], Dim::of(heads), Dim::of(s[2].value / heads)}));
  return transpose(node, split, {0, 2, 1, 3});
}

// A decay or rate [B, T, H] or [B, T, H * D] -> [B, H, T, 1 or D].
Result<Value> rates_of_heads(NodeView& node, unsigned operand, int64_t heads) {
  const Shape s = node.shape(operand);
  if (s.size() != 3 || !s[2].constant())
    return bad_input("operand " + std::to_string(operand) + " is not of rank 3");
  return heads_before_rows(node, node.in(operand), s[2].value % heads ? s[2].value : heads);
}

// The initial state (operand 3); zeros if there is none.
Result<Value> initial_linear_state(NodeView& node, const Shape& wanted) {
  if (!node.has(3)) return expand(node, node.constant(0.0f), wanted);
  if (node.shape(3) != wanted)
    return unequal_shapes(node.shape(3), wanted,
                          "operand 3 of shape " + text_of(node.shape(3)) + " instead of " + text_of(wanted));
  return node.in(3);
}

// Operands of the unrolled recurrence, heads before rows. Absent ones are null.
struct Unrolled {
  Value q, k, v, decay, beta, state;
};

// One position: S = S * exp(decay); v = beta * (v - k S); S = S + k v; y = scale * q S.
Result<Value> recurrent_step(NodeView& node, const LinearNode& n, Unrolled& u, int64_t t) {
  const Shape keys = shape_of(u.k.getType()), values = shape_of(u.v.getType());
  const Dim one = Dim::of(1), all = Dim::of(n.heads);
  INVAR_TRY(Value key, slice(node, u.k, 2, t, 1));
  INVAR_TRY(Value value, slice(node, u.v, 2, t, 1));
  INVAR_TRY(Value query, slice(node, u.q, 2, t, 1));
  if (n.gated) {
    INVAR_TRY(Value g, slice(node, u.decay, 2, t, 1));
    const Shape s = shape_of(g.getType());
    INVAR_TRY(g, reshape(node, g, {s[0], s[1], s[3], one}));
    INVAR_TRY(u.state, node.make<MulOp>({u.state, g}));
  }
  if (n.delta) {
    INVAR_TRY(Value found, matrix_product(node, key, u.state));
    INVAR_TRY(Value rate, slice(node, u.beta, 2, t, 1));
    INVAR_TRY(value, node.make<SubOp>({value, found}));
    INVAR_TRY(value, node.make<MulOp>({rate, value}));
  }
  INVAR_TRY(Value column, reshape(node, key, {keys[0], all, keys[3], one}));
  INVAR_TRY(Value written, node.make<MulOp>({column, value}));
  INVAR_TRY(u.state, node.make<AddOp>({u.state, written}));
  // The query heads of one key head are the rows of one product.
  INVAR_TRY(query, reshape(node, query, {keys[0], all, Dim::of(n.q_heads / n.heads), keys[3]}));
  INVAR_TRY(Value out, matrix_product(node, query, u.state));
  INVAR_TRY(out, node.make<MulOp>({out, node.constant(n.scale)}));
  return reshape(node, out, {keys[0], one, Dim::of(n.q_heads * values[3].value)});
}

Status unrolled_linear_attention(NodeView& node, const LinearNode& n) {
  Unrolled u;
  INVAR_TRY(u.q, heads_before_rows(node, node.in(0), n.q_heads));
  INVAR_TRY(u.k, heads_before_rows(node, node.in(1), n.heads));
  INVAR_TRY(u.v, heads_before_rows(node, node.in(2), n.heads));
  const Shape queries = shape_of(u.q.getType()), keys = shape_of(u.k.getType()),
              values = shape_of(u.v.getType());
  const Dim one = Dim::of(1), all = Dim::of(n.heads);
  const auto fits = [&](Value x, const Dim& last, bool shared) {
    const Shape s = shape_of(x.getType());
    return known_equal(s[0], keys[0]) && (s[1] == all || (shared && s[1] == one)) &&
           known_equal(s[2], keys[2]) && (known_equal(s[3], last) || (shared && s[3] == one));
  };
  if (queries[2] != keys[2] || queries[3] != keys[3] || !fits(u.k, keys[3], false) ||
      !fits(u.v, values[3], false))
    return shape_error({queries, keys, values}, "queries, keys and values do not fit together");
  if (keys[2].value < 1 || keys[2].value > 4096)
    return not_covered("a sequence of " + text_of(keys[2]) + " positions; covered are 1 to 4096");
  if (n.gated) {
    INVAR_TRY(u.decay, rates_of_heads(node, 4, n.heads));
    if (!fits(u.decay, keys[3], true))
      return shape_error({shape_of(u.decay.getType()), keys}, "operand 4 does not fit the keys");
    INVAR_TRY(u.decay, node.make<ExpOp>(u.decay));
  }
  if (n.delta) {
    INVAR_TRY(u.beta, rates_of_heads(node, 5, n.heads));
    if (!fits(u.beta, one, true))
      return shape_error({shape_of(u.beta.getType()), keys}, "operand 5 does not fit the keys");
  }
  INVAR_TRY(u.state, initial_linear_state(node, {keys[0], all, keys[3], values[3]}));
  SmallVector<Value> outputs;
  for (int64_t t = 0; t < keys[2].value; ++t) {
    INVAR_TRY(Value out, recurrent_step(node, n, u, t));
    outputs.push_back(out);
  }
  INVAR_TRY(Value y, concat(node, outputs, 1));
  node.replace(1, u.state);
  return node.replace(y);
}

// [B, S, H * D] -> [B, S, wanted * D]: each head several times. H = 1 or a divisor of `wanted`.
Result<Value> repeat_rows_of_heads(NodeView& node, Value x, int64_t heads, int64_t wanted) {
  if (heads == wanted) return x;
  const Shape s = shape_of(x.getType());
  const Dim count = Dim::of(heads), times = Dim::of(wanted / heads), size = Dim::of(s[2].value / heads);
  INVAR_TRY(Value wide, reshape(node, x, {s[0], s[1], count, Dim::of(1), size}));
  INVAR_TRY(wide, expand(node, wide, {s[0], s[1], count, times, size}));
  return reshape(node, wide, {s[0], s[1], Dim::of(wanted * size.value)});
}

// The operation of this room. Heads of queries, keys and values may be of three numbers; fewer of
// queries or keys than of values stay shared, other ones are repeated.
Status chunked_linear_attention(NodeView& node, const LinearNode& n) {
  const Shape q = node.shape(0), k = node.shape(1), v = node.shape(2);
  const int64_t d = q[2].value / n.q_heads, dv = v[2].value / n.heads, k_heads = k[2].value / d;
  const int64_t key_heads = std::max(n.q_heads, k_heads), value_heads = std::max(n.heads, key_heads);
  if (k[2].value % d || k_heads < 1 || key_heads % n.q_heads || key_heads % k_heads ||
      value_heads % key_heads || value_heads % n.heads)
    return shape_error({q, k, v}, "queries, keys and values do not fit together");
  const bool memory = node.has(3) && node.can_become_state(3, 1);
  if (memory && node.shape(3) != Shape{v[0], Dim::of(n.heads), Dim::of(d), Dim::of(dv)})
    return bad_input("operand 3 of shape " + text_of(node.shape(3)));
  if (!memory && (node.has(3) || result_is_used(node, 1)))
    return not_covered(
        "past_state and present_state that are not one input and one output of the graph, over a sequence of "
        "an open length");
  Value decay, beta;
  if (n.gated) {
    const Shape s = node.shape(4);
    if (s.size() != 3 || (s[2] != Dim::of(1) && s[2] != Dim::of(n.heads) && s[2] != Dim::of(n.heads * d)))
      return shape_error({s, v}, "operand 4 does not fit the keys");
    INVAR_TRY(decay, repeat_rows_of_heads(node, node.in(4), s[2] == Dim::of(1) ? 1 : n.heads, value_heads));
  } else {
    INVAR_TRY(decay, expand(node, node.constant(0.0f), {v[0], v[1], Dim::of(value_heads)}));
  }
  if (n.delta) {
    const Shape s = node.shape(5);
    if (s.size() != 3 || (s[2] != Dim::of(1) && s[2] != Dim::of(n.heads)))
      return shape_error({s, v}, "operand 5 does not fit the keys");
    INVAR_TRY(beta, repeat_rows_of_heads(node, node.in(5), s[2] == Dim::of(1) ? 1 : n.heads, value_heads));
  }
  SmallVector<Value> operands(3);
  INVAR_TRY(operands[0], repeat_rows_of_heads(node, node.in(0), n.q_heads, key_heads));
  INVAR_TRY(operands[1], repeat_rows_of_heads(node, node.in(1), k_heads, key_heads));
  INVAR_TRY(operands[2], repeat_rows_of_heads(node, node.in(2), n.heads, value_heads));
  operands.push_back(decay);
  if (n.delta) operands.push_back(beta);
  SmallVector<NamedAttribute> attrs{node.attr("key_heads", key_heads), node.attr("value_heads", value_heads),
                                    node.attr("scale", n.scale)};
  if (memory) attrs.push_back(node.attr("state", node.become_state(3, 1)));
  INVAR_TRY(Value out, n.delta ? node.make<GatedDeltaRuleOp>(operands, attrs)
                               : node.make<GatedLinearAttentionOp>(operands, attrs));
  return node.replace(out);
}

Status linear_attention(NodeView& node) {
  INVAR_TRY(const LinearNode n, read_linear_node(node));
  if (n.q_heads % n.heads) return bad_input("the heads of queries are no multiple of those of keys");
  return node.shape(1)[1].constant() ? unrolled_linear_attention(node, n) : chunked_linear_attention(node, n);
}

// LinearAttention of com.microsoft, which also has fewer heads of queries and keys than of values,
// and that of invar, the same as exporters write it for this room.
Status linear_attention_of_room(NodeView& node) {
  INVAR_TRY(const LinearNode n, read_linear_node(node));
  return chunked_linear_attention(node, n);
}

}  // namespace

Result<ValueType> infer_linear_attention(InferredCall& in, const ops::GatedDeltaRuleAttributes& a) {
  const Shape &q = in[0].shape, &v = in[2].shape, &g = in[3].shape;
  const int64_t key_heads = a.key_heads, heads = a.value_heads;
  for (size_t i = 0; i < 3; ++i)
    if (in[i].shape.size() != 3 || !in[i].shape[2].constant())
      return not_covered("covered are operands [batch, sequence, heads * size]");
  if (key_heads < 1 || heads < 1 || heads % key_heads || q[2] != in[1].shape[2] || q[2].value < 1 ||
      q[2].value % key_heads || v[2].value < 1 || v[2].value % heads)
    return bad_input("heads and sizes of queries, keys and values do not fit");
  if (g.size() != 3 || (g[2] != Dim::of(heads) && g[2] != Dim::of(heads * (q[2].value / key_heads))))
    return bad_input("decays that are neither of value heads nor of their channels");
  if (in.has(4) && (in[4].shape.size() != 3 || in[4].shape[2] != Dim::of(heads)))
    return bad_input("beta that is not of value heads");
  for (size_t i = 1; i < in.size(); ++i)
    for (const size_t axis : {0, 1})
      if (!may_be_equal(q[axis], in[i].shape[axis]))
        return in.unequal_dims(q[axis], in[i].shape[axis], "batch or sequence");
  return ValueType{in[0].dtype, {q[0], q[1], v[2]}};
}

void import_linear_attention(RuleRegistry& registry) {
  registry.add_rule("LinearAttention", 27, linear_attention, "TTTSTT>TS");
  registry.add_rule("com.microsoft.LinearAttention", 1, linear_attention_of_room, "TTTSTT>TS");
  registry.add_rule("invar.LinearAttention", 1, linear_attention_of_room, "TTTSTT>TS");
}

}  // namespace invar::compiler
