// The ONNX graph of LlamaForCausalLM, layer by layer (spec/llama.md llama.4 to llama.9).
#include "checkpoint/recipes/llama.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "onnx/error_text.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

using Attributes = std::map<std::string, onnx::AttrValue>;

template <class T>
std::string little_endian(const std::vector<T>& values) {
  std::string bytes;
  for (T value : values) {
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> word;
    std::memcpy(&word, &value, sizeof word);
    for (size_t i = 0; i < sizeof word; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  }
  return bytes;
}

// Appends nodes. Keeps the first error, so that the recipe reads like the model.
class GraphBuilder {
 public:
  GraphBuilder(const LlamaConfig& config, const Checkpoint& checkpoint)
      : c_(config), checkpoint_(checkpoint) {}

  Result<onnx::Graph> build();

 private:
  std::string node(const std::string& op, const std::string& name, std::vector<std::string> inputs,
                   Attributes attributes = {}) {
    graph_.nodes.push_back({name, op, "", std::move(inputs), {name}, std::move(attributes), {}});
    return name;
  }
  void input(const std::string& name, int32_t type, std::vector<onnx::Dim> shape) {
    graph_.inputs.push_back({name, type, true, std::move(shape)});
  }
  void output(const std::string& name, std::vector<onnx::Dim> shape) {
    graph_.outputs.push_back({name, onnx::kFloat, true, std::move(shape)});
  }

  bool has(const std::string& tensor) const { return checkpoint_.tensors.contains(tensor); }
  std::string weight(const std::string& tensor, const std::vector<int64_t>& shape);
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out, bool bias);
  std::string norm(const std::string& name, const std::string& x);
  std::string attention(int64_t layer, const std::string& x);
  std::string mlp(const std::string& prefix, const std::string& x);
  Status check_unused() const;

  const LlamaConfig& c_;
  const Checkpoint& checkpoint_;
  onnx::Graph graph_;
  std::map<std::string, std::string> widened_;  // tensor -> its fp32 value
  std::string cos_, sin_;
  Status first_error_;
};

// The fp32 value of a stored tensor. Widening is exact, so every runtime computes with the same
// numbers.
std::string GraphBuilder::weight(const std::string& tensor, const std::vector<int64_t>& shape) {
  if (auto it = widened_.find(tensor); it != widened_.end()) return it->second;
  auto fail = [&](Error error) {
    if (first_error_) first_error_ = std::move(error);
    return tensor;
  };
  auto it = checkpoint_.tensors.find(tensor);
  if (it == checkpoint_.tensors.end())
    return fail(bad_input(checkpoint_.folder + ": tensor " + onnx::quote(tensor) +
                          ", which config.json asks for, is missing"));
  const CheckpointTensor& t = it->second;
  const std::string where = checkpoint_.folder + "/" + t.file + ": tensor " + onnx::quote(tensor);
  if (t.shape != shape)
    return fail(bad_input(where + " has shape " + onnx::shape_text(t.shape) + ", but config.json asks for " +
                          onnx::shape_text(shape)));
  const int32_t type = t.dtype == "F32"    ? onnx::kFloat
                       : t.dtype == "BF16" ? onnx::kBFloat16
                       : t.dtype == "F16"  ? onnx::kFloat16
                                           : 0;
  if (type == 0)
    return fail(
        not_covered(where + " is stored as " + t.dtype + ", which is not covered; F32, BF16 and F16 are"));
  onnx::TensorRef ref;
  ref.name = tensor;
  ref.data_type = type;
  ref.shape = t.shape;
  ref.file = t.file;
  ref.offset = t.offset;
  ref.length = t.length;
  graph_.initializers.push_back(std::move(ref));
  const std::string value = type == onnx::kFloat
                                ? tensor
                                : node("Cast", tensor + ".fp32", {tensor}, {{"to", int64_t{onnx::kFloat}}});
  return widened_[tensor] = value;
}

// torch.nn.Linear: the weight stays [out, in] as stored.
std::string GraphBuilder::linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                                 bool bias) {
  const std::string w = weight(name + ".weight", {out, in});
  const std::string t =
      node("Transpose", name + ".weight.transposed", {w}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string y = node("MatMul", name, {x, t});
  return bias ? node("Add", name + ".biased", {y, weight(name + ".bias", {out})}) : y;
}

std::string GraphBuilder::norm(const std::string& name, const std::string& x) {
  return node("RMSNormalization", name, {x, weight(name + ".weight", {c_.hidden_size})},
              {{"axis", int64_t{-1}}, {"epsilon", c_.rms_norm_eps}, {"stash_type", int64_t{onnx::kFloat}}});
}

std::string GraphBuilder::attention(int64_t layer, const std::string& x) {
  const std::string index = std::to_string(layer), p = "model.layers." + index + ".self_attn.";
  const int64_t q_size = c_.heads * c_.head_dim, kv_size = c_.kv_heads * c_.head_dim;
  std::string q = linear(p + "q_proj", x, c_.hidden_size, q_size, c_.attention_bias);
  std::string k = linear(p + "k_proj", x, c_.hidden_size, kv_size, c_.attention_bias);
  const std::string v = linear(p + "v_proj", x, c_.hidden_size, kv_size, c_.attention_bias);
  q = node("RotaryEmbedding", p + "q_rotated", {q, cos_, sin_},
           {{"num_heads", c_.heads}, {"interleaved", int64_t{0}}});
  k = node("RotaryEmbedding", p + "k_rotated", {k, cos_, sin_},
           {{"num_heads", c_.kv_heads}, {"interleaved", int64_t{0}}});

  std::vector<std::string> past, present;
  for (const char* kind : {".key", ".value"}) {
    past.push_back("past_key_values." + index + kind);
    present.push_back("present." + index + kind);
    input(past.back(), onnx::kFloat, {{-1, "batch"}, {c_.kv_heads, ""}, {-1, "past"}, {c_.head_dim, ""}});
    output(present.back(), {{-1, "batch"}, {c_.kv_heads, ""}, {-1, "total"}, {c_.head_dim, ""}});
  }
  // sqrt and division are correctly rounded, so the scale is the same on every machine.
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c_.head_dim)));
  const std::string y = node("Attention", p + "attention", {q, k, v, "", past[0], past[1]},
                             {{"is_causal", int64_t{1}},
                              {"q_num_heads", c_.heads},
                              {"kv_num_heads", c_.kv_heads},
                              {"scale", scale}});
  graph_.nodes.back().outputs = {y, present[0], present[1]};
  return linear(p + "o_proj", y, q_size, c_.hidden_size, c_.attention_bias);
}

std::string GraphBuilder::mlp(const std::string& p, const std::string& x) {
  const std::string gate = linear(p + "gate_proj", x, c_.hidden_size, c_.intermediate_size, c_.mlp_bias);
  const std::string up = linear(p + "up_proj", x, c_.hidden_size, c_.intermediate_size, c_.mlp_bias);
  const std::string sigmoid = node("Sigmoid", p + "sigmoid", {gate});
  const std::string silu = node("Mul", p + "silu", {gate, sigmoid});
  return linear(p + "down_proj", node("Mul", p + "gated", {silu, up}), c_.intermediate_size, c_.hidden_size,
                c_.mlp_bias);
}

// An unused tensor means that the model is not the one that config.json describes. The exception is
// inv_freq, which old checkpoints store although it follows from the config.
Status GraphBuilder::check_unused() const {
  std::set<std::string> used;
  for (const onnx::TensorRef& t : graph_.initializers) used.insert(t.name);
  for (const auto& [name, tensor] : checkpoint_.tensors)
    if (!used.contains(name) && !name.ends_with(".rotary_emb.inv_freq"))
      return not_covered(checkpoint_.folder + "/" + tensor.file + ": tensor " + onnx::quote(name) +
                         " has no place in the model that config.json describes");
  return {};
}

Result<onnx::Graph> GraphBuilder::build() {
  graph_.name = "LlamaForCausalLM";
  graph_.ir_version = 11;  // the first with opset 23
  graph_.opsets = {{"", 23}};
  graph_.metadata = c_.metadata;
  input("input_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  input("position_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  output("logits", {{-1, "batch"}, {-1, "seq"}, {c_.vocab_size, ""}});

  onnx::TensorRef frequencies, last_axis;
  frequencies.name = "inv_freq";
  frequencies.data_type = onnx::kFloat;
  frequencies.shape = {c_.head_dim / 2};
  frequencies.inline_data = little_endian(inverse_frequencies(c_.rope, c_.head_dim));
  last_axis.name = "last_axis";
  last_axis.data_type = onnx::kInt64;
  last_axis.shape = {1};
  last_axis.inline_data = little_endian(std::vector<int64_t>{-1});
  graph_.initializers = {frequencies, last_axis};
  const std::string positions = node("Cast", "positions", {"position_ids"}, {{"to", int64_t{onnx::kFloat}}});
  const std::string angles =
      node("Mul", "angles", {node("Unsqueeze", "positions.column", {positions, "last_axis"}), "inv_freq"});
  cos_ = node("Cos", "cos", {angles});
  sin_ = node("Sin", "sin", {angles});
  if (const float factor = attention_factor(c_.rope); factor != 1) {
    onnx::TensorRef constant;
    constant.name = "attention_factor";
    constant.data_type = onnx::kFloat;
    constant.shape = {1};
    constant.inline_data = little_endian(std::vector<float>{factor});
    graph_.initializers.push_back(constant);
    cos_ = node("Mul", "cos.scaled", {cos_, constant.name});
    sin_ = node("Mul", "sin.scaled", {sin_, constant.name});
  }

  // transformers ties the embedding and lm_head only if the checkpoint does not hold both, in
  // whichever direction a table exists. So a stored lm_head is always used, tied or not.
  const std::vector<int64_t> shape = {c_.vocab_size, c_.hidden_size};
  const std::string embed = "model.embed_tokens", head = "lm_head";
  const bool head_is_embed = c_.tied && !has(head + ".weight"),
             embed_is_head = c_.tied && !has(embed + ".weight");
  std::string x =
      node("Gather", embed, {weight((embed_is_head ? head : embed) + ".weight", shape), "input_ids"},
           {{"axis", int64_t{0}}});
  for (int64_t i = 0; i < c_.layers && first_error_; ++i) {
    const std::string p = "model.layers." + std::to_string(i) + ".";
    x = node("Add", p + "attended", {x, attention(i, norm(p + "input_layernorm", x))});
    x = node("Add", p + "output", {x, mlp(p + "mlp.", norm(p + "post_attention_layernorm", x))});
  }
  x = norm("model.norm", x);
  const std::string table = weight((head_is_embed ? embed : head) + ".weight", shape);
  node("MatMul", head,
       {x, node("Transpose", head + ".weight.transposed", {table}, {{"perm", std::vector<int64_t>{1, 0}}})});
  graph_.nodes.back().outputs = {"logits"};
  INVAR_CHECK_OK(first_error_);
  INVAR_CHECK_OK(check_unused());
  return std::move(graph_);
}

}  // namespace

Result<onnx::Graph> llama_graph(const LlamaConfig& config, const Checkpoint& checkpoint) {
  return GraphBuilder(config, checkpoint).build();
}

}  // namespace invar::checkpoint
