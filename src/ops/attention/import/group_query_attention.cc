// GroupQueryAttention of com.microsoft, as onnxruntime-genai exports it (onnx.33): queries, keys
// and values, packed or apart, rotated or not, behind past keys of which seqlens_k says how many
// count.
#include "ops/attention/import/group_query_attention.h"

#include <cmath>

#include "compiler/room_api.h"
#include "ops/attention/import/decompose_attention.h"

namespace invar::compiler {
namespace {

enum Operand : unsigned {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kSeqlens,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

struct Heads {
  int64_t q, kv, size;
};

// Queries, keys and values [batch, sequence, heads * size].
struct Projections {
  Value q, k, v;
};

Result<Heads> heads_of(NodeView& node) {
  INVAR_TRY(const int64_t q, node.int_attr("num_heads", 0));
  INVAR_TRY(const int64_t kv, node.int_attr("kv_num_heads", 0));
  const Shape x = node.shape(kQuery);
  if (x.size() != 3 || !x[2].constant()) return not_covered("covered are queries [batch, sequence, width]");
  const int64_t all = node.has(kKey) ? q : q + 2 * kv;
  if (q <= 0 || kv <= 0 || q % kv || x[2].value % all)
    return bad_input(std::to_string(q) + " and " + std::to_string(kv) + " heads do not divide the width " +
                     std::to_string(x[2].value));
  return Heads{q, kv, x[2].value / all};
}

Result<Projections> projections(NodeView& node, const Heads& h) {
  if (node.has(kKey) != node.has(kValue)) return bad_input("key without value, or the reverse");
  if (node.has(kKey)) {
    INVAR_CHECK_OK(node.require_equal(node.shape(kQuery)[1], node.shape(kKey)[1], "queries and new keys"));
    return Projections{node.in(kQuery), node.in(kKey), node.in(kValue)};
  }
  Projections p;
  const Value packed = node.in(kQuery);
  INVAR_TRY(p.q, slice(node, packed, 2, 0, h.q * h.size));
  INVAR_TRY(p.k, slice(node, packed, 2, h.q * h.size, h.kv * h.size));
  INVAR_TRY(p.v, slice(node, packed, 2, (h.q + h.kv) * h.size, h.kv * h.size));
  return p;
}

Type integers(NodeView& node, const Shape& shape) {
  return tensor_of(shape, node.builder().getI64Type());
}

Result<Value> count_up(NodeView& node, const Dim& n) {
  return node.make<IotaOp>({node.constant(Ints(0)), node.constant(Ints(1))}, {}, integers(node, {n}));
}

// Counts past keys of each sequence, [batch, 1], and those with the new ones, [batch]. A
// prompt that ends in padding has fewer keys than queries: its first query is the first (onnx.33).
struct Counts {
  Value past, all;
};

Result<Counts> counts_of(NodeView& node, const Dim& batch, const DimExpr& tokens) {
  INVAR_TRY(Value last, cast_to(node, node.in(kSeqlens), node.builder().getI64Type()));
  INVAR_TRY(last, reshape(node, last, {batch}));
  Counts c;
  INVAR_TRY(c.all, node.make<AddOp>({last, node.constant(Ints(1))}));
  const Value n = node.size_tensor(tokens, Ints(int64_t{1}));
  INVAR_TRY(c.all, node.make<MaxOp>({c.all, n}));
  INVAR_TRY(c.past, node.make<SubOp>({c.all, n}));
  INVAR_TRY(c.past, reshape(node, c.past, {batch, Dim::of(1)}));
  return c;
}

Result<Value> rotated(NodeView& node, Value x, int64_t heads, Value positions) {
  INVAR_TRY(Value cos, node.make<GatherOp>({node.in(kCos), positions}));
  INVAR_TRY(Value sin, node.make<GatherOp>({node.in(kSin), positions}));
  INVAR_TRY(const int64_t interleaved, node.int_attr("rotary_interleaved", 0));
  const Dim half = shape_of(cos.getType()).back();
  if (!half.constant()) return not_covered("angles of a size that is not constant");
  return node.make<RopeOp>({x, cos, sin},
                           {node.attr("num_heads", heads), node.attr("rotary_dim", 2 * half.value),
                            node.attr("interleaved", int64_t{interleaved != 0})});
}

// Each head normalised by its root mean square, where the node has a weight [size].
Status normalise(NodeView& node, unsigned weight, const char* own_epsilon, int64_t size, Value& x) {
  if (!node.has(weight)) return {};
  if (node.shape(weight) != Shape{Dim::of(size)})
    return bad_input("operand " + std::to_string(weight) + " is no weight of one head");
  INVAR_TRY(float epsilon, node.float_attr("qk_norm_epsilon", 1e-6f));
  INVAR_TRY(epsilon, node.float_attr(own_epsilon, epsilon));
  const Shape flat = shape_of(x.getType());
  const Shape heads{flat[0], flat[1], Dim::of(flat[2].value / size), Dim::of(size)};
  INVAR_TRY(x, reshape(node, x, heads));
  INVAR_TRY(x, node.make<RmsnormOp>({x, node.in(weight)}, {node.attr("epsilon", epsilon)}));
  INVAR_TRY(x, reshape(node, x, flat));
  return {};
}

Status rotate(NodeView& node, const Heads& h, Projections& p, const Counts& counts) {
  INVAR_TRY(const int64_t rotary, node.int_attr("do_rotary", 0));
  if (!rotary) return {};
  if (!node.has(kCos) || !node.has(kSin)) return bad_input("do_rotary without cos_cache and sin_cache");
  Value positions = node.has(kPositions) ? node.in(kPositions) : Value();
  if (!positions) {
    const Shape q = shape_of(p.q.getType());
    INVAR_TRY(Value i, count_up(node, q[1]));
    INVAR_TRY(positions, node.make<AddOp>({counts.past, i}));
  }
  INVAR_TRY(p.q, rotated(node, p.q, h.q, positions));
  INVAR_TRY(p.k, rotated(node, p.k, h.kv, positions));
  return {};
}

// Past keys [batch, heads, past, size] and new ones [batch, sequence, heads * size], joined so that
// the new ones follow the past ones that count; what is behind them does not count. Sets the
// result `present`.
Result<Value> join(NodeView& node, const Heads& h, unsigned past_operand, unsigned present, Value x,
                   const Counts& counts) {
  const Value past = node.in(past_operand);
  const Shape p = shape_of(past.getType()), n = shape_of(x.getType());
  if (p.size() != 4) return not_covered("covered are past keys [batch, heads, past, size]");
  INVAR_CHECK_OK(node.require_equal(p[1], Dim::of(h.kv), "heads of past keys"));
  INVAR_CHECK_OK(node.require_equal(p[3], Dim::of(h.size), "size of past keys"));
  const Dim width = Dim::of(h.kv * h.size);
  INVAR_TRY(Value flat, transpose(node, past, {0, 2, 1, 3}));
  INVAR_TRY(flat, reshape(node, flat, {p[0], p[2], width}));
  INVAR_TRY(Value all, concat(node, {flat, x}, 1));
  const Dim keys = shape_of(all.getType())[1];
  const auto before = dim_expr_of(p[2]), tokens = dim_expr_of(n[1]);
  if (!before || !tokens || !keys.known()) return not_covered("past keys of an unknown number");
  // Key j is row j, or where it is a new one, as many rows further as there are past ones that do
  // not count.
  INVAR_TRY(const Value j, count_up(node, keys));
  INVAR_TRY(const Value behind, node.make<LessEqualOp>({counts.past, j}));
  INVAR_TRY(Value end, node.make<AddOp>({counts.past, node.size_tensor(*tokens, Ints(int64_t{1}))}));
  INVAR_TRY(const Value inside, node.make<LessOp>({j, end}));
  INVAR_TRY(Value is_new, node.make<LogicalAndOp>({behind, inside}));
  INVAR_TRY(is_new, cast_to(node, is_new, node.builder().getI64Type()));
  INVAR_TRY(Value skipped, node.make<SubOp>({node.size_tensor(*before, Ints(int64_t{1})), counts.past}));
  INVAR_TRY(skipped, node.make<MulOp>({skipped, is_new}));
  INVAR_TRY(Value rows, node.make<AddOp>({j, skipped}));
  INVAR_TRY(rows, reshape(node, rows, {n[0], keys, Dim::of(1)}));
  INVAR_TRY(all, node.make<GatherNdOp>({all, rows}, node.attr("batch_dims", int64_t{1})));
  INVAR_TRY(Value heads, to_heads_first(node, all, h.kv));
  node.replace(present, heads);
  return all;
}

}  // namespace

Status group_query_attention(NodeView& node) {
  INVAR_CHECK_OK(node.expect(
      1, 16,
      {"causal", "do_rotary", "k_norm_epsilon", "k_quant_type", "kv_cache_bit_width", "kv_num_heads",
       "local_window_size", "num_heads", "q_norm_epsilon", "qk_norm_epsilon", "qk_output",
       "rotary_interleaved", "scale", "sliding_window_cache", "smooth_softmax", "softcap", "v_quant_type"},
      3));
  // sliding_window_cache says where keys are kept; a past without those of before the window is
  // shorter than seqlens_k says, which is an error of the call (attention.15).
  for (const char* off : {"kv_cache_bit_width", "qk_output"})
    INVAR_CHECK_OK(node.require_attr(off, int64_t{0}));
  INVAR_TRY(const int64_t causal, node.int_attr("causal", 1));
  if (!causal) return not_covered("attribute \"causal\" is 0");
  if (!node.has(kSeqlens)) return bad_input("seqlens_k is missing");
  if (node.has(kBias)) return not_covered("attention_bias");
  if (node.has(kKeyScale) || node.has(kValueScale)) return not_covered("quantised keys and values");
  INVAR_TRY(const Heads h, heads_of(node));
  INVAR_TRY(Projections p, projections(node, h));
  const Shape q = shape_of(p.q.getType());
  const auto tokens = dim_expr_of(q[1]);
  if (!tokens || !q[0].known()) return not_covered("an unknown number of queries");
  INVAR_TRY(const Counts counts, counts_of(node, q[0], *tokens));
  INVAR_CHECK_OK(normalise(node, kQueryNorm, "q_norm_epsilon", h.size, p.q));
  INVAR_CHECK_OK(normalise(node, kKeyNorm, "k_norm_epsilon", h.size, p.k));
  INVAR_CHECK_OK(rotate(node, h, p, counts));
  if (node.has(kPastKey) != node.has(kPastValue))
    return bad_input("past key without past value, or the reverse");
  if (node.has(kPastKey)) {
    INVAR_TRY(p.k, join(node, h, kPastKey, 1, p.k, counts));
    INVAR_TRY(p.v, join(node, h, kPastValue, 2, p.v, counts));
  } else {
    INVAR_TRY(Value keys, to_heads_first(node, p.k, h.kv));
    INVAR_TRY(Value values, to_heads_first(node, p.v, h.kv));
    node.replace(1, keys), node.replace(2, values);
  }
  // 1 / sqrt(size): sqrt, division and narrowing are IEEE operations, the same on every machine.
  const auto by_size = static_cast<float>(1.0 / std::sqrt(static_cast<double>(h.size)));
  INVAR_TRY(float scale, node.float_attr("scale", 0.0f));
  INVAR_TRY(const float softcap, node.float_attr("softcap", 0.0f));
  INVAR_TRY(const int64_t window, node.int_attr("local_window_size", -1));
  INVAR_TRY(const int64_t smooth, node.int_attr("smooth_softmax", 0));
  SmallVector<NamedAttribute> attrs{node.attr("causal", int64_t{1}), node.attr("q_heads", h.q),
                                    node.attr("kv_heads", h.kv), node.attr("scale", scale ? scale : by_size)};
  if (softcap != 0) attrs.push_back(node.attr("softcap", softcap));
  if (window > 0) attrs.push_back(node.attr("left", window - 1));
  SmallVector<Value> operands{p.q, p.k, p.v};
  if (node.has(kSink)) {
    if (node.shape(kSink) != Shape{Dim::of(h.q)} || !element_of(node.in(kSink)).isF32())
      return bad_input("head_sink that is not f32 [query heads]");
    operands.push_back(node.in(kSink)), attrs.push_back(node.attr("sinks", int64_t{1}));
  } else if (smooth != 0) {  // one more term, exp(0), in each sum
    const std::string zeros(static_cast<size_t>(h.q) * sizeof(float), '\0');
    operands.push_back(node.constant(zeros, DType::f32, h.q)),
        attrs.push_back(node.attr("sinks", int64_t{1}));
  }
  // More keys than there are would be no key; as an index they are an error of the call.
  const auto keys = dim_expr_of(shape_of(p.k.getType())[1]);
  const auto limit = keys ? sum(*keys, 1) : std::nullopt;
  if (!limit) return not_covered("an unknown number of keys");
  INVAR_TRY(const Value possible, count_up(node, Dim::of(*limit)));
  INVAR_TRY(const Value lengths, node.make<GatherOp>({possible, counts.all}));
  operands.push_back(lengths), attrs.push_back(node.attr("lengths", int64_t{1}));
  INVAR_TRY(const Value out, node.make<AttentionOp>(operands, attrs));
  return node.replace(out);
}

}  // namespace invar::compiler
