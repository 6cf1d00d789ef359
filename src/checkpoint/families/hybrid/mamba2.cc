// Models with state-space layers of Mamba-2: these alone, and with attention in some layers or
// beside them.
#include <cmath>

#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

namespace {

// What Bamba and Falcon-H1 share: Llama's blocks with names of their own.
void read_bamba_like(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  read_time_step_limit(r, d);
  TensorNames& n = d.names;
  n.mlp_norm = "pre_ff_layernorm", n.final_norm = "final_layernorm";
  n.gate = "feed_forward.gate_proj", n.up = "feed_forward.up_proj", n.down = "feed_forward.down_proj";
}

// Positive numbers -> out; absent: ones.
template <size_t N>
void read_scales(ConfigReader& r, const char* key, std::array<float, N>& out) {
  const json::Value* list = r.find(key);
  if (!list) return;
  bool right = list->is_array() && list->size() == N;
  for (size_t i = 0; right && i < N; ++i) {
    out[i] = list->items[i].is_number() ? static_cast<float>(list->items[i].to_double()) : 0;
    right = std::isfinite(out[i]) && out[i] > 0;
  }
  if (!right) r.reject(onnx::quote(key) + " is not a list of " + std::to_string(N) + " positive numbers");
}

}  // namespace

void describe_mamba2(ConfigReader& r, Decoder& d) {
  read_mixers_alone(r, d, Mixer::state_space, false);
  read_state_space(r, d, r.size("expand", 2) * d.hidden_size,
                   {"num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "use_conv_bias",
                    "use_bias", "use_bias", "hidden_act", 128, 8, 128});
  read_time_step_limit(r, d);
  d.state_space.name = "mixer.";
}

void describe_bamba(ConfigReader& r, Decoder& d) {
  read_bamba_like(r, d);
  read_state_space(r, d, r.size("mamba_expand", 2) * d.hidden_size);
  read_rope(r, {.partial = 0.5}, d);
  for (Layer& layer : d.layers) layer.mixer = Mixer::state_space;
  if (const json::Value* full = r.find("attn_layer_indices"))
    read_attention_layers(r, d, "attn_layer_indices", *full, Mixer::state_space);
}

// Attention and a state-space layer read the same input, and their results are added.
void describe_falcon_h1(ConfigReader& r, Decoder& d) {
  read_bamba_like(r, d);
  const int64_t inner =
      r.is_null("mamba_d_ssm") ? r.size("mamba_expand", 2) * d.hidden_size : r.size("mamba_d_ssm", 1024);
  read_state_space(r, d, inner, {.out_bias = "projectors_bias"});
  for (Layer& layer : d.layers) layer.mixer = Mixer::both;
  read_rope(r, {}, d);
  StateSpace& s = d.state_space;
  s.norm = r.flag("mamba_rms_norm");
  s.norm_before_gate = r.flag("mamba_norm_before_gate", true) && s.norm;
  s.in_scale = read_factor(r, "ssm_in_multiplier", 1), s.out_scale = read_factor(r, "ssm_out_multiplier", 1);
  read_scales(r, "ssm_multipliers", s.scales);
  read_scales(r, "mlp_multipliers", d.mlp_scales);
  d.attention_in_scale = read_factor(r, "attention_in_multiplier", 1);
  d.attention_out_scale = read_factor(r, "attention_out_multiplier", 1);
  d.key_scale = read_factor(r, "key_multiplier", 1);
  d.embedding_scale = read_factor(r, "embedding_multiplier", 1);
  d.logits_scale = read_factor(r, "lm_head_multiplier", 1);
}

}  // namespace invar::checkpoint
