// Gemma 1 to 3, the text models: weights of norms around 0, a scaled embedding, one table of the
// vocabulary.
#include <cmath>

#include "checkpoint/families/gemma/read_gemma.h"

namespace invar::checkpoint {
namespace {

void read_gemma(ConfigReader& r, Decoder& d, const char* activation, const SizeKeys& keys) {
  read_sizes(r, d, keys);
  read_activation(r, d, activation, "gelu_pytorch_tanh");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-6);
  d.norm_offset = true;
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(d.hidden_size)));
}

void read_pre_attention_scale(ConfigReader& r, Decoder& d) {
  d.attention_scale = static_cast<float>(1.0 / std::sqrt(r.positive("query_pre_attn_scalar", 256)));
}

}  // namespace

// Gemma 2 and later.
void read_second_gemma(ConfigReader& r, Decoder& d, const SizeKeys& keys) {
  read_gemma(r, d, "hidden_activation", keys);
  d.block = Block::both;
  d.names.attention_post_norm = "post_attention_layernorm";
  d.names.mlp_norm = "pre_feedforward_layernorm";
  d.names.mlp_post_norm = "post_feedforward_layernorm";
}

void describe_gemma(ConfigReader& r, Decoder& d) {
  read_gemma(r, d, "hidden_act", {.default_kv_heads = 16, .default_head_dim = 256});
  d.activation = d.activation == Activation::gelu ? Activation::gelu_tanh : d.activation;
  read_rope(r, {}, d);
}

void describe_gemma2(ConfigReader& r, Decoder& d) {
  read_second_gemma(r, d);
  read_pre_attention_scale(r, d);
  d.attention_softcap = read_softcap(r, "attn_logit_softcapping", 50);
  d.logits_softcap = read_softcap(r, "final_logit_softcapping", 30);
  read_layer_types(r, d, read_window(r, 4096), every(2));
  read_rope(r, {}, d);
}

void describe_vaultgemma(ConfigReader& r, Decoder& d) {
  describe_gemma2(r, d);
  d.block = Block::pre;
}

void describe_gemma3(ConfigReader& r, Decoder& d) {
  // attn_logit_softcapping is refused: the model of transformers ignores it.
  read_second_gemma(r, d);
  read_pre_attention_scale(r, d);
  d.logits_softcap = read_softcap(r, "final_logit_softcapping", 0);
  d.qk_norm = QkNorm::head;
  read_layer_types(r, d, read_window(r, 4096), every(r.size("sliding_window_pattern", 6)));
  read_ropes_of_layers(r, {.theta = 1000000}, {.theta = 10000, .theta_key = "rope_local_base_freq"}, d);
}

}  // namespace invar::checkpoint
