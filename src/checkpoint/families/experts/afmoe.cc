// AFMoE of Arcee (Trinity): gated attention, windows where layers rotate, norms on both sides,
// sigmoid routing with a bias for the choice.
#include <cmath>

#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_afmoe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_head_dim = 128}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.block = Block::both;
  d.qk_norm = QkNorm::head;
  d.attention_gate = true;
  TensorNames& n = d.names;
  n.attention_gate = "self_attn.gate_proj";
  n.attention_post_norm = "post_attention_layernorm";
  n.mlp_norm = "pre_mlp_layernorm", n.mlp_post_norm = "post_mlp_layernorm";
  if (r.flag("mup_enabled"))
    d.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(d.hidden_size)));
  read_layer_types(r, d, read_window(r, 1024), every(r.size("global_attn_every_n_layers", 4)));
  read_rope(r, {}, d);
  for (Layer& layer : d.layers) layer.rope = layer.window ? 0 : -1;
  read_experts(r, d, {"num_experts", "num_experts_per_tok", "moe_intermediate_size", 64, 6, 1408});
  const int64_t dense = read_count(r, "num_dense_layers", 1);
  for (size_t i = 0; i < d.layers.size(); ++i) d.layers[i].sparse = static_cast<int64_t>(i) >= dense;
  Experts& e = d.experts;
  e.routing = Routing::sigmoid;
  e.correction_bias = e.normalized = true;
  e.sum_offset = 1e-20f;
  e.scale = read_factor(r, "route_scale", 1);
  e.shared_intermediate_size = e.intermediate_size * read_count(r, "num_shared_experts", 2);
  e.names.router = "mlp.router.gate", e.names.correction_bias = "mlp.expert_bias";
  // Keys of the first code, for which transformers has the one value.
  if (const std::string score = r.text("score_func", "sigmoid"); score != "sigmoid")
    r.refuse("'score_func' = " + onnx::quote(score) + " is not covered; sigmoid is");
  if (!r.flag("route_norm", true)) r.refuse("'route_norm' = false is not covered");
  for (const char* key : {"n_group", "topk_group", "num_expert_groups", "num_limited_groups"})
    r.require_neutral(key, 1);
}

}  // namespace invar::checkpoint
