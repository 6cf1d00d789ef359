// The ONNX graph of a decoder, layer by layer (spec/llama.md llama.4 to llama.9, spec/decoder.md
// decoder.4 to decoder.10).
#include "checkpoint/recipes/decoder_graph.h"

#include "checkpoint/recipes/attention_parts.h"
#include "checkpoint/recipes/graph_builder.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

using onnx::kFloat;
using Strings = std::vector<std::string>;

class DecoderGraph {
 public:
  DecoderGraph(const Decoder& decoder, const Checkpoint& checkpoint) : d_(decoder), b_(checkpoint) {
    const auto has_layers = [&](const std::string& prefix) {
      auto it = checkpoint.tensors.lower_bound(prefix + d_.names.layers);
      return it != checkpoint.tensors.end() && it->first.starts_with(prefix + d_.names.layers);
    };
    for (const auto& [prefix, head] : d_.names.other_places)
      if (!has_layers(prefix_) && has_layers(prefix)) prefix_ = prefix, head_ = head;
  }
  Result<onnx::Graph> build();

 private:
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out, bool bias);
  std::string norm(const std::string& name, const std::string& x, int64_t size, bool bias);
  std::string block_norm(const std::string& name, const std::string& x);
  std::string scaled(const char* op, const std::string& name, const std::string& x, float factor,
                     float neutral);
  std::string softcapped(const std::string& x);
  std::string reshaped(const std::string& name, const std::string& x, std::vector<int64_t> shape);
  Strings parts(const std::string& name, const std::string& x, int64_t axis, std::vector<int64_t> sizes);

  void angles();
  std::string embedded();
  Strings projections(const std::string& layer, const std::string& x);
  std::string qk_norm(const std::string& name, const std::string& x, int64_t heads);
  std::string rotated(const std::string& name, const std::string& x, int64_t heads, int rope);
  std::string attention(size_t layer, const std::string& x);
  std::string mlp(const std::string& layer, const std::string& x);
  std::string activated(const std::string& name, const std::string& x);
  std::string layer(size_t index, std::string x);
  void logits(std::string x);
  int64_t embedding_size() const { return d_.embedding_size ? d_.embedding_size : d_.hidden_size; }

  const Decoder& d_;
  GraphBuilder b_;
  std::string prefix_ = d_.names.prefix, head_ = d_.names.head;
  std::string biases_;  // of scores (decoder.26); "": none
  Strings cos_, sin_;   // of each rope
};

// torch.nn.Linear keeps its weight [out, in] as stored; Conv1D of GPT-2 keeps it [in, out].
std::string DecoderGraph::linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                                 bool bias) {
  const bool turned = d_.transposed_weights;
  std::string w = b_.weight(name + ".weight", turned ? std::vector{in, out} : std::vector{out, in});
  if (!turned)
    w = b_.node("Transpose", name + ".weight.transposed", {w}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string y = b_.node("MatMul", name, {x, w});
  return bias ? b_.node("Add", name + ".biased", {y, b_.weight(name + ".bias", {out})}) : y;
}

std::string DecoderGraph::norm(const std::string& name, const std::string& x, int64_t size, bool bias) {
  std::string w = d_.norm_weight ? b_.weight(name + ".weight", {size})
                                 : b_.constant("ones", std::vector<float>(static_cast<size_t>(size), 1.0f));
  if (d_.norm_offset)
    w = b_.node("Add", name + ".weight.plus_one", {w, b_.constant("one", std::vector{1.0f})});
  Strings operands = {x, w};
  if (bias) operands.push_back(b_.weight(name + ".bias", {size}));
  return b_.node(d_.norm == Norm::rms ? "RMSNormalization" : "LayerNormalization", name, operands,
                 {{"axis", int64_t{-1}}, {"epsilon", d_.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
}

std::string DecoderGraph::block_norm(const std::string& name, const std::string& x) {
  return norm(name, x, d_.hidden_size, d_.norm_bias);
}

std::string DecoderGraph::scaled(const char* op, const std::string& name, const std::string& x, float factor,
                                 float neutral) {
  if (factor == neutral) return x;
  const std::string constant = name.substr(name.rfind('.') + 1);
  return b_.node(op, name, {x, b_.constant(constant, std::vector{factor})});
}

std::string DecoderGraph::softcapped(const std::string& x) {
  if (d_.logits_softcap == 0) return x;
  const std::string inner = scaled("Div", "logits.softcap", x, d_.logits_softcap, 0);
  return b_.node("Mul", "logits.capped", {b_.node("Tanh", "logits.tanh", {inner}), "softcap"});
}

std::string DecoderGraph::reshaped(const std::string& name, const std::string& x,
                                   std::vector<int64_t> shape) {
  std::string text = "shape";
  for (int64_t n : shape) text += "_" + std::to_string(n);
  return b_.node("Reshape", name, {x, b_.constant(text, shape)});
}

Strings DecoderGraph::parts(const std::string& name, const std::string& x, int64_t axis,
                            std::vector<int64_t> sizes) {
  std::string text = "sizes";
  Strings out;
  for (int64_t n : sizes) {
    text += "_" + std::to_string(n);
    out.push_back(name + "." + std::to_string(out.size()));
  }
  b_.node("Split", name, {x, b_.constant(text, sizes)}, {{"axis", axis}});
  b_.graph().nodes.back().outputs = out;
  return out;
}

void DecoderGraph::angles() {
  for (size_t i = 0; i < d_.ropes.size(); ++i) {
    const std::string p = i ? "local." : "";
    const std::string frequencies =
        b_.constant(p + "inv_freq", inverse_frequencies(d_.ropes[i], d_.rotary_dim));
    if (i == 0) {
      b_.constant("last_axis", std::vector<int64_t>{-1});
      b_.node("Cast", "positions", {"position_ids"}, {{"to", int64_t{kFloat}}});
      b_.node("Unsqueeze", "positions.column", {"positions", "last_axis"});
    }
    const std::string angles = b_.node("Mul", p + "angles", {"positions.column", frequencies});
    cos_.push_back(b_.node("Cos", p + "cos", {angles}));
    sin_.push_back(b_.node("Sin", p + "sin", {angles}));
    if (const float factor = attention_factor(d_.ropes[i]); factor != 1) {
      const std::string constant = b_.constant(p + "attention_factor", std::vector{factor});
      cos_.back() = b_.node("Mul", p + "cos.scaled", {cos_.back(), constant});
      sin_.back() = b_.node("Mul", p + "sin.scaled", {sin_.back(), constant});
    }
  }
}

// transformers ties the embedding and the head only if the checkpoint does not hold both, in
// whichever direction a table exists. So a stored head is always used, tied or not.
std::string DecoderGraph::embedded() {
  const std::string name = prefix_ + d_.names.embedding;
  const bool from_head = d_.tied && !b_.has(name + ".weight");
  std::string x = b_.node(
      "Gather", name,
      {b_.weight((from_head ? head_ : name) + ".weight", {d_.vocab_size, embedding_size()}), "input_ids"},
      {{"axis", int64_t{0}}});
  x = scaled("Mul", name + ".embedding_scale", x, d_.embedding_scale, 1);
  if (!d_.names.embedding_norm.empty()) x = block_norm(prefix_ + d_.names.embedding_norm, x);
  if (d_.embedding_size != 0)
    x = linear(prefix_ + d_.names.project_in, x, d_.embedding_size, d_.hidden_size, false);
  if (d_.names.positions.empty()) return x;
  const std::string table = prefix_ + d_.names.positions;
  std::string ids = "position_ids";
  if (d_.position_offset != 0)
    ids = b_.node("Add", "position_ids.moved",
                  {ids, b_.constant("position_offset", std::vector{d_.position_offset})});
  const std::string rows =
      b_.weight(table + ".weight", {d_.max_positions + d_.position_offset, d_.hidden_size});
  return b_.node("Add", table + ".added", {x, b_.node("Gather", table, {rows, ids}, {{"axis", int64_t{0}}})});
}

// Queries, keys and values.
Strings DecoderGraph::projections(const std::string& p, const std::string& x) {
  const TensorNames& n = d_.names;
  const int64_t q = d_.heads * d_.head_dim, kv = d_.kv_heads * d_.head_dim;
  if (d_.qkv_layout == QkvLayout::split) {
    Strings out;
    for (const auto& [name, size] : {std::pair{n.q, q}, {n.k, kv}, {n.v, kv}})
      out.push_back(linear(p + name, x, d_.hidden_size, size, d_.qkv_bias));
    return out;
  }
  const std::string all = linear(p + n.qkv, x, d_.hidden_size, q + 2 * kv, d_.qkv_bias);
  if (d_.qkv_layout == QkvLayout::concatenated) return parts(p + n.qkv + ".split", all, 2, {q, kv, kv});
  // Each head of keys stands behind the heads of queries that use it, and its values behind it.
  const int64_t groups = d_.kv_heads, queries = q / groups;
  const std::string grouped =
      reshaped(p + n.qkv + ".grouped", all, {0, 0, groups, queries + 2 * d_.head_dim});
  Strings out = parts(p + n.qkv + ".split", grouped, 3, {queries, d_.head_dim, d_.head_dim});
  for (size_t i = 0; i < out.size(); ++i) out[i] = reshaped(out[i] + ".flat", out[i], {0, 0, i ? kv : q});
  return out;
}

std::string DecoderGraph::qk_norm(const std::string& name, const std::string& x, int64_t heads) {
  if (d_.qk_norm == QkNorm::none) return x;
  const int64_t size = heads * d_.head_dim;
  if (d_.qk_norm == QkNorm::projection) return norm(name, x, size, d_.qk_norm_bias);
  std::string y = reshaped(name + ".heads", x, {0, 0, heads, d_.head_dim});
  y = d_.qk_norm == QkNorm::head ? norm(name, y, d_.head_dim, d_.qk_norm_bias)
                                 : norm_of_heads(b_, d_, name, y, heads);
  return reshaped(name + ".flat", y, {0, 0, size});
}

std::string DecoderGraph::rotated(const std::string& name, const std::string& x, int64_t heads, int rope) {
  if (rope < 0 || d_.ropes.empty()) return x;
  const auto i = static_cast<size_t>(rope);
  Attributes attributes = {{"num_heads", heads}, {"interleaved", int64_t{d_.rope_interleaved}}};
  if (d_.rotary_dim != d_.head_dim) attributes["rotary_embedding_dim"] = d_.rotary_dim;
  return b_.node("RotaryEmbedding", name, {x, cos_[i], sin_[i]}, attributes);
}

std::string DecoderGraph::attention(size_t layer, const std::string& x) {
  const std::string index = std::to_string(layer), p = prefix_ + d_.names.layers + index + ".";
  Strings qkv = projections(p, x);
  for (size_t i = 0; i < qkv.size() && d_.qkv_clip != 0; ++i)
    qkv[i] = clipped(b_, p + "self_attn." + "qkv"[i] + "_clipped", qkv[i], d_.qkv_clip);
  const std::pair<std::string, int64_t> sides[] = {{"q", d_.heads}, {"k", d_.kv_heads}};
  const auto normed = [&](size_t i) {
    return qk_norm(p + (i ? d_.names.k_norm : d_.names.q_norm), qkv[i], sides[i].second);
  };
  for (size_t i = 0; i < 2 && !d_.qk_norm_after_rope; ++i) qkv[i] = normed(i);
  for (size_t i = 0; i < 2; ++i)
    qkv[i] = rotated(p + "self_attn." + sides[i].first + "_rotated", qkv[i], sides[i].second,
                     d_.layers[layer].rope);
  for (size_t i = 0; i < 2 && d_.qk_norm_after_rope; ++i) qkv[i] = normed(i);

  Strings past, present;
  for (const char* kind : {".key", ".value"}) {
    past.push_back("past_key_values." + index + kind);
    present.push_back("present." + index + kind);
    b_.input(past.back(), kFloat, {{-1, "batch"}, {d_.kv_heads, ""}, {-1, "past"}, {d_.head_dim, ""}});
    b_.output(present.back(), {{-1, "batch"}, {d_.kv_heads, ""}, {-1, "total"}, {d_.head_dim, ""}});
  }
  Attributes attributes = {{"is_causal", int64_t{1}},
                           {"q_num_heads", d_.heads},
                           {"kv_num_heads", d_.kv_heads},
                           {"scale", attention_scale(d_, layer)}};
  if (d_.attention_softcap != 0) attributes["softcap"] = d_.attention_softcap;
  if (d_.layers[layer].window) attributes["left_window_size"] = d_.window - 1;
  const std::string y = b_.node("Attention", p + "self_attn.attention",
                                {qkv[0], qkv[1], qkv[2], biases_, past[0], past[1]}, attributes);
  b_.graph().nodes.back().outputs = {y, present[0], present[1]};
  return linear(p + d_.names.o, y, d_.heads * d_.head_dim, d_.hidden_size, d_.output_bias);
}

std::string DecoderGraph::activated(const std::string& p, const std::string& x) {
  switch (d_.activation) {
    case Activation::silu: return b_.node("Mul", p + "silu", {x, b_.node("Sigmoid", p + "sigmoid", {x})});
    case Activation::gelu: return b_.node("Gelu", p + "gelu", {x});
    case Activation::gelu_tanh:
      return b_.node("Gelu", p + "gelu", {x}, {{"approximate", std::string("tanh")}});
    case Activation::relu: return b_.node("Relu", p + "relu", {x});
    case Activation::relu_squared: break;
  }
  const std::string y = b_.node("Relu", p + "relu", {x});
  return b_.node("Mul", p + "squared", {y, y});
}

std::string DecoderGraph::mlp(const std::string& layer, const std::string& x) {
  const TensorNames& n = d_.names;
  const std::string p = layer + "mlp.";
  const int64_t inner = d_.intermediate_size;
  std::string h;
  if (!d_.gated_mlp) {
    h = activated(p, linear(layer + n.up, x, d_.hidden_size, inner, d_.mlp_bias));
  } else {
    Strings gate_up;
    if (d_.fused_gate_up) {
      const std::string both = linear(layer + n.gate_up, x, d_.hidden_size, 2 * inner, d_.mlp_bias);
      gate_up = parts(layer + n.gate_up + ".split", both, 2, {inner, inner});
    } else {
      for (const std::string& name : {n.gate, n.up})
        gate_up.push_back(linear(layer + name, x, d_.hidden_size, inner, d_.mlp_bias));
    }
    const std::string gate = activated(p, gate_up[0]);
    h = b_.node("Mul", p + "gated", {gate, gate_up[1]});
  }
  return linear(layer + n.down, h, inner, d_.hidden_size, d_.mlp_bias);
}

// decoder.8 has a table of the blocks.
std::string DecoderGraph::layer(size_t index, std::string x) {
  const TensorNames& n = d_.names;
  const std::string p = prefix_ + n.layers + std::to_string(index) + ".";
  const auto before = [&](const std::string& name, const std::string& at) {
    return block_norm(p + name, at);
  };
  const auto add = [&](const char* name, const std::string& to, const std::string& what) {
    const std::string scaled_part =
        scaled("Mul", p + name + std::string(".residual_scale"), what, d_.residual_scale, 1);
    return b_.node("Add", p + name, {to, scaled_part});
  };
  switch (d_.block) {
    case Block::pre:
      x = add("attended", x, attention(index, before(n.attention_norm, x)));
      return add("output", x, mlp(p, before(n.mlp_norm, x)));
    case Block::post:
      x = add("attended", x, before(n.attention_post_norm, attention(index, x)));
      return add("output", x, before(n.mlp_post_norm, mlp(p, x)));
    case Block::both:
      x = add("attended", x, before(n.attention_post_norm, attention(index, before(n.attention_norm, x))));
      return add("output", x, before(n.mlp_post_norm, mlp(p, before(n.mlp_norm, x))));
    case Block::after:
      x = before(n.attention_norm, add("attended", x, attention(index, x)));
      return before(n.mlp_norm, add("output", x, mlp(p, x)));
    case Block::parallel:
    case Block::parallel_two: break;
  }
  const std::string shared = before(n.attention_norm, x);
  const std::string attended = add("attended", x, attention(index, shared));
  return add("output", attended, mlp(p, d_.block == Block::parallel ? shared : before(n.mlp_norm, x)));
}

void DecoderGraph::logits(std::string x) {
  if (d_.final_norm) x = block_norm(prefix_ + d_.names.final_norm, x);
  if (d_.embedding_size != 0)
    x = linear(prefix_ + d_.names.project_out, x, d_.hidden_size, d_.embedding_size, false);
  const std::string &head = head_, embedding = prefix_ + d_.names.embedding;
  const std::string table = b_.weight((d_.tied && !b_.has(head + ".weight") ? embedding : head) + ".weight",
                                      {d_.vocab_size, embedding_size()});
  x = b_.node("MatMul", head,
              {x, b_.node("Transpose", head + ".weight.transposed", {table},
                          {{"perm", std::vector<int64_t>{1, 0}}})});
  if (d_.head_bias) x = b_.node("Add", head + ".biased", {x, b_.weight(head + ".bias", {d_.vocab_size})});
  x = scaled("Mul", "logits.logits_scale", x, d_.logits_scale, 1);
  x = scaled("Div", "logits.logits_divisor", x, d_.logits_divisor, 1);
  softcapped(x);
  b_.graph().nodes.back().outputs = {"logits"};
}

Result<onnx::Graph> DecoderGraph::build() {
  onnx::Graph& graph = b_.graph();
  graph.name = d_.architecture;
  graph.ir_version = 11;  // the first with opset 23
  graph.opsets = {{"", 23}};
  for (const Layer& layer : d_.layers)
    if (layer.window) graph.ir_version = 13, graph.opsets = {{"", 25}};  // the first with windows
  graph.metadata = d_.metadata;
  b_.input("input_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  b_.input("position_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  b_.output("logits", {{-1, "batch"}, {-1, "seq"}, {d_.vocab_size, ""}});
  angles();
  if (d_.alibi_bias_max != 0) biases_ = linear_biases(b_, d_);
  std::string x = embedded();
  for (size_t i = 0; i < d_.layers.size() && b_.status(); ++i) x = layer(i, x);
  logits(x);
  INVAR_CHECK_OK(b_.status());
  INVAR_CHECK_OK(b_.check_unused(d_.names.ignored, d_.names.ignored_begins));
  return std::move(graph);
}

}  // namespace

Result<onnx::Graph> decoder_graph(const Decoder& decoder, const Checkpoint& checkpoint) {
  return DecoderGraph(decoder, checkpoint).build();
}

}  // namespace invar::checkpoint
