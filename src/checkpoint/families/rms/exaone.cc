// EXAONE 3 and 3.5, which are Llama under other names, and EXAONE 4.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_exaone(ConfigReader& r, Decoder& d) {
  const auto one_of = [&](const char* key, const char* second) {
    const auto *value = r.find(key), *other = r.find(second);
    if (value && other && *value != *other)
      r.reject(onnx::quote(key) + " and " + onnx::quote(second) + " are the same key and disagree");
    return value ? key : second;
  };
  read_sizes(r, d, {.layers = one_of("num_layers", "num_hidden_layers"), .default_kv_heads = 8});
  read_activation(r, d, one_of("activation_function", "hidden_act"), "silu");
  d.norm_epsilon = read_factor(r, one_of("layer_norm_epsilon", "rms_norm_eps"), 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  TensorNames& n = d.names;
  n.prefix = "transformer.", n.layers = "h.", n.embedding = "wte";
  n.attention_norm = "ln_1", n.mlp_norm = "ln_2", n.final_norm = "ln_f";
  n.q = "attn.attention.q_proj", n.k = "attn.attention.k_proj", n.v = "attn.attention.v_proj";
  n.o = "attn.attention.out_proj";
  n.gate = "mlp.c_fc_0", n.up = "mlp.c_fc_1", n.down = "mlp.c_proj";
  read_rope(r, {.theta = 500000}, d);
}

// Norms of queries and keys; where some layers have windows the others do not rotate.
void read_exaone4_attention(ConfigReader& r, Decoder& d) {
  d.tied = r.flag("tie_word_embeddings");
  d.qk_norm = QkNorm::head;
  const int64_t window = read_window(r, 4096);
  const auto* pattern = r.find("sliding_window_pattern");
  if (pattern && pattern->is_string() && !r.find("layer_types"))
    return r.refuse("'sliding_window_pattern' of letters without 'layer_types' is not covered");
  const bool counted = pattern && !pattern->is_string() && *pattern != 0;
  const auto in_window = every(counted ? r.size("sliding_window_pattern", 0) : 4);
  read_layer_types(r, d, window, [&](const Decoder&, size_t i) { return window != 0 && in_window(d, i); });
  for (Layer& layer : d.layers) layer.rope = window == 0 || layer.window ? 0 : -1;
  read_rope(r, {}, d);
}

void describe_exaone4(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 32}, 1e-5);
  d.block = Block::post;
  d.names.attention_post_norm = "post_attention_layernorm";
  d.names.mlp_post_norm = "post_feedforward_layernorm";
  ignore_heads_for_more_tokens(r, d);
  read_exaone4_attention(r, d);
}

}  // namespace invar::checkpoint
