// Standard attention and the experts of DeepSeek-V3, sigmoid routing with a bias for the choice:
// GLM-4.5 to GLM-4.7, dots.llm1, Solar Open, EXAONE MoE, Hunyuan 3, Sarvam 30B.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_glm4_moe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("attention_bias");
  if (r.flag("use_qk_norm")) d.qk_norm = QkNorm::head;
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 128, 8, 1408});
  read_first_dense(r, d, 1);
  read_sigmoid_routing(r, d, 1, 1, 1);
  read_rope(r, {.partial = 0.5}, d);
}

void describe_solar_open(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.inner = nullptr, .default_kv_heads = 8, .default_head_dim = 128}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("attention_bias");
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 128, 8, 1280});
  d.intermediate_size = d.experts.intermediate_size;  // no layer is dense
  read_sigmoid_routing(r, d, 1, 1, 1);
  read_rope(r, {.theta = 1000000}, d);
}

void describe_dots1(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 32});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 0, 0, 1408});
  read_first_dense(r, d, 0);
  read_sigmoid_routing(r, d, 1, 1, 1, {.normalized = false});
  const int64_t window = read_window(r, 4096), first = read_count(r, "max_window_layers", 62);
  read_layer_types(r, d, window,
                   [&](const Decoder&, size_t i) { return window != 0 && static_cast<int64_t>(i) >= first; });
  read_rope(r, {}, d);
}

void describe_hy_v3(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8, .default_head_dim = 128}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  d.qk_norm = QkNorm::head;
  read_experts(r, d, {.default_count = 192, .default_chosen = 8, .default_inner = 1536});
  read_first_dense(r, d, 1);
  read_mlp_layer_types(r, d);
  Experts& e = d.experts;
  e.routing = Routing::sigmoid;
  e.correction_bias = e.normalized = true;
  e.sum_offset = 1e-20f;
  e.scale = read_factor(r, "router_scaling_factor", 2.826);
  e.shared_intermediate_size = e.intermediate_size * read_count(r, "num_shared_experts", 1);
  d.unused_layers = read_count(r, "num_nextn_predict_layers", 1);
  e.names.router = "mlp.router.gate", e.names.correction_bias = "mlp.expert_bias";
  e.names.shared = "mlp.shared_mlp.";
  read_rope(r, {.theta = 11158840}, d);
}

// Files have the names of the first code, with queries, keys and values in one matrix.
void describe_sarvam_moe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 4, .default_head_dim = 64});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag(either(r, "use_qkv_bias", "attention_bias"));
  if (r.flag("use_bias")) r.refuse("'use_bias' = true is not covered");
  if (r.flag("use_qk_norm", true)) d.qk_norm = QkNorm::head;
  read_experts(r, d,
               {either(r, "num_experts", "n_routed_experts"), "num_experts_per_tok", "moe_intermediate_size",
                128, 6, 1024});
  read_first_dense(r, d, 1);
  read_sigmoid_routing(r, d, 1, 1, 2.5, {.shared = either(r, "num_shared_experts", "n_shared_experts")});
  d.unused_layers = 0;
  read_rope(r, {.theta = 8000000, .partial = 1}, d);
  d.qkv_layout = QkvLayout::concatenated;
  TensorNames& n = d.names;
  n.embedding = "word_embeddings";
  n.qkv = "attention.query_key_value", n.o = "attention.dense";
  n.q_norm = "attention.query_layernorm", n.k_norm = "attention.key_layernorm";
  d.experts.names.correction_bias = "mlp.gate.expert_bias";
}

void read_exaone4_attention(ConfigReader&, Decoder&);

void describe_exaone_moe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 32}, 1e-5);
  read_experts(r, d, {.default_count = 64, .default_chosen = 8, .default_inner = 1024});
  read_first_dense(r, d, 1);
  read_mlp_layer_types(r, d);
  read_sigmoid_routing(r, d, 1, 1, 2.5, {.shared = "num_shared_experts"});
  d.experts.names.correction_bias = "mlp.e_score_correction_bias";
  d.names.ignored_begins.push_back("mtp.");
  read_exaone4_attention(r, d);
}

}  // namespace invar::checkpoint
