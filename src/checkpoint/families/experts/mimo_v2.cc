// MiMo-V2-Flash of Xiaomi: more heads of keys and sinks in windowed layers, values smaller than
// keys, and the experts of DeepSeek-V3 without a shared one.
#include "checkpoint/architecture.h"
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_mimo_v2_flash(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 4, .default_head_dim = 192}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("attention_bias");
  d.v_head_dim = r.size("v_head_dim", 128);
  d.value_scale = r.is_null("attention_value_scale") ? 1 : read_factor(r, "attention_value_scale", 0.707);
  d.attention_sinks = d.attention_sinks_of_windows = true;
  // The key of the first code does not count the query's own position.
  const int64_t window = r.find("sliding_window_size") ? r.size("sliding_window_size", 0) + 1 : 0;
  const int64_t named = read_window(r, 129);
  read_layer_types(r, d, window ? window : named,
                   [](const Decoder&, size_t i) { return i != 0 && (i + 1) % 6 != 0; });
  d.names.sinks = "self_attn.attention_sink_bias";
  for (Layer& layer : d.layers) layer.kv_heads = layer.window ? 2 * d.kv_heads : 0;
  read_ropes_of_layers(r, {.theta = 5000000, .partial = 0.334, .theta_key = nullptr, .partial_key = nullptr},
                       {.theta = 10000, .partial = 0.334, .theta_key = nullptr, .partial_key = nullptr}, d);
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 256, 8, 2048});
  if (r.status()) d.layers[0].sparse = false;
  read_mlp_layer_types(r, d);
  read_sigmoid_routing(r, d, 1, 1, 1);
  d.experts.shared_intermediate_size = 0;
  // Keys of the first code, which transformers does not read: the layers say the same.
  for (const char* key : {"moe_layer_freq", "attention_chunk_size"}) r.find(key);
  d.unused_layers = 0;
  d.names.ignored_begins.push_back("model.mtp.");
}

}  // namespace invar::checkpoint
