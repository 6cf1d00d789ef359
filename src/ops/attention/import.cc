#include <cmath>

#include "ir/rules.h"

namespace invar::ir {
namespace {

// past [B, kv_heads, P, D] as the graph has it.
bool is_past(const Shape& past, const Shape& kv, int64_t heads) {
  return past.size() == 4 && kv.size() == 3 && kv[2].constant() && heads > 0 && same(past[0], kv[0]) &&
         past[1] == Extent::of(heads) && past[3] == Extent::of(kv[2].value / heads);
}

// "past.3.key" and "past.3.value" -> "past.3"
std::string common(const std::string& key, const std::string& value) {
  size_t n = 0;
  while (n < key.size() && n < value.size() && key[n] == value[n]) ++n;
  while (n && (key[n - 1] == '.' || key[n - 1] == '_' || key[n - 1] == '/')) --n;
  return n ? key.substr(0, n) : key;
}

Status attention(Node& node) {
  // Operand 3 is the mask, 6 the lengths of padded batches; result 3 the raw scores.
  bool memory = node.has(4) || node.has(5);
  INVAR_CHECK_OK(
      node.expect(3, 6,
                  {"is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode",
                   "right_window_size", "scale", "softcap", "softmax_precision"},
                  memory ? 3 : 1));
  if (node.has(3)) return not_covered("an attention mask");
  INVAR_CHECK_OK(node.only("left_window_size", int64_t{-1}));
  INVAR_CHECK_OK(node.only("right_window_size", int64_t{-1}));
  INVAR_CHECK_OK(node.only("softcap", 0.0f));
  INVAR_CHECK_OK(node.only("softmax_precision", int64_t{1}));
  INVAR_TRY(int64_t q_heads, node.i("q_num_heads", 0));
  INVAR_TRY(int64_t kv_heads, node.i("kv_num_heads", 0));
  INVAR_TRY(int64_t causal, node.i("is_causal", 0));
  Shape q = node.shape(0);
  if (q.size() != 3 || !q[2].constant() || q_heads <= 0 || kv_heads <= 0)
    return not_covered(
        "covered are operands [batch, sequence, heads * size] with the numbers of heads as attributes");
  // 1 / sqrt(D): sqrt, division and narrowing are IEEE operations, the same on every machine.
  double size = static_cast<double>(q[2].value / q_heads);
  INVAR_TRY(float scale, node.f("scale", static_cast<float>(1.0 / std::sqrt(size))));
  SmallVector<NamedAttribute> attrs{node.attr("q_heads", q_heads), node.attr("kv_heads", kv_heads),
                                    node.attr("scale", scale), node.attr("causal", int64_t{causal != 0})};
  if (memory && node.has(4) != node.has(5)) return bad_input("past key without past value, or the reverse");
  if (memory) {
    if (!is_past(node.shape(4), node.shape(1), kv_heads) || !is_past(node.shape(5), node.shape(2), kv_heads))
      return not_covered("past key and value are covered as [batch, kv_heads, past, size]");
    INVAR_TRY(std::string key, node.memory(4, 1));
    INVAR_TRY(std::string value, node.memory(5, 2));
    attrs.push_back(node.attr("state", common(key, value)));
  }
  INVAR_TRY(Value out, node.make<AttentionOp>({node.in(0), node.in(1), node.in(2)}, attrs));
  return node.replace(out);
}

}  // namespace

LogicalResult AttentionOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                            SmallVectorImpl<Type>& out) {
  Shape q = shape_of(op.getQ().getType()), k = shape_of(op.getK().getType()),
        v = shape_of(op.getV().getType());
  int64_t q_heads = op.getQHeads(), kv_heads = op.getKvHeads();
  if (q.size() != 3 || k.size() != 3 || v.size() != 3 || !q[2].constant() || !k[2].constant() ||
      !v[2].constant())
    return refuse(loc, "covered are operands [batch, sequence, heads * size]");
  if (q_heads <= 0 || kv_heads <= 0 || q_heads % kv_heads || q[2].value % q_heads || k[2].value % kv_heads ||
      v[2].value % kv_heads || q[2].value / q_heads != k[2].value / kv_heads)
    return mismatch(loc, "heads and sizes of queries, keys and values do not fit");
  for (int i : {0, 1}) {
    if (!same(k[i], v[i])) return differ(loc, k[i], v[i], "batch or sequence of keys and values");
    if (!same(q[i], k[i])) return refuse(loc, "covered are queries and keys of the same batch and positions");
  }
  out.push_back(tensor_of({q[0], q[1], Extent::of(v[2].value / kv_heads * q_heads)},
                          getElementTypeOrSelf(op.getQ().getType())));
  return success();
}

void import_attention(Rooms& rooms) {
  rooms.on("Attention", 23, attention);
}

}  // namespace invar::ir
