// Command R, Command R7B and Command A with experts: attention and MLP side by side behind one
// norm.
#include <algorithm>
#include <tuple>

#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

namespace {

void read_cohere(ConfigReader& r, Decoder& d, const SizeKeys& keys) {
  read_sizes(r, d, keys);
  read_activation(r, d, "hidden_act", "silu");
  d.norm = Norm::layer;
  d.norm_epsilon = read_factor(r, "layer_norm_eps", 1e-5);
  d.block = Block::parallel;
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.rope_interleaved = true;
  d.logits_scale = read_factor(r, "logit_scale", 0.0625);
}

}  // namespace

void describe_cohere(ConfigReader& r, Decoder& d) {
  read_cohere(r, d, {});
  if (r.flag("use_qk_norm")) d.qk_norm = QkNorm::heads;
  read_rope(r, {.theta = 500000}, d);
}

void describe_cohere2(ConfigReader& r, Decoder& d) {
  read_cohere(r, d, {.head_dim = nullptr});
  read_layer_types(r, d, read_window(r, 4096), every(r.size("sliding_window_pattern", 4)));
  for (Layer& layer : d.layers) layer.rope = layer.window ? 0 : -1;
  read_rope(r, {}, d);
}

void describe_cohere2_moe(ConfigReader& r, Decoder& d) {
  read_cohere(r, d, {.default_head_dim = 128});
  if (r.find("rms_norm_eps")) d.norm = Norm::rms, d.norm_epsilon = read_factor(r, "rms_norm_eps", 0);
  read_experts(r, d, {.inner = nullptr, .default_count = 8, .default_chosen = 2});
  const auto first = static_cast<size_t>(read_count(r, "first_k_dense_replace", 0));
  for (size_t i = 0; i < std::min(first, d.layers.size()); ++i) d.layers[i].sparse = false;
  read_mlp_layer_types(r, d);
  d.intermediate_size = r.size("prefix_dense_intermediate_size", d.intermediate_size);
  const auto dense = static_cast<size_t>(r.size("prefix_dense_sliding_window_pattern", 1)),
             sparse = static_cast<size_t>(r.size("sliding_window_pattern", 4));
  read_layer_types(r, d, read_window(r, 4096), [&](const Decoder&, size_t i) {
    return i < first ? (i + 1) % dense != 0 : (i - first + 1) % sparse != 0;
  });
  for (Layer& layer : d.layers) layer.rope = layer.window || (!layer.sparse && dense == 1) ? 0 : -1;
  Experts& e = d.experts;
  const std::string chosen_by = r.text("expert_selection_fn", "softmax");
  e.routing = chosen_by == "sigmoid" ? Routing::sigmoid_of_chosen : Routing::softmax_of_chosen;
  e.normalized = r.flag("norm_topk_prob", true) && chosen_by == "sigmoid";
  e.shared_intermediate_size = e.intermediate_size * read_count(r, "num_shared_experts", 0);
  const std::string joined = r.text("shared_expert_combination_strategy", "average");
  if (e.shared_intermediate_size != 0 && joined == "average") e.out_scale = 0.5f;
  for (const auto& [key, value, known] :
       {std::tuple{"expert_selection_fn", chosen_by, chosen_by == "softmax" || chosen_by == "sigmoid"},
        {"shared_expert_combination_strategy", joined, joined == "average" || joined == "sum"}})
    if (!known) r.refuse(onnx::quote(key) + " = " + onnx::quote(value) + " is not covered");
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
