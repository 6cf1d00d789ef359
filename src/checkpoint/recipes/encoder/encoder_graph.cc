// The ONNX graph of an encoder, layer by layer (spec/encoder.md encoder.4 to encoder.9).
#include "checkpoint/recipes/encoder/encoder_graph.h"
#include "checkpoint/recipes/activation.h"

#include "checkpoint/recipes/encoder/pooling.h"
#include "checkpoint/recipes/encoder/position_buckets.h"
#include "checkpoint/recipes/graph_builder.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

using Strings = std::vector<std::string>;

class EncoderGraph {
 public:
  EncoderGraph(const Encoder& encoder, const Checkpoint& checkpoint) : e_(encoder), b_(checkpoint) {
    auto it = checkpoint.tensors.lower_bound(prefix_);
    if (it == checkpoint.tensors.end() || !it->first.starts_with(prefix_)) prefix_ = "";
  }
  Result<onnx::Graph> build();

 private:
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out, bool bias);
  std::string norm(const std::string& name, const std::string& x, int64_t size);
  std::string gathered(const std::string& table, int64_t rows, const std::string& indices);

  void places();
  void angles();
  void position_bias();
  std::string positions();
  std::string embedded();
  std::string attention(size_t index, const std::string& p, const std::string& x);
  std::string mlp(const std::string& p, const std::string& x);
  std::string layer(size_t index, std::string x);
  void scores(const std::string& x);
  bool has_token_types() const { return e_.classifier.labels > 0 && e_.token_types > 1; }

  const Encoder& e_;
  GraphBuilder b_;
  std::string prefix_ = e_.names.prefix;
  std::string zero_, one_, bias_;
  Strings cos_, sin_;  // of each rotary embedding
};

std::string EncoderGraph::linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                                 bool bias) {
  const std::string w =
      b_.node("Transpose", name + ".weight.transposed", {b_.weight(name + ".weight", {out, in})},
              {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string y = b_.node("MatMul", name, {x, w});
  return bias ? b_.node("Add", name + ".biased", {y, b_.weight(name + ".bias", {out})}) : y;
}

// Checkpoints that were converted from TensorFlow call the weight gamma and the bias beta.
std::string EncoderGraph::norm(const std::string& name, const std::string& x, int64_t size) {
  const bool older = b_.has(name + ".gamma");
  Strings operands = {x, b_.weight(name + (older ? ".gamma" : ".weight"), {size})};
  if (e_.norm_bias) operands.push_back(b_.weight(name + (older ? ".beta" : ".bias"), {size}));
  return b_.node(
      "LayerNormalization", name, operands,
      {{"axis", int64_t{-1}}, {"epsilon", e_.norm_epsilon}, {"stash_type", int64_t{onnx::kFloat}}});
}

std::string EncoderGraph::gathered(const std::string& table, int64_t rows, const std::string& indices) {
  return b_.node("Gather", table, {b_.weight(table + ".weight", {rows, e_.embedding_size}), indices},
                 {{"axis", int64_t{0}}});
}

// `length`: the number of tokens. `places`: 0, 1, ... up to it.
void EncoderGraph::places() {
  zero_ = b_.scalar("zero", 0), one_ = b_.scalar("one", 1);
  b_.node("Shape", "length.list", {"input_ids"}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  b_.node("Squeeze", "length", {"length.list"});
  b_.node("Range", "places", {zero_, "length", one_});
}

void EncoderGraph::angles() {
  if (e_.ropes.empty()) return;
  b_.node("Shape", "ids.shape", {"input_ids"});
  b_.node("Expand", "places.rows", {"places", "ids.shape"});
  b_.node("Cast", "positions", {"places.rows"}, {{"to", int64_t{onnx::kFloat}}});
  b_.node("Unsqueeze", "positions.column", {"positions", b_.constant("last_axis", std::vector<int64_t>{-1})});
  for (size_t i = 0; i < e_.ropes.size(); ++i) {
    const std::string p = i ? "local." : "";
    const std::string frequencies =
        b_.constant(p + "inv_freq", inverse_frequencies(e_.ropes[i], e_.head_dim));
    const std::string angles = b_.node("Mul", p + "angles", {"positions.column", frequencies});
    cos_.push_back(b_.node("Cos", p + "cos", {angles}));
    sin_.push_back(b_.node("Sin", p + "sin", {angles}));
  }
}

// The score that a key gets for its distance from the query, [1, heads, seq, seq].
void EncoderGraph::position_bias() {
  if (e_.position_buckets == 0) return;
  const int64_t far = e_.position_rows;  // more than any distance
  const std::string first_axis = b_.constant("first_axis", std::vector<int64_t>{0});
  b_.node("Unsqueeze", "places.row", {"places", first_axis});
  b_.node("Unsqueeze", "places.column", {"places", b_.constant("last_axis", std::vector<int64_t>{-1})});
  b_.node("Sub", "distances", {"places.row", "places.column"});
  b_.node("Add", "distances.moved", {"distances", b_.constant("farthest", std::vector{far})});
  const std::string table = b_.constant("bucket_of_distance", bucket_of_distance(e_.position_buckets, far));
  b_.node("Gather", "buckets", {table, "distances.moved"}, {{"axis", int64_t{0}}});
  const std::string name = prefix_ + e_.names.position_bias;
  b_.node("Gather", name, {b_.weight(name + ".weight", {e_.position_buckets, e_.heads}), "buckets"},
          {{"axis", int64_t{0}}});
  b_.node("Transpose", name + ".by_head", {name}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
  bias_ = b_.node("Unsqueeze", name + ".batch", {name + ".by_head", first_axis});
}

// Indices into the table of positions.
std::string EncoderGraph::positions() {
  if (e_.positions == Positions::learned) return "places";
  const std::string padding = b_.constant("padding", std::vector{e_.padding});
  b_.node("Equal", "is_padding", {"input_ids", padding});
  b_.node("Not", "is_text", {"is_padding"});
  b_.node("Cast", "counts", {"is_text"}, {{"to", int64_t{onnx::kInt64}}});
  b_.node("CumSum", "counted", {"counts", one_});
  b_.node("Mul", "counted.text", {"counted", "counts"});
  return b_.node("Add", "position_ids", {"counted.text", padding});
}

std::string EncoderGraph::embedded() {
  const EncoderNames& n = e_.names;
  std::string x = gathered(prefix_ + n.words, e_.vocab_size, "input_ids");
  if (e_.token_types > 0) {
    const std::string types =
        has_token_types() ? "token_type_ids" : b_.constant("first_type", std::vector<int64_t>{0});
    const std::string rows = gathered(prefix_ + n.token_types, e_.token_types, types);
    x = b_.node("Add", prefix_ + n.token_types + ".added", {x, rows});
  }
  if (e_.positions != Positions::none) {
    const std::string rows = gathered(prefix_ + n.positions, e_.position_rows, positions());
    x = b_.node("Add", prefix_ + n.positions + ".added", {x, rows});
  }
  x = norm(prefix_ + n.embedding_norm, x, e_.embedding_size);
  if (e_.embedding_size == e_.hidden_size) return x;
  return linear(prefix_ + n.projection, x, e_.embedding_size, e_.hidden_size, true);
}

std::string EncoderGraph::attention(size_t index, const std::string& p, const std::string& x) {
  const EncoderNames& n = e_.names;
  const int64_t size = e_.hidden_size;
  Strings qkv;
  if (n.qkv.empty()) {
    for (const std::string& name : {n.q, n.k, n.v})
      qkv.push_back(linear(p + name, x, size, size, e_.attention_bias));
  } else {
    const std::string all = linear(p + n.qkv, x, size, 3 * size, e_.attention_bias);
    qkv = {p + n.qkv + ".q", p + n.qkv + ".k", p + n.qkv + ".v"};
    b_.node("Split", p + n.qkv + ".split", {all}, {{"axis", int64_t{2}}, {"num_outputs", int64_t{3}}});
    b_.graph().nodes.back().outputs = qkv;
  }
  const Layer& layer = e_.layers[index];
  for (size_t i = 0; i < 2 && !e_.ropes.empty(); ++i) {
    const auto rope = static_cast<size_t>(layer.rope);
    qkv[i] = b_.node("RotaryEmbedding", qkv[i] + ".rotated", {qkv[i], cos_[rope], sin_[rope]},
                     {{"num_heads", e_.heads}});
  }
  Attributes attributes = {
      {"q_num_heads", e_.heads}, {"kv_num_heads", e_.heads}, {"scale", default_attention_scale(e_.head_dim)}};
  if (layer.window) attributes["left_window_size"] = attributes["right_window_size"] = e_.window;
  Strings operands = qkv;
  if (!bias_.empty()) operands.push_back(bias_);
  const std::string y = b_.node("Attention", p + "attended", operands, attributes);
  return linear(p + n.o, y, size, size, e_.attention_bias);
}

std::string EncoderGraph::mlp(const std::string& p, const std::string& x) {
  const EncoderNames& n = e_.names;
  const int64_t inner = e_.intermediate_size;
  std::string h = linear(p + n.up, x, e_.hidden_size, e_.gated_mlp ? 2 * inner : inner, e_.mlp_bias);
  if (e_.gated_mlp) {
    const Strings halves = {p + n.up + ".activated_half", p + n.up + ".gate"};
    b_.node("Split", p + n.up + ".split", {h}, {{"axis", int64_t{2}}, {"num_outputs", int64_t{2}}});
    b_.graph().nodes.back().outputs = halves;
    h = b_.node("Mul", p + n.up + ".gated",
                {activated(b_, e_.activation, p + n.up + ".", halves[0]), halves[1]});
  } else {
    h = activated(b_, e_.activation, p + n.up + ".", h);
  }
  return linear(p + n.down, h, inner, e_.hidden_size, e_.mlp_bias);
}

std::string EncoderGraph::layer(size_t index, std::string x) {
  const EncoderNames& n = e_.names;
  const std::string p = prefix_ + n.layers + std::to_string(index) + ".";
  const auto normed = [&](const std::string& name, const std::string& at) {
    return norm(p + name, at, e_.hidden_size);
  };
  if (e_.pre_norm) {  // the embeddings have their norm already
    const std::string before = index == 0 ? x : normed(n.attention_norm, x);
    x = b_.node("Add", p + "attention.added", {x, attention(index, p, before)});
    return b_.node("Add", p + "mlp.added", {x, mlp(p, normed(n.mlp_norm, x))});
  }
  x = normed(n.attention_norm, b_.node("Add", p + "attention.added", {attention(index, p, x), x}));
  return normed(n.mlp_norm, b_.node("Add", p + "mlp.added", {mlp(p, x), x}));
}

void EncoderGraph::scores(const std::string& x) {
  const Classifier& c = e_.classifier;
  std::string y =
      linear(c.dense, pooled(b_, c.pooling, x, "length"), e_.hidden_size, e_.hidden_size, c.dense_bias);
  const char* activation = c.activation == Classifier::tanh   ? "Tanh"
                           : c.activation == Classifier::relu ? "Relu"
                                                              : "Gelu";
  y = b_.node(activation, c.dense + ".activated", {y});
  if (!c.norm.empty()) y = norm(c.norm, y, e_.hidden_size);
  linear(c.out, y, e_.hidden_size, c.labels, true);
  b_.graph().nodes.back().outputs = {"logits"};
  b_.output("logits", {{-1, "batch"}, {c.labels, ""}});
  if (!c.sigmoid) return;
  b_.node("Sigmoid", "scores", {"logits"});
  b_.output("scores", {{-1, "batch"}, {c.labels, ""}});
}

Result<onnx::Graph> EncoderGraph::build() {
  onnx::Graph& graph = b_.graph();
  graph.name = e_.architecture;
  graph.ir_version = 11;  // the first with opset 23
  graph.opsets = {{"", 23}};
  for (const Layer& layer : e_.layers)
    if (layer.window) graph.ir_version = 13, graph.opsets = {{"", 25}};  // the first with windows
  graph.metadata = e_.metadata;
  b_.input("input_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  if (has_token_types()) b_.input("token_type_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  places();
  angles();
  position_bias();
  std::string x = embedded();
  for (size_t i = 0; i < e_.layers.size() && b_.status(); ++i) x = layer(i, x);
  if (!e_.names.final_norm.empty()) x = norm(prefix_ + e_.names.final_norm, x, e_.hidden_size);
  if (e_.classifier.labels > 0) {
    scores(x);
  } else {
    sentence_vector(b_, e_.sentence, x, "length");
    graph.nodes.back().outputs = {"embedding"};
    const auto modes = static_cast<int64_t>(e_.sentence.pooling.size());
    b_.output("embedding", {{-1, "batch"}, {modes * e_.hidden_size, ""}});
  }
  INVAR_CHECK_OK(b_.status());
  // The tensors that are left belong to heads, whose names do not have the prefix.
  INVAR_CHECK_OK(b_.check_unused([&](const std::string& name) {
    return name.ends_with(".position_ids") || name.starts_with(prefix_ + "pooler.") ||
           !name.starts_with(prefix_);
  }));
  return std::move(graph);
}

}  // namespace

Result<onnx::Graph> encoder_graph(const Encoder& encoder, const Checkpoint& checkpoint) {
  return EncoderGraph(encoder, checkpoint).build();
}

}  // namespace invar::checkpoint
