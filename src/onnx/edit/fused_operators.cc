// Fused operators of com.microsoft become the nodes that they stand for.
#include "onnx/rewrites.h"

#include <algorithm>
#include <map>

#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

constexpr int64_t kOpset = 23;  // of the nodes that are made
constexpr float kMaskFilter = -10000;

using Names = std::vector<std::string>;
using Attributes = std::map<std::string, AttrValue>;

// Makes the nodes in the place of one. Values between them have the name of its first output.
class Parts {
 public:
  explicit Parts(const Node& node) : node_(node) {}

  bool has(size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  bool has_output(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  std::string in(size_t i) const { return has(i) ? node_.inputs[i] : ""; }
  const std::string& out(size_t i = 0) const { return node_.outputs[i]; }
  template <class T>
  T attribute(const std::string& name, T absent) const {
    const auto at = node_.attributes.find(name);
    const T* value = at == node_.attributes.end() ? nullptr : std::get_if<T>(&at->second);
    return value ? *value : absent;
  }

  // The first output of the new node, whose other outputs have its name with a number.
  std::string add(const std::string& op, Names inputs, Attributes attributes = {}, std::string output = "",
                  size_t outputs = 1, const std::string& domain = "") {
    if (output.empty()) output = fresh();
    Node made;
    made.name = node_.name, made.op_type = op, made.domain = domain;
    made.inputs = std::move(inputs), made.attributes = std::move(attributes);
    made.opset = domain.empty() ? kOpset : 0;
    made.outputs = {output};
    for (size_t i = 1; i < outputs; ++i) made.outputs.push_back(numbered(output, i));
    nodes_.push_back(std::move(made));
    return output;
  }
  static std::string numbered(const std::string& output, size_t i) {
    return i ? output + "." + std::to_string(i) : output;
  }
  std::string ints(std::vector<int64_t> values) {
    return add("Constant", {}, {{"value_ints", std::move(values)}});
  }
  std::string number(float value) { return add("Constant", {}, {{"value_float", value}}); }
  void add_as_is(Node node) { nodes_.push_back(std::move(node)); }
  std::vector<Node> take() { return std::move(nodes_); }

 private:
  std::string fresh() { return node_.outputs[0] + "::" + std::to_string(made_++); }
  const Node& node_;
  std::vector<Node> nodes_;
  int made_ = 0;
};

// Adds the activation of a fused node; false: it is none that is known.
bool add_activation(Parts& p, const std::string& x, const std::string& kind, const std::vector<float>& by) {
  const auto parameter = [&](size_t i, float absent) { return i < by.size() ? by[i] : absent; };
  if (kind == "Relu" || kind == "Tanh" || kind == "Sigmoid" || kind == "Softplus" || kind == "Softsign" ||
      kind == "HardSwish") {
    p.add(kind, {x}, {}, p.out());
  } else if (kind == "LeakyRelu") {
    p.add(kind, {x}, {{"alpha", parameter(0, 0.01f)}}, p.out());
  } else if (kind == "Elu") {
    p.add(kind, {x}, {{"alpha", parameter(0, 1.0f)}}, p.out());
  } else if (kind == "HardSigmoid") {
    p.add(kind, {x}, {{"alpha", parameter(0, 0.2f)}, {"beta", parameter(1, 0.5f)}}, p.out());
  } else if (kind == "Clip" && by.size() == 2) {
    p.add(kind, {x, p.number(by[0]), p.number(by[1])}, {}, p.out());
  } else {
    return false;
  }
  return true;
}

// X, W, B and a summand; then the activation.
bool fused_conv(Parts& p, const Node& node) {
  Attributes rest = node.attributes;
  rest.erase("activation"), rest.erase("activation_params");
  Names inputs{p.in(0), p.in(1)};
  if (p.has(2)) inputs.push_back(p.in(2));
  std::string y = p.add("Conv", inputs, rest);
  if (p.has(3)) y = p.add("Add", {y, p.in(3)});
  return add_activation(p, y, p.attribute("activation", std::string()),
                        p.attribute("activation_params", std::vector<float>()));
}

bool fused_gemm(Parts& p, const Node& node) {
  Attributes rest = node.attributes;
  std::vector<float> by;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (rest.contains(name)) by.push_back(p.attribute(name, 0.0f)), rest.erase(name);
  rest.erase("activation");
  return add_activation(p, p.add("Gemm", node.inputs, rest), p.attribute("activation", std::string()), by);
}

// X and W have their channels last.
bool nhwc_conv(Parts& p, const Node& node) {
  const std::vector<int64_t> first{0, 3, 1, 2}, last{0, 2, 3, 1};
  Names inputs{p.add("Transpose", {p.in(0)}, {{"perm", first}}),
               p.add("Transpose", {p.in(1)}, {{"perm", first}})};
  if (p.has(2)) inputs.push_back(p.in(2));
  p.add("Transpose", {p.add("Conv", inputs, node.attributes)}, {{"perm", last}}, p.out());
  return true;
}

bool group_norm(Parts& p, const Node&) {
  const bool last = p.attribute("channels_last", int64_t{1}) != 0;
  const bool swish = p.attribute("activation", int64_t{0}) != 0;
  std::string x = p.in(0);
  if (last) x = p.add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  x = p.add("GroupNormalization", {x, p.in(1), p.in(2)},
            {{"epsilon", p.attribute("epsilon", 1e-5f)}, {"num_groups", p.attribute("groups", int64_t{0})}},
            swish || last ? "" : p.out());
  if (swish) x = p.add("Mul", {x, p.add("Sigmoid", {x})}, {}, last ? "" : p.out());
  if (last) p.add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}, p.out());
  return true;
}

bool bias_split_gelu(Parts& p, const Node&) {
  const std::string half = p.add("Split", {p.add("Add", {p.in(0), p.in(1)})},
                                 {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}}, "", 2);
  p.add("Mul", {half, p.add("Gelu", {Parts::numbered(half, 1)})}, {}, p.out());
  return true;
}

bool bias_add(Parts& p, const Node&) {
  p.add("Add", {p.add("Add", {p.in(0), p.in(1)}), p.in(2)}, {}, p.out());
  return true;
}

bool bias_softmax(Parts& p, const Node&) {
  if (p.attribute("is_inner_broadcast", int64_t{1}) == 0) return false;
  p.add("Softmax", {p.add("Add", {p.in(0), p.in(1)})}, {{"axis", p.attribute("axis", int64_t{1})}}, p.out());
  return true;
}

// Word, position and segment embeddings, their sum's normalization, and lengths from a mask.
bool embed_layer_normalization(Parts& p, const Node&) {
  const std::string ids = p.in(0);
  std::string position;
  if (p.has(8)) {
    position = p.add("Gather", {p.in(3), p.in(8)});
  } else {
    const std::string length = p.add("Shape", {ids}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    position = p.add("Slice", {p.in(3), p.ints({0}), length, p.ints({0})});
  }
  const bool summed = p.has_output(2);
  std::string sum = p.add("Gather", {p.in(2), ids});
  const bool segments = p.has(1) && p.has(4);
  sum = p.add("Add", {sum, position}, {}, summed && !segments ? p.out(2) : "");
  if (segments) sum = p.add("Add", {sum, p.add("Gather", {p.in(4), p.in(1)})}, {}, summed ? p.out(2) : "");
  p.add("LayerNormalization", {sum, p.in(5), p.in(6)}, {{"epsilon", p.attribute("epsilon", 1e-12f)}},
        p.out());
  if (!p.has_output(1)) return true;
  // Without a mask the lengths are 0.
  const std::string mask = p.has(7) ? p.in(7) : p.add("Sub", {ids, ids});
  const std::string lengths = p.add("ReduceSum", {mask, p.ints({1})}, {{"keepdims", int64_t{0}}});
  p.add("Cast", {lengths}, {{"to", int64_t{kInt32}}}, p.out(1));
  return true;
}

// What is added to scores [batch, heads, queries, keys] where a mask of keys is 0: the filter
// value. Masks are lengths [batch], [batch, keys] or [batch, queries, keys].
std::optional<std::string> mask_bias(Parts& p, const std::string& mask, int rank, const std::string& keys) {
  std::string kept;
  if (rank == 1) {
    const std::string count = p.add("Squeeze", {keys});
    const std::string range = p.add("Range", {p.add("Constant", {}, {{"value_int", int64_t{0}}}), count,
                                              p.add("Constant", {}, {{"value_int", int64_t{1}}})});
    const std::string lengths = p.add("Cast", {mask}, {{"to", int64_t{kInt64}}});
    kept = p.add("Less", {range, p.add("Unsqueeze", {lengths, p.ints({1})})});
    rank = 2;
  } else {
    kept = mask;
  }
  if (rank != 2 && rank != 3) return std::nullopt;
  kept = p.add("Cast", {kept}, {{"to", int64_t{kFloat}}});
  const std::string gone = p.add(
      "Mul", {p.add("Sub", {p.number(1), kept}), p.number(p.attribute("mask_filter_value", kMaskFilter))});
  return p.add("Unsqueeze", {gone, p.ints(rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1})});
}

// The number of keys, i64 [1]: those of this call and of the past [2, batch, heads, keys, size] or
// [batch, heads, keys, size].
std::string key_count(Parts& p, const std::string& keys, const std::string& past, int64_t past_axis) {
  const std::string now = p.add("Shape", {keys}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  if (past.empty()) return now;
  return p.add("Add", {now, p.add("Shape", {past}, {{"start", past_axis}, {"end", past_axis + 1}})});
}

// Attention of queries, keys and values that one product gives. The operands mask, past and bias of
// the scores have these numbers.
bool attention_of(Parts& p, const RankOf& rank_of, const std::string& all, size_t mask, size_t past_at,
                  size_t bias_at) {
  const int64_t heads = p.attribute("num_heads", int64_t{0});
  if (p.attribute("do_rotary", int64_t{0}) != 0 ||
      p.attribute("past_present_share_buffer", int64_t{0}) != 0 || heads <= 0)
    return false;
  const auto sizes = p.attribute("qkv_hidden_sizes", std::vector<int64_t>());
  const std::string q =
      sizes.empty() ? p.add("Split", {all}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{3}}}, "", 3)
                    : p.add("Split", {all, p.ints(sizes)}, {{"axis", int64_t{-1}}}, "", 3);
  Names inputs{q, Parts::numbered(q, 1), Parts::numbered(q, 2)};
  std::string bias;
  if (p.has(mask)) {
    const int rank = rank_of(p.in(mask));
    const auto made = mask_bias(p, p.in(mask), rank < 0 ? 2 : rank, key_count(p, p.in(0), p.in(past_at), 3));
    if (!made) return false;
    bias = *made;
  }
  if (p.has(bias_at)) bias = bias.empty() ? p.in(bias_at) : p.add("Add", {bias, p.in(bias_at)});
  inputs.push_back(bias);
  if (p.has(past_at)) {
    const std::string past =
        p.add("Split", {p.in(past_at)}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}}, "", 2);
    for (size_t i = 0; i < 2; ++i)
      inputs.push_back(p.add("Squeeze", {Parts::numbered(past, i), p.ints({0})}));
  }
  Attributes attributes{{"q_num_heads", heads},
                        {"kv_num_heads", heads},
                        {"is_causal", p.attribute("unidirectional", int64_t{0})}};
  // 0: as if it were absent.
  if (const float scale = p.attribute("scale", 0.0f); scale != 0) attributes["scale"] = scale;
  p.add("Attention", inputs, attributes, p.out(), p.has_output(1) ? 3 : 1);
  if (!p.has_output(1)) return true;
  Names present;
  for (size_t i = 1; i <= 2; ++i)
    present.push_back(p.add("Unsqueeze", {Parts::numbered(p.out(), i), p.ints({0})}));
  p.add("Concat", present, {{"axis", int64_t{0}}}, p.out(1));
  return true;
}

bool attention(Parts& p, const RankOf& rank_of) {
  if (p.has(6)) return false;
  std::string all = p.add("MatMul", {p.in(0), p.in(1)});
  if (p.has(2)) all = p.add("Add", {all, p.in(2)});
  return attention_of(p, rank_of, all, 3, 4, 5);
}

// Its product is one of 8-bit integers.
bool quantized_attention(Parts& p, const RankOf& rank_of) {
  const std::string all =
      p.add("MatMulIntegerToFloat", {p.in(0), p.in(1), p.in(3), p.in(4), p.in(6), p.in(7), p.in(2)}, {}, "",
            1, "com.microsoft");
  return attention_of(p, rank_of, all, 5, 8, 9);
}

// A bias of the projections and a mask of keys, before the same node without them.
bool multi_head_attention(Parts& p, const Node& node, const RankOf& rank_of) {
  if ((!p.has(3) && !p.has(4)) || !p.has(1) || !p.has(2) || p.has(8) || p.has(9)) return false;
  if (rank_of(p.in(1)) > 3) return false;
  Node rest = node;
  if (p.has(3)) {
    const std::string q =
        p.add("Split", {p.in(3)}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{3}}}, "", 3);
    for (size_t i = 0; i < 3; ++i) rest.inputs[i] = p.add("Add", {p.in(i), Parts::numbered(q, i)});
    rest.inputs[3].clear();
  }
  if (p.has(4)) {
    const int rank = rank_of(p.in(4));
    const auto made = mask_bias(p, p.in(4), rank < 0 ? 2 : rank, key_count(p, p.in(1), p.in(6), 2));
    if (!made) return false;
    rest.inputs.resize(std::max(rest.inputs.size(), size_t{6}));
    rest.inputs[5] = p.has(5) ? p.add("Add", {*made, p.in(5)}) : *made;
    rest.inputs[4].clear();
  }
  rest.attributes.erase("mask_filter_value");
  p.add_as_is(std::move(rest));
  return true;
}

}  // namespace

void note_ranks(const Node& node, const RankOf& rank_of, std::map<std::string, int>& ranks) {
  if (node.op_type == "EmbedLayerNormalization" && node.outputs.size() > 1) ranks[node.outputs[1]] = 1;
  const int rank = node.inputs.empty() ? -1 : rank_of(node.inputs[0]);
  if (rank < 0 || node.outputs.empty()) return;
  if (node.op_type == "Cast" || node.op_type == "Identity") ranks[node.outputs[0]] = rank;
  if (node.op_type != "ReduceSum") return;
  const Parts p(node);
  const auto axes = p.attribute("axes", std::vector<int64_t>(1));  // an operand lists one, as a rule
  const bool keeps = p.attribute("keepdims", int64_t{1}) != 0;
  ranks[node.outputs[0]] = keeps ? rank : rank - static_cast<int>(axes.size());
}

std::optional<std::vector<Node>> unfused(const Node& node, const RankOf& rank_of) {
  if (node.domain != "com.microsoft" || node.outputs.empty() || node.outputs[0].empty() ||
      !node.other_attributes.empty() || !node.bodies.empty())
    return std::nullopt;
  using Rewrite = bool (*)(Parts&, const Node&);
  static const std::map<std::string, Rewrite> kRewrites = {
      {"FusedConv", fused_conv},
      {"FusedGemm", fused_gemm},
      {"NhwcConv", nhwc_conv},
      {"GroupNorm", group_norm},
      {"BiasSplitGelu", bias_split_gelu},
      {"BiasAdd", bias_add},
      {"BiasSoftmax", bias_softmax},
      {"EmbedLayerNormalization", embed_layer_normalization}};
  Parts parts(node);
  bool done = false;
  if (const auto rewrite = kRewrites.find(node.op_type); rewrite != kRewrites.end())
    done = rewrite->second(parts, node);
  else if (node.op_type == "Attention")
    done = attention(parts, rank_of);
  else if (node.op_type == "QAttention")
    done = quantized_attention(parts, rank_of);
  else if (node.op_type == "MultiHeadAttention")
    done = multi_head_attention(parts, node, rank_of);
  return done ? std::optional(parts.take()) : std::nullopt;
}

}  // namespace invar::onnx
