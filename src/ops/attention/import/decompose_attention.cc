// Attention decomposed as in the body of ONNX's function, for what repro.attention does not
// compute: scores as a result, f64 weights.
#include "ops/attention/import/decompose_attention.h"

#include <limits>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// Repeats each head `times` times (grouped queries).
Result<Value> repeat_heads(NodeView& node, Value x, int64_t times) {
  if (times == 1) return x;
  const Shape s = shape_of(x.getType());
  INVAR_TRY(Value wide, reshape(node, x, {s[0], s[1], Dim::of(1), s[2], s[3]}));
  INVAR_TRY(wide, expand(node, wide, {s[0], s[1], Dim::of(times), s[2], s[3]}));
  return reshape(node, wide, {s[0], Dim::of(s[1].value * times), s[2], s[3]});
}

// Says which keys a query sees: a boolean mask and a bias to add to the scores (-inf masks a key).
// Null: all keys.
struct Visibility {
  Value allowed, bias;
};
Status restrict_to(NodeView& node, Visibility& visibility, Value allowed) {
  if (visibility.allowed) {
    INVAR_TRY(allowed, node.make<LogicalAndOp>({visibility.allowed, allowed}));
  }
  visibility.allowed = allowed;
  return {};
}

// Sliding window: query i is at position offset + i and attends to the keys from `left` before it
// to `right` after it; -1: no bound on that side.
Status apply_window(NodeView& node, Visibility& visibility, Value offset, int64_t queries, int64_t keys,
                    int64_t left, int64_t right) {
  INVAR_TRY(Value at, iota_constant(node, queries, {Dim::of(queries), Dim::of(1)}));
  INVAR_TRY(at, node.make<AddOp>({at, offset}));
  INVAR_TRY(Value key, iota_constant(node, keys, {Dim::of(keys)}));
  if (right >= 0) {
    INVAR_TRY(Value last, node.make<AddOp>({at, node.constant(Ints(right))}));
    INVAR_TRY(Value near, node.make<LessEqualOp>({key, last}));
    INVAR_CHECK_OK(restrict_to(node, visibility, near));
  }
  if (left >= 0) {
    INVAR_TRY(Value first, node.make<SubOp>({at, node.constant(Ints(left))}));
    INVAR_TRY(Value near, node.make<GreaterEqualOp>({key, first}));
    INVAR_CHECK_OK(restrict_to(node, visibility, near));
  }
  return {};
}

constexpr float kMasked = -std::numeric_limits<float>::infinity();

Result<Value> mask_bias(NodeView& node, int64_t queries, int64_t keys, int64_t past) {
  Visibility visibility;
  if (node.has(3)) {
    Value mask = node.in(3);
    Shape shape = node.shape(3);
    const bool is_bool = element_of(mask).isInteger(1);
    if (shape.empty() || !shape.back().constant() || (!is_bool && !element_of(mask).isF32()))
      return not_covered("a mask that is neither f32 nor bool, or of unknown length");
    if (shape.back().value != keys) {
      if (shape.back().value > keys || shape.back().value == 1 || node.version() < 24)
        return not_covered("a mask of " + text_of(shape.back()) + " columns for " + std::to_string(keys) +
                           " keys");
      shape.back() = Dim::of(keys);
      SmallVector<Value> in = {mask};
      if (!is_bool) in.push_back(node.constant(kMasked));
      const SmallVector<int64_t> begins(shape.size(), 0);
      INVAR_TRY(mask,
                node.make<PadOp>(in, node.attr("begins", Ints(begins)), tensor_of(shape, element_of(mask))));
    }
    (is_bool ? visibility.allowed : visibility.bias) = mask;
  }
  INVAR_TRY(const int64_t causal, node.int_attr("is_causal", 0));
  INVAR_TRY(const int64_t left, node.int_attr("left_window_size", -1));
  INVAR_TRY(const int64_t right, node.int_attr("right_window_size", -1));
  Value offset = node.constant(Ints(past));
  if (node.has(6)) {
    if (node.shape(6).size() != 1) return bad_input("lengths of sequences that are no list");
    const Shape one = {node.shape(6)[0], Dim::of(1), Dim::of(1), Dim::of(1)};
    INVAR_TRY(Value lengths, reshape(node, node.in(6), one));
    INVAR_TRY(offset, node.make<SubOp>({lengths, node.constant(Ints(queries))}));
    INVAR_TRY(Value key, iota_constant(node, keys, {Dim::of(keys)}));
    INVAR_TRY(Value there, node.make<LessOp>({key, lengths}));
    INVAR_CHECK_OK(restrict_to(node, visibility, there));
  }
  if (causal) {
    INVAR_CHECK_OK(apply_window(node, visibility, offset, queries, keys, -1, 0));
  }
  INVAR_CHECK_OK(apply_window(node, visibility, offset, queries, keys, left, right));
  if (!visibility.allowed) return visibility.bias;
  INVAR_TRY(Value hidden,
            node.make<WhereOp>({visibility.allowed, node.constant(0.0f), node.constant(kMasked)}));
  if (!visibility.bias) return hidden;
  return node.make<AddOp>({visibility.bias, hidden});
}

// A query without any key gets weights of 0 instead of NaN.
Result<Value> attention_weights(NodeView& node, Value scores, Value bias) {
  INVAR_TRY(const int64_t precision, node.int_attr("softmax_precision", kF32));
  Value weights;
  if (precision == kF64) {
    const Shape shape = shape_of(scores.getType());
    INVAR_TRY(weights, node.make<CastOp>(scores, {}, tensor_of(shape, node.builder().getF64Type())));
    INVAR_TRY(weights, softmax_f64(node, weights, 3, /*logarithm=*/false));
    INVAR_TRY(weights, node.make<CastOp>(weights, {}, tensor_of(shape, node.builder().getF32Type())));
  } else {
    INVAR_TRY(weights, node.make<SoftmaxOp>(scores, node.attr("axis", int64_t{3})));
  }
  if (!bias) return weights;
  const int64_t last = static_cast<int64_t>(shape_of(bias.getType()).size()) - 1;
  INVAR_TRY(Value max,
            node.make<ReduceMaxOp>(bias, {node.attr("axes", Ints(last)), node.attr("keepdims", int64_t{1})}));
  INVAR_TRY(Value none, node.make<EqualOp>({max, node.constant(kMasked)}));
  return node.make<WhereOp>({none, node.constant(0.0f), weights});
}

}  // namespace

// [B, S, H * D] or [B, H, S, D] -> [B, H, S, D].
Result<Value> to_heads_first(NodeView& node, Value x, int64_t heads) {
  const Shape s = shape_of(x.getType());
  if (s.size() == 4) return x;
  if (s.size() != 3 || !s[2].constant() || heads <= 0 || s[2].value % heads)
    return not_covered(
        "covered are operands [batch, sequence, heads * size] and [batch, heads, sequence, size]");
  INVAR_TRY(Value split, reshape(node, x, {s[0], s[1], Dim::of(heads), Dim::of(s[2].value / heads)}));
  return transpose(node, split, {0, 2, 1, 3});
}

Status decompose_attention(NodeView& node, int64_t q_heads, int64_t kv_heads, float scale, float softcap) {
  INVAR_TRY(const int64_t score_output, node.int_attr("qk_matmul_output_mode", 0));
  const bool flat = node.shape(0).size() == 3;
  INVAR_TRY(Value q, to_heads_first(node, node.in(0), q_heads));
  INVAR_TRY(Value k, to_heads_first(node, node.in(1), kv_heads));
  INVAR_TRY(Value v, to_heads_first(node, node.in(2), kv_heads));
  int64_t past = 0;
  if (node.has(4) || node.has(5)) {
    if (!node.has(4) || !node.has(5)) return bad_input("past key without past value, or the reverse");
    if (node.shape(4).size() != 4 || !node.shape(4)[2].constant())
      return not_covered("past keys of an unknown length");
    past = node.shape(4)[2].value;
    INVAR_TRY(k, concat(node, {node.in(4), k}, 2));
    INVAR_TRY(v, concat(node, {node.in(5), v}, 2));
  }
  node.replace(1, k);
  node.replace(2, v);
  const Shape qs = shape_of(q.getType()), ks = shape_of(k.getType());
  if (!qs[1].constant() || !ks[1].constant() || !qs[2].constant() || !ks[2].constant() || ks[1].value < 1)
    return not_covered("heads, queries or keys of an unknown number");
  if (!std::equal(ks.begin(), ks.begin() + 3, shape_of(v.getType()).begin()) || qs[3] != ks[3])
    return shape_error({qs, ks, shape_of(v.getType())}, "queries, keys and values do not fit together");
  if (qs[1].value % ks[1].value) return bad_input("the heads of queries are no multiple of those of keys");
  INVAR_TRY(k, repeat_heads(node, k, qs[1].value / ks[1].value));
  INVAR_TRY(v, repeat_heads(node, v, qs[1].value / ks[1].value));
  INVAR_TRY(Value scores, matrix_product(node, q, k, /*transposed=*/true));
  INVAR_TRY(scores, node.make<MulOp>({scores, node.constant(scale)}));
  if (score_output == 0) node.replace(3, scores);
  if (softcap != 0) {
    INVAR_TRY(Value small, node.make<DivOp>({scores, node.constant(softcap)}));
    INVAR_TRY(small, node.make<TanhOp>(small));
    INVAR_TRY(scores, node.make<MulOp>({small, node.constant(softcap)}));
  }
  if (score_output == 1) node.replace(3, scores);
  INVAR_TRY(Value bias, mask_bias(node, qs[2].value, ks[2].value, past));
  if (bias) {
    INVAR_TRY(scores, node.make<AddOp>({scores, bias}));
  }
  if (score_output == 2) node.replace(3, scores);
  INVAR_TRY(Value weights, attention_weights(node, scores, bias));
  if (score_output == 3) node.replace(3, weights);
  INVAR_TRY(Value out, matrix_product(node, weights, v));
  if (flat) {
    INVAR_TRY(out, transpose(node, out, {0, 2, 1, 3}));
    const Shape s = shape_of(out.getType());
    INVAR_TRY(out, reshape(node, out, {s[0], s[1], Dim::of(s[2].value * s[3].value)}));
  }
  return node.replace(out);
}

}  // namespace invar::compiler
