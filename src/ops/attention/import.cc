// Lowering of Attention and the attention operators of com.microsoft, and the type inference of
// repro.attention.
#include <cmath>

#include "compiler/room_api.h"
#include "ops/attention/attributes.h"
#include "ops/attention/import/decompose_attention.h"
#include "ops/attention/import/group_query_attention.h"
#include "ops/attention/import/match_slopes.h"

namespace invar::compiler {
namespace {

// Tells whether a past has the shape [B, kv_heads, P, D] that fits the keys.
bool is_past_shape(const Shape& past, const Shape& kv, int64_t heads) {
  return past.size() == 4 && kv.size() == 3 && kv[2].constant() && heads > 0 && known_equal(past[0], kv[0]) &&
         past[1] == Dim::of(heads) && past[3] == Dim::of(kv[2].value / heads);
}

// "past.3.key" and "past.3.value" -> "past.3"
std::string common_prefix(const std::string& key, const std::string& value) {
  size_t n = 0;
  while (n < key.size() && n < value.size() && key[n] == value[n]) ++n;
  while (n && (key[n - 1] == '.' || key[n - 1] == '_' || key[n - 1] == '/')) --n;
  return n ? key.substr(0, n) : key;
}

// Operand indices of a node (an operand may be absent) and its numbers of heads.
struct NodeLayout {
  unsigned mask, past;  // past key; the past value follows it
  int lengths = -1;     // -1: the operator has none
  int sinks = -1;       // as lengths
  int biases = -1;      // as lengths: a table of biases by distance
  int64_t q_heads = 0, kv_heads = 0;
  // Keys after the last column are masked; else every key needs a column.
  bool mask_may_end = false;
};

// Transposes keys and values to heads first and appends them to the past, if that is an operand.
Status append_past(NodeView& node, const NodeLayout& p, Value& key, Value& value) {
  INVAR_TRY(key, to_heads_first(node, key, p.kv_heads));
  INVAR_TRY(value, to_heads_first(node, value, p.kv_heads));
  if (node.has(p.past)) {
    INVAR_TRY(key, concat(node, {node.in(p.past), key}, 2));
    INVAR_TRY(value, concat(node, {node.in(p.past + 1), value}, 2));
  }
  node.replace(1, key);
  node.replace(2, value);
  return {};
}

// Lengths i64 [batch] of all keys, so that the last query of every sequence is at its last key
// (attention.15).
Result<Value> full_lengths(NodeView& node, Value key) {
  const Shape k = shape_of(key.getType());
  const auto keys = dim_expr_of(k[2]);
  if (!keys || !k[0].known()) return not_covered("past keys of an unknown number");
  return expand(node, node.size_tensor(*keys, Ints(int64_t{1})), {k[0]});
}

// Tells whether the keys that a query attends to depend on its position.
bool depends_on_position(ArrayRef<NamedAttribute> attrs) {
  return llvm::any_of(attrs, [](NamedAttribute a) {
    return a.getName() == "left" || a.getName() == "right" ||
           (a.getName() == "causal" && cast<IntegerAttr>(a.getValue()).getInt() != 0);
  });
}

// Where it cannot be shown that the columns of a mask are the keys, a kernel checks it in each call
// (onnx.24).
Result<Value> mask_of(NodeView& node, const NodeLayout& p, const Dim& keys) {
  Shape mask = node.shape(p.mask);
  const Value given = node.in(p.mask);
  if (mask.empty() || known_equal(mask.back(), keys) || (p.mask_may_end && mask.back() != Dim::of(1)))
    return given;
  if (mask.back().constant() || keys.constant() || !may_be_equal(mask.back(), keys))
    return not_covered("a mask whose columns cannot be shown to be the keys: " + text_of(mask.back()) +
                       " and " + text_of(keys));
  mask.back() = keys;
  return reshape(node, given, mask);
}

Status lower_attention(NodeView& node, const NodeLayout& p, SmallVector<NamedAttribute> attrs) {
  const Shape q = node.shape(0), k = node.shape(1);
  const bool flat = q.size() == 3, past = node.has(p.past);
  if ((q.size() != 4 && !flat) || k.size() != q.size() || p.q_heads <= 0 || p.kv_heads <= 0)
    return not_covered(
        "covered are operands [batch, sequence, heads * size] with the numbers of heads as attributes, and "
        "[batch, heads, sequence, size]");
  const Dim& width = q.back();
  if (!width.constant()) return not_covered("queries of a size that is not constant");
  if (past != node.has(p.past + 1)) return bad_input("past key without past value, or the reverse");
  // 1 / sqrt(D): sqrt, division and narrowing are IEEE operations, the same on every machine.
  const double size = static_cast<double>(flat ? width.value / p.q_heads : width.value);
  INVAR_TRY(float scale, node.float_attr("scale", static_cast<float>(1.0 / std::sqrt(size))));
  attrs.append(
      {node.attr("q_heads", p.q_heads), node.attr("kv_heads", p.kv_heads), node.attr("scale", scale)});
  const Value slopes = node.has(p.mask) && p.biases < 0
                           ? match_slopes(node.in(p.mask), past ? node.in(p.past) : Value(), p.q_heads, attrs)
                           : Value();
  const bool masked = node.has(p.mask) && !slopes;
  const bool memory = past && !masked && is_past_shape(node.shape(p.past), k, p.kv_heads) &&
                      is_past_shape(node.shape(p.past + 1), node.shape(2), p.kv_heads) &&
                      node.can_become_state(p.past, 1) && node.can_become_state(p.past + 1, 2);
  SmallVector<Value> operands{node.in(0), node.in(1), node.in(2)};
  if (!memory && (past || result_is_used(node, 1) || result_is_used(node, 2))) {
    Value keys = operands[1], values = operands[2];
    INVAR_CHECK_OK(append_past(node, p, keys, values));
    if (past) {
      INVAR_TRY(operands[0], to_heads_first(node, operands[0], p.q_heads));
      operands[1] = keys, operands[2] = values;
    }
  }
  const Shape keys = shape_of(operands[1].getType());
  const bool heads_first_layout = keys.size() == 4;
  if (heads_first_layout) attrs.push_back(node.attr("heads_first", int64_t{1}));
  if (masked) {
    INVAR_TRY(operands.emplace_back(), mask_of(node, p, keys[heads_first_layout ? 2 : 1]));
    attrs.push_back(node.attr("mask", int64_t{1}));
  }
  if (p.sinks >= 0) {
    const auto operand = static_cast<unsigned>(p.sinks);
    if (node.shape(operand) != Shape{Dim::of(p.q_heads)} || !element_of(node.in(operand)).isF32())
      return bad_input("sinks that are not f32 [query heads]");
    operands.push_back(node.in(operand)), attrs.push_back(node.attr("sinks", int64_t{1}));
  }
  const bool padded = p.lengths >= 0 && node.has(static_cast<unsigned>(p.lengths));
  if (padded && past) return bad_input("lengths of sequences together with past keys");
  if (padded || (past && !memory && depends_on_position(attrs))) {
    Value lengths = padded ? node.in(static_cast<unsigned>(p.lengths)) : Value();
    if (!padded) {
      const size_t axis = flat ? 1 : 2;
      if (!known_equal(q[axis], k[axis]))
        return not_covered("past keys, and new ones of other positions than the queries");
      INVAR_TRY(lengths, full_lengths(node, operands[1]));
    }
    operands.push_back(lengths), attrs.push_back(node.attr("lengths", int64_t{1}));
  }
  if (slopes || p.biases >= 0) {
    Value list = slopes ? slopes : node.in(static_cast<unsigned>(p.biases));
    if (slopes) {
      INVAR_TRY(list, reshape(node, slopes, {Dim::of(p.q_heads)}));
    }
    operands.push_back(list), attrs.push_back(node.attr("slopes", int64_t{1}));
  }
  if (memory) {
    const std::string key = node.become_state(p.past, 1), value = node.become_state(p.past + 1, 2);
    attrs.push_back(node.attr("state", common_prefix(key, value)));
  }
  INVAR_TRY(Value out, node.make<AttentionOp>(operands, attrs));
  if (flat && heads_first_layout) {
    INVAR_TRY(out, transpose(node, out, {0, 2, 1, 3}));
    const Shape y = shape_of(out.getType());
    INVAR_TRY(out, reshape(node, out, {y[0], y[1], Dim::of(y[2].value * y[3].value)}));
  }
  return node.replace(out);
}

// Operand 3 is the mask, 4 and 5 the past, 6 the lengths of padded sequences, 7 the sinks and 8 a
// table of biases by distance, which ONNX does not have; result 3 the raw scores. `opset` says what
// the operator means.
Status attention_of(NodeView& node, int64_t opset, bool own) {
  if (opset < 24 && node.has(6)) return bad_input("operand 6 comes with opset 24");
  INVAR_CHECK_OK(
      node.expect(3, own ? 9 : 7,
                  {"is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode",
                   "right_window_size", "scale", "softcap", "softmax_precision"},
                  4));
  INVAR_TRY(const int64_t precision, node.int_attr("softmax_precision", kF32));
  if (precision != kF32 && precision != kF64)
    return not_covered("attribute \"softmax_precision\" is " + std::to_string(precision) +
                       "; covered are 1 and 11");
  INVAR_TRY(const int64_t score_output, node.int_attr("qk_matmul_output_mode", 0));
  if (score_output < 0 || score_output > 3)
    return bad_input("attribute \"qk_matmul_output_mode\" is " + std::to_string(score_output) +
                     ", none of 0 to 3");
  NodeLayout p{.mask = 3, .past = 4, .lengths = 6, .mask_may_end = opset >= 24};
  if (own && node.has(7)) p.sinks = 7;
  if (own && node.has(8)) p.biases = 8;
  const Shape q = node.shape(0), k = node.shape(1);
  const bool heads_first = q.size() == 4 && k.size() == 4;
  INVAR_TRY(p.q_heads, node.int_attr("q_num_heads", heads_first && q[1].constant() ? q[1].value : 0));
  INVAR_TRY(p.kv_heads, node.int_attr("kv_num_heads", heads_first && k[1].constant() ? k[1].value : 0));
  INVAR_TRY(int64_t causal, node.int_attr("is_causal", 0));
  INVAR_TRY(float softcap, node.float_attr("softcap", 0.0f));
  SmallVector<NamedAttribute> attrs{node.attr("causal", int64_t{causal != 0})};
  if (softcap != 0) attrs.push_back(node.attr("softcap", softcap));
  for (auto [name, ours] : {std::pair{"left_window_size", "left"}, {"right_window_size", "right"}}) {
    INVAR_TRY(int64_t edge, node.int_attr(name, -1));
    if (edge < -1) return bad_input(std::string(name) + " is " + std::to_string(edge));
    if (edge >= 0) attrs.push_back(node.attr(ours, edge));
  }
  // 1 / sqrt(D) as in attend().
  const Dim width = q.empty() ? Dim() : q.back();
  const double size =
      static_cast<double>(q.size() == 3 && p.q_heads > 0 ? width.value / p.q_heads : width.value);
  INVAR_TRY(float scale, node.float_attr("scale", static_cast<float>(1.0 / std::sqrt(size))));
  Status fused = not_covered(precision == kF64 ? "weights in f64" : "its scores as a result");
  if (precision == kF32 && !result_is_used(node, 3)) fused = lower_attention(node, p, std::move(attrs));
  if (fused || fused.error().code != Code::not_covered || p.sinks >= 0 || p.biases >= 0) return fused;
  const Status steps = decompose_attention(node, p.q_heads, p.kv_heads, scale, softcap);
  return steps || precision == kF64 || steps.error().code != Code::not_covered ? steps : fused;
}

Status attention(NodeView& node) {
  return attention_of(node, node.version(), /*own=*/false);
}

// Attention of opset 25 with sinks (attention.17) or a table of biases (attention.19), as invar
// export writes it.
Status own_attention(NodeView& node) {
  return attention_of(node, 25, /*own=*/true);
}

Status multi_head_attention(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 8, {"mask_filter_value", "num_heads", "scale", "unidirectional"}, 3));
  if (node.has(3)) return not_covered("a bias of the projections: add it before the node");
  if (node.has(4))
    return not_covered("key_padding_mask, which adds a finite number; give attention_bias instead");
  NodeLayout p{.mask = 5, .past = 6};
  INVAR_TRY(p.q_heads, node.int_attr("num_heads", 0));
  p.kv_heads = p.q_heads;
  INVAR_TRY(int64_t causal, node.int_attr("unidirectional", 0));
  const Shape q = node.shape(0), k = node.shape(1);
  if (q.size() != 3 || k.size() != 3)
    return not_covered("covered are operands [batch, sequence, heads * size]");
  if (causal && !known_equal(q[1], k[1]))
    return not_covered("unidirectional with other positions of keys than of queries");
  return lower_attention(node, p, {node.attr("causal", int64_t{causal != 0})});
}

// attention.1: attention with heads first equals attention with heads last. The rewrite removes the
// transposes around it.
template <class Op>
struct AttendHeadsLast : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!op.getHeadsFirst().value_or(0) || !op.getOut().hasOneUse()) return failure();
    auto back = dyn_cast<TransposeOp>(*op.getOut().user_begin());
    SmallVector<Value> operands;
    for (Value v : {op.getQ(), op.getK(), op.getV()}) operands.push_back(match_heads_last(v));
    if (!back || back.getPerm() != Ints{0, 2, 1, 3} || llvm::is_contained(operands, Value()))
      return failure();
    operands.append(op.getMore().begin(), op.getMore().end());
    SmallVector<NamedAttribute> attrs(op->getAttrs());
    llvm::erase_if(attrs, [](NamedAttribute a) {
      return a.getName() == "heads_first" || a.getName() == "numerics" || a.getName() == "version";
    });
    Result<Operation*> made =
        make_checked(rewriter, op.getLoc(), Op::getOperationName(), operands, attrs, {});
    if (!made) return failure();
    Value out = (*made)->getResult(0);
    for (Operation* user : llvm::make_early_inc_range(back.getOut().getUsers()))
      if (auto joined = dyn_cast<ReshapeOp>(user)) {
        if (joined.getType() == out.getType())
          rewriter.replaceOp(joined, out);
        else
          rewriter.modifyOpInPlace(joined, [&] { joined.getXMutable().assign(out); });
      }
    if (back.getOut().use_empty())
      rewriter.eraseOp(back);
    else
      rewriter.replaceOp(
          back, make_op(rewriter, op.getLoc(), ReshapeOp::getOperationName(), out, {}, back.getType()));
    rewriter.eraseOp(op);
    return success();
  }
};

}  // namespace

// Checks the leading dimensions of a mask (attention.14).
static Status check_mask(InferredCall& in, const ValueType& mask, const Shape& query) {
  if (mask.dtype != DType::f32 && mask.dtype != DType::boolean)
    return not_covered("a mask that is neither f32 nor bool");
  const Shape& shape = mask.shape;
  if (shape.size() < 2 || shape.size() > 4)
    return not_covered("a mask of rank " + std::to_string(shape.size()));
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    const Dim& size = query[d + 4 - shape.size()];
    if (shape[d] != Dim::of(1) && !may_be_equal(shape[d], size))
      return in.unequal_dims(shape[d], size, "the mask and batch, heads or queries");
  }
  return {};
}

// Checks the operands after keys and values.
static Status check_more(InferredCall& in, const ops::AttentionAttributes& a, const Dim& batch,
                         const Dim& queries) {
  const Dim heads = Dim::of(a.q_heads);
  const auto per_head = [&](const ValueType& v) { return v.dtype == DType::f32 && v.shape == Shape{heads}; };
  size_t next = 3;
  for (const int64_t more : {a.mask, a.sinks, a.lengths, a.slopes}) next += more != 0;
  if (in.size() < next) return bad_input("there are fewer operands than the attributes say");
  next = 3;
  if (a.mask) {
    INVAR_CHECK_OK(check_mask(in, in[next++], {batch, heads, queries}));
  }
  if (a.sinks && !per_head(in[next++])) return not_covered("sinks that are not f32 [q_heads]");
  if (a.lengths) {
    const ValueType& lengths = in[next++];
    if (lengths.dtype != DType::i64 || lengths.shape.size() != 1)
      return not_covered("lengths that are not i64 [batch]");
    if (!may_be_equal(lengths.shape[0], batch))
      return in.unequal_dims(lengths.shape[0], batch, "lengths and batch");
  }
  if (a.slopes && !per_head(in[next])) {
    const ValueType& table = in[next];
    if (table.dtype != DType::f32 || table.shape.size() != 2 || table.shape[0] != heads ||
        !table.shape[1].constant() || table.shape[1].value % 2 == 0)
      return not_covered("slopes that are not f32 [q_heads] or [q_heads, an odd number]");
  }
  return {};
}

Result<ValueType> infer_attention(InferredCall& in, const ops::AttentionAttributes& a) {
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  const bool heads_first = a.heads_first != 0;
  const size_t rank = heads_first ? 4 : 3, axis = heads_first ? 2 : 1;
  if (q.size() != rank || k.size() != rank || v.size() != rank || !q.back().constant() ||
      !k.back().constant() || !v.back().constant())
    return not_covered(
        "covered are operands [batch, sequence, heads * size] and [batch, heads, sequence, size]");
  const auto fits = [&](const Shape& x, int64_t heads) {
    return heads_first ? x[1] == Dim::of(heads) : x[2].value % heads == 0;
  };
  const auto size = [&](const Shape& x, int64_t heads) {
    return heads_first ? x[3].value : x[2].value / heads;
  };
  if (a.q_heads <= 0 || a.kv_heads <= 0 || a.q_heads % a.kv_heads || !fits(q, a.q_heads) ||
      !fits(k, a.kv_heads) || !fits(v, a.kv_heads) || size(q, a.q_heads) != size(k, a.kv_heads))
    return bad_input("heads and sizes of queries, keys and values do not fit");
  if (!may_be_equal(q[0], k[0])) return in.unequal_dims(q[0], k[0], "batch of queries and keys");
  if (!may_be_equal(k[0], v[0])) return in.unequal_dims(k[0], v[0], "batch of keys and values");
  if (!may_be_equal(k[axis], v[axis]))
    return in.unequal_dims(k[axis], v[axis], "sequence of keys and values");
  if (in.attributes.contains("state") && !known_equal(q[axis], k[axis]))
    return not_covered("with memory, covered are keys of the same positions as the queries");
  if (!q[axis].known() || !k[axis].known()) return not_covered("unknown lengths of queries or keys");
  INVAR_CHECK_OK(check_more(in, a, q[0], q[axis]));
  Shape y = q;
  y.back() = Dim::of(heads_first ? v[3].value : v[2].value / a.kv_heads * a.q_heads);
  return ValueType{in[0].dtype, y};
}

// attention.20. The contract checks the operands against each other.
Result<ValueType> infer_attention_backward(InferredCall& in, const ops::AttentionBackwardAttributes&) {
  if (in[0].shape != in[1].shape) return bad_input("the gradient does not have the shape of the result");
  std::optional<DimExpr> elements = DimExpr(0);
  for (const size_t i : {2, 3, 4}) {
    const std::optional<DimExpr> count = element_count(in[i].shape);
    elements = count && elements ? sum(*elements, *count) : std::nullopt;
    if (!elements) return not_covered("operands too large");
  }
  return ValueType{in[2].dtype, {Dim::of(*elements)}};
}

void import_attention(RuleRegistry& registry) {
  registry.add_pattern<AttendHeadsLast<AttentionOp>>();
  registry.add_pattern<AttendHeadsLast<AttentionExact16Op>>();
  registry.add_rule("Attention", 23, attention, "TTVMTV*>TTVT");
  registry.add_rule("invar.Attention", 1, own_attention);
  registry.add_rule("com.microsoft.MultiHeadAttention", 1, multi_head_attention);
  registry.add_rule("com.microsoft.GroupQueryAttention", 1, group_query_attention);
}

}  // namespace invar::compiler
