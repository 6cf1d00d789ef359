// Qwen 1.5 and 2 (a shared expert behind a gate) and Qwen 3 with experts.
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
