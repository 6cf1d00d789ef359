// Attention step by step, as the body of ONNX's function has it: for what the operation of this room does not do: scores as a
// result, weights in binary64. Linear attention, unrolled over its positions.
#pragma once
#include <cmath>
#include <limits>

#include "compiler/lowering/op_builder.h"
#include "compiler/lowering/builders/normalization.h"

namespace invar::compiler {
namespace {

// [B, S, H * D] or [B, H, S, D] -> [B, H, S, D].
Result<Value> heads_first(Node& node, Value x, int64_t heads) {
  const Shape s = shape_of(x.getType());
  if (s.size() == 4) return x;
  if (s.size() != 3 || !s[2].constant() || heads <= 0 || s[2].value % heads)
    return not_covered(
        "covered are operands [batch, sequence, heads * size] and [batch, heads, sequence, size]");
  INVAR_TRY(Value split, shaped(node, x, {s[0], s[1], Extent::of(heads), Extent::of(s[2].value / heads)}));
  return permuted(node, split, {0, 2, 1, 3});
}

// Each of the heads `times` times, one after the other.
Result<Value> repeated(Node& node, Value x, int64_t times) {
  if (times == 1) return x;
  const Shape s = shape_of(x.getType());
  INVAR_TRY(Value wide, shaped(node, x, {s[0], s[1], Extent::of(1), s[2], s[3]}));
  INVAR_TRY(wide, spread(node, wide, {s[0], s[1], Extent::of(times), s[2], s[3]}));
  return shaped(node, wide, {s[0], Extent::of(s[1].value * times), s[2], s[3]});
}

// Which keys a query sees, as numbers to add: 0, or -inf for those it does not see. Null: all.
struct Seen {
  Value allowed, bias;
};
Status also(Node& node, Seen& seen, Value allowed) {
  if (seen.allowed) {
    INVAR_TRY(allowed, node.make<LogicalAndOp>({seen.allowed, allowed}));
  }
  seen.allowed = allowed;
  return {};
}

// Query i stands at position offset + i; keys from `left` before it to `right` behind it are seen, -1: all of that side.
Status window(Node& node, Seen& seen, Value offset, int64_t queries, int64_t keys, int64_t left,
              int64_t right) {
  INVAR_TRY(Value at, counted(node, queries, {Extent::of(queries), Extent::of(1)}));
  INVAR_TRY(at, node.make<AddOp>({at, offset}));
  INVAR_TRY(Value key, counted(node, keys, {Extent::of(keys)}));
  if (right >= 0) {
    INVAR_TRY(Value last, node.make<AddOp>({at, node.constant(Sizes(right))}));
    INVAR_TRY(Value near, node.make<LessEqualOp>({key, last}));
    INVAR_CHECK_OK(also(node, seen, near));
  }
  if (left >= 0) {
    INVAR_TRY(Value first, node.make<SubOp>({at, node.constant(Sizes(left))}));
    INVAR_TRY(Value near, node.make<GreaterEqualOp>({key, first}));
    INVAR_CHECK_OK(also(node, seen, near));
  }
  return {};
}

constexpr float kHidden = -std::numeric_limits<float>::infinity();

Result<Value> bias_of(Node& node, int64_t queries, int64_t keys, int64_t past) {
  Seen seen;
  if (node.has(3)) {
    Value mask = node.in(3);
    Shape shape = node.shape(3);
    const bool truth = element_of(mask).isInteger(1);
    if (shape.empty() || !shape.back().constant() || (!truth && !element_of(mask).isF32()))
      return not_covered("a mask that is neither f32 nor bool, or of unknown length");
    if (shape.back().value != keys) {
      if (shape.back().value > keys || shape.back().value == 1 || node.version() < 24)
        return not_covered("a mask of " + text_of(shape.back()) + " columns for " + std::to_string(keys) +
                           " keys");
      shape.back() = Extent::of(keys);
      SmallVector<Value> in = {mask};
      if (!truth) in.push_back(node.constant(kHidden));
      const SmallVector<int64_t> begins(shape.size(), 0);
      INVAR_TRY(mask,
                node.make<PadOp>(in, node.attr("begins", Sizes(begins)), tensor_of(shape, element_of(mask))));
    }
    (truth ? seen.allowed : seen.bias) = mask;
  }
  INVAR_TRY(const int64_t causal, node.i("is_causal", 0));
  INVAR_TRY(const int64_t left, node.i("left_window_size", -1));
  INVAR_TRY(const int64_t right, node.i("right_window_size", -1));
  Value offset = node.constant(Sizes(past));
  if (node.has(6)) {
    if (node.shape(6).size() != 1) return bad_input("lengths of sequences that are no list");
    const Shape one = {node.shape(6)[0], Extent::of(1), Extent::of(1), Extent::of(1)};
    INVAR_TRY(Value lengths, shaped(node, node.in(6), one));
    INVAR_TRY(offset, node.make<SubOp>({lengths, node.constant(Sizes(queries))}));
    INVAR_TRY(Value key, counted(node, keys, {Extent::of(keys)}));
    INVAR_TRY(Value there, node.make<LessOp>({key, lengths}));
    INVAR_CHECK_OK(also(node, seen, there));
  }
  if (causal) {
    INVAR_CHECK_OK(window(node, seen, offset, queries, keys, -1, 0));
  }
  INVAR_CHECK_OK(window(node, seen, offset, queries, keys, left, right));
  if (!seen.allowed) return seen.bias;
  INVAR_TRY(Value hidden, node.make<WhereOp>({seen.allowed, node.constant(0.0f), node.constant(kHidden)}));
  if (!seen.bias) return hidden;
  return node.make<AddOp>({seen.bias, hidden});
}

constexpr int64_t kF32 = 1, kF64 = 11;  // TensorProto.DataType

// A query that sees no key has no weights instead of none that is a number.
Result<Value> weights_of(Node& node, Value scores, Value bias) {
  INVAR_TRY(const int64_t precision, node.i("softmax_precision", kF32));
  Value weights;
  if (precision == kF64) {
    const Shape shape = shape_of(scores.getType());
    INVAR_TRY(weights, node.make<CastOp>(scores, {}, tensor_of(shape, node.build().getF64Type())));
    INVAR_TRY(weights, wide_softmax(node, weights, 3, /*logarithm=*/false));
    INVAR_TRY(weights, node.make<CastOp>(weights, {}, tensor_of(shape, node.build().getF32Type())));
  } else {
    INVAR_TRY(weights, node.make<SoftmaxOp>(scores, node.attr("axis", int64_t{3})));
  }
  if (!bias) return weights;
  const int64_t last = static_cast<int64_t>(shape_of(bias.getType()).size()) - 1;
  INVAR_TRY(Value most, node.make<ReduceMaxOp>(
                            bias, {node.attr("axes", Sizes(last)), node.attr("keepdims", int64_t{1})}));
  INVAR_TRY(Value none, node.make<EqualOp>({most, node.constant(kHidden)}));
  return node.make<WhereOp>({none, node.constant(0.0f), weights});
}

Status composed(Node& node, int64_t q_heads, int64_t kv_heads, float scale, float softcap) {
  INVAR_TRY(const int64_t shown, node.i("qk_matmul_output_mode", 0));
  const bool flat = node.shape(0).size() == 3;
  INVAR_TRY(Value q, heads_first(node, node.in(0), q_heads));
  INVAR_TRY(Value k, heads_first(node, node.in(1), kv_heads));
  INVAR_TRY(Value v, heads_first(node, node.in(2), kv_heads));
  int64_t past = 0;
  if (node.has(4) || node.has(5)) {
    if (!node.has(4) || !node.has(5)) return bad_input("past key without past value, or the reverse");
    if (node.shape(4).size() != 4 || !node.shape(4)[2].constant())
      return not_covered("past keys of an unknown length");
    past = node.shape(4)[2].value;
    INVAR_TRY(k, joined(node, {node.in(4), k}, 2));
    INVAR_TRY(v, joined(node, {node.in(5), v}, 2));
  }
  node.replace(1, k);
  node.replace(2, v);
  const Shape qs = shape_of(q.getType()), ks = shape_of(k.getType());
  if (!qs[1].constant() || !ks[1].constant() || !qs[2].constant() || !ks[2].constant() || ks[1].value < 1)
    return not_covered("heads, queries or keys of an unknown number");
  if (!std::equal(ks.begin(), ks.begin() + 3, shape_of(v.getType()).begin()) || qs[3] != ks[3])
    return misfit({qs, ks, shape_of(v.getType())}, "queries, keys and values do not fit together");
  if (qs[1].value % ks[1].value) return bad_input("the heads of queries are no multiple of those of keys");
  INVAR_TRY(k, repeated(node, k, qs[1].value / ks[1].value));
  INVAR_TRY(v, repeated(node, v, qs[1].value / ks[1].value));
  INVAR_TRY(Value scores, product(node, q, k, /*transposed=*/true));
  INVAR_TRY(scores, node.make<MulOp>({scores, node.constant(scale)}));
  if (shown == 0) node.replace(3, scores);
  if (softcap != 0) {
    INVAR_TRY(Value small, node.make<DivOp>({scores, node.constant(softcap)}));
    INVAR_TRY(small, node.make<TanhOp>(small));
    INVAR_TRY(scores, node.make<MulOp>({small, node.constant(softcap)}));
  }
  if (shown == 1) node.replace(3, scores);
  INVAR_TRY(Value bias, bias_of(node, qs[2].value, ks[2].value, past));
  if (bias) {
    INVAR_TRY(scores, node.make<AddOp>({scores, bias}));
  }
  if (shown == 2) node.replace(3, scores);
  INVAR_TRY(Value weights, weights_of(node, scores, bias));
  if (shown == 3) node.replace(3, weights);
  INVAR_TRY(Value out, product(node, weights, v));
  if (flat) {
    INVAR_TRY(out, permuted(node, out, {0, 2, 1, 3}));
    const Shape s = shape_of(out.getType());
    INVAR_TRY(out, shaped(node, out, {s[0], s[1], Extent::of(s[2].value * s[3].value)}));
  }
  return node.replace(out);
}

// [B, T, H] or [B, T, H * D] of a decay or a rate -> [B, H, T, 1 or D].
Result<Value> rates(Node& node, unsigned operand, int64_t heads) {
  const Shape s = node.shape(operand);
  if (s.size() != 3 || !s[2].constant())
    return bad_input("operand " + std::to_string(operand) + " is not of rank 3");
  return heads_first(node, node.in(operand), s[2].value % heads ? s[2].value : heads);
}

// ONNX's recurrence, unrolled: S = S * exp(decay); v = beta * (v - k S); S = S + k v; y = scale * q S.
Status linear_attention(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 6, {"chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"}, 2));
  std::string rule = "gated_delta";
  if (auto given = dyn_cast_or_null<StringAttr>(node.attribute("update_rule"))) rule = given.str();
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") return bad_input("attribute \"update_rule\" is \"" + rule + "\"");
  if (node.has(4) != gated || node.has(5) != delta)
    return bad_input("decay or beta is missing, or there against attribute \"update_rule\"");
  INVAR_TRY(const int64_t q_heads, node.i("q_num_heads", 0));
  INVAR_TRY(const int64_t heads, node.i("kv_num_heads", 0));
  if (q_heads < 1 || heads < 1 || q_heads % heads)
    return bad_input("the heads of queries are no multiple of those of keys");
  INVAR_TRY(Value q, heads_first(node, node.in(0), q_heads));
  INVAR_TRY(Value k, heads_first(node, node.in(1), heads));
  INVAR_TRY(Value v, heads_first(node, node.in(2), heads));
  const Shape keys = shape_of(k.getType()), values = shape_of(v.getType());
  const Extent one = Extent::of(1), batch = keys[0], all = Extent::of(heads);
  const auto fits = [&](Value x, const Extent& last, bool shared) {
    const Shape s = shape_of(x.getType());
    return same(s[0], batch) && (s[1] == all || (shared && s[1] == one)) && same(s[2], keys[2]) &&
           (same(s[3], last) || (shared && s[3] == one));
  };
  if (shape_of(q.getType())[2] != keys[2] || shape_of(q.getType())[3] != keys[3] ||
      !fits(k, keys[3], false) || !fits(v, values[3], false))
    return misfit({shape_of(q.getType()), keys, values}, "queries, keys and values do not fit together");
  if (!keys[2].constant() || keys[2].value < 1 || keys[2].value > 4096)
    return not_covered("a sequence of " + text_of(keys[2]) + " positions; covered are 1 to 4096");
  INVAR_TRY(float scale, node.f("scale", 0));
  if (scale == 0) scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(keys[3].value)));
  Value decay, beta, state;
  if (gated) {
    INVAR_TRY(decay, rates(node, 4, heads));
    if (!fits(decay, keys[3], true))
      return misfit({shape_of(decay.getType()), keys}, "operand 4 does not fit the keys");
    INVAR_TRY(decay, node.make<ExpOp>(decay));
  }
  if (delta) {
    INVAR_TRY(beta, rates(node, 5, heads));
    if (!fits(beta, one, true))
      return misfit({shape_of(beta.getType()), keys}, "operand 5 does not fit the keys");
  }
  const Shape wanted = {batch, all, keys[3], values[3]};
  if (node.has(3)) {
    if (node.shape(3) != wanted)
      return unequal(node.shape(3), wanted,
                     "operand 3 of shape " + text_of(node.shape(3)) + " instead of " + text_of(wanted));
    state = node.in(3);
  } else {
    INVAR_TRY(state, spread(node, node.constant(0.0f), wanted));
  }
  // The queries of one key's heads are rows of one product.
  const Extent group = Extent::of(q_heads / heads);
  SmallVector<Value> outputs;
  for (int64_t t = 0; t < keys[2].value; ++t) {
    INVAR_TRY(Value key, part(node, k, 2, t, 1));
    INVAR_TRY(Value value, part(node, v, 2, t, 1));
    INVAR_TRY(Value query, part(node, q, 2, t, 1));
    if (gated) {
      INVAR_TRY(Value g, part(node, decay, 2, t, 1));
      const Shape s = shape_of(g.getType());
      INVAR_TRY(g, shaped(node, g, {s[0], s[1], s[3], one}));
      INVAR_TRY(state, node.make<MulOp>({state, g}));
    }
    if (delta) {
      INVAR_TRY(Value found, product(node, key, state));
      INVAR_TRY(Value rate, part(node, beta, 2, t, 1));
      INVAR_TRY(value, node.make<SubOp>({value, found}));
      INVAR_TRY(value, node.make<MulOp>({rate, value}));
    }
    INVAR_TRY(Value column, shaped(node, key, {batch, all, keys[3], one}));
    INVAR_TRY(Value written, node.make<MulOp>({column, value}));
    INVAR_TRY(state, node.make<AddOp>({state, written}));
    INVAR_TRY(query, shaped(node, query, {batch, all, group, keys[3]}));
    INVAR_TRY(Value out, product(node, query, state));
    INVAR_TRY(out, node.make<MulOp>({out, node.constant(scale)}));
    INVAR_TRY(out, shaped(node, out, {batch, one, Extent::of(q_heads * values[3].value)}));
    outputs.push_back(out);
  }
  INVAR_TRY(Value y, joined(node, outputs, 1));
  node.replace(1, state);
  return node.replace(y);
}

}  // namespace
}  // namespace invar::compiler
