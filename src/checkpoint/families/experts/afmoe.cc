// Gated attention, and sigmoid routing with a bias for the choice: AFMoE of Arcee (Trinity), with
// windows where layers rotate and norms on both sides; Laguna of Poolside, with a number of heads
// for each layer.
#include <cmath>

#include "checkpoint/architecture.h"
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

namespace {

void read_heads_of_layers(ConfigReader& r, Decoder& d) {
  const json::Value* counts = r.find("num_attention_heads_per_layer");
  if (!counts) return;
  bool right = counts->is_array() && counts->size() == d.layers.size();
  for (size_t i = 0; right && i < d.layers.size(); ++i) {
    const json::Value& count = counts->items[i];
    right = count.is_unsigned() && count.to_uint64() - 1 < 1u << 20;
    if (right && count != d.heads) d.layers[i].heads = count.to_int64();
    right = right && count.to_int64() % d.kv_heads == 0;
  }
  if (!right)
    r.reject("'num_attention_heads_per_layer' is not a list of " + std::to_string(d.layers.size()) +
             " multiples of 'num_key_value_heads'");
}

}  // namespace

void describe_laguna(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8, .default_head_dim = 128});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  d.attention_gate = d.attention_gate_softplus = true;
  const json::Value* gating = r.find("gating");
  d.attention_gate_of_heads = !gating || *gating == true || *gating == "per-head";
  if (!d.attention_gate_of_heads && *gating != "per-element")
    r.refuse("'gating' = " + short_text(*gating) + " is not covered; true, per-head and per-element are");
  d.names.attention_gate = "self_attn.g_proj";
  read_heads_of_layers(r, d);
  read_experts(r, d, {.default_count = 256, .default_chosen = 8, .default_inner = 512});
  if (r.status()) d.layers[0].sparse = false;
  read_mlp_layer_types(r, d);
  Experts& e = d.experts;
  e.routing = Routing::sigmoid;
  e.correction_bias = e.normalized = true;
  e.names.correction_bias = "mlp.experts.e_score_correction_bias", e.names.shared = "mlp.shared_expert.";
  e.scale = read_factor(r, "moe_routed_scaling_factor", 1);
  const json::Value* cap = r.find("moe_router_logit_softcapping");
  if (cap && *cap != 0) e.router_softcap = read_factor(r, "moe_router_logit_softcapping", 0);
  e.shared_intermediate_size = r.size("shared_expert_intermediate_size", 512);
  r.require_neutral("moe_apply_router_weight_on_input");
  read_layer_types(r, d, read_window(r, 512), [](const Decoder&, size_t) { return false; });
  const double partial = r.find("rope_parameters") ? 1 : 0.5;
  read_ropes_of_layers(r, {.theta = 500000, .partial = partial, .theta_key = nullptr, .partial_key = nullptr},
                       {.theta = 10000, .partial = 1, .theta_key = nullptr, .partial_key = nullptr}, d);
}

}  // namespace invar::checkpoint
