// Qwen 1.5 and 2 (a shared expert behind a gate) and Qwen 3 with experts; Mellum 2 of JetBrains,
// which has windows.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_qwen2_moe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 16});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("qkv_bias", true);
  read_experts(r, d, {.default_count = 60, .default_chosen = 4, .default_inner = 1408});
  read_sparse_step(r, d);
  d.experts.names.shared = "mlp.shared_expert.";
  d.experts.shared_intermediate_size = r.size("shared_expert_intermediate_size", 5632);
  d.experts.shared_gate = true;
  d.experts.normalized = r.flag("norm_topk_prob");
  const int64_t window = read_used_window(r, 4096), layers = read_count(r, "max_window_layers", 28);
  read_layer_types(r, d, window, [&](const Decoder&, size_t i) {
    return window != 0 && i % 2 == 0 && static_cast<int64_t>(i) < layers;
  });
  read_rope(r, {}, d);
}

void describe_mellum(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 4, .default_head_dim = 128});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  read_experts(r, d, {.default_count = 64, .default_chosen = 8, .default_inner = 896});
  read_mlp_layer_types(r, d);
  d.experts.normalized = r.flag("norm_topk_prob", true);
  read_layer_types(r, d, read_window(r, 1024), [](const Decoder&, size_t) { return false; });
  read_ropes_of_layers(r, {.theta = 500000, .theta_key = nullptr}, {.theta = 10000, .theta_key = nullptr}, d);
  ignore_heads_for_more_tokens(r, d);
  for (const char* key : {"mtp_layer_types", "mtp_mlp_layer_types"}) r.find(key);
}

void describe_qwen3_moe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 4});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  read_experts(r, d, {.default_count = 128, .default_chosen = 8, .default_inner = 768});
  read_sparse_step(r, d);
  d.experts.names.gate_up_stack = "mlp.experts.gate_up_proj";  // of Qwen3-VL
  d.experts.names.down_stack = "mlp.experts.down_proj";
  d.experts.normalized = r.flag("norm_topk_prob");
  d.window = read_used_window(r, 4096);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
