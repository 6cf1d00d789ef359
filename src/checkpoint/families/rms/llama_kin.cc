// Families that are Llama but for a switch or two: Seed-OSS, Arcee, Helium, InternLM 2 and 3,
// IQuest-Coder, Code World Model, Apertus, nanochat.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {
namespace {

void read_kin(ConfigReader& r, Decoder& d, int64_t kv_heads, int64_t head_dim, double epsilon) {
  read_llama_like(r, d,
                  {.default_kv_heads = kv_heads, .default_head_dim = r.is_null("head_dim") ? 0 : head_dim},
                  epsilon);
  d.tied = r.flag("tie_word_embeddings");
  d.mlp_bias = r.flag("mlp_bias");
}

}  // namespace

void describe_seed_oss(ConfigReader& r, Decoder& d) {
  read_kin(r, d, 8, 128, 1e-6);
  d.qkv_bias = r.flag("attention_bias", true);
  d.output_bias = r.flag("attention_out_bias");
  read_rope(r, {}, d);
}

void describe_arcee(ConfigReader& r, Decoder& d) {
  read_kin(r, d, 0, 0, 1e-5);
  read_activation(r, d, "hidden_act", "relu2");
  d.gated_mlp = false;
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  read_rope(r, {}, d);
}

void describe_helium(ConfigReader& r, Decoder& d) {
  read_kin(r, d, 20, 128, 1e-8);
  d.qkv_bias = r.flag("attention_bias");
  d.rope_interleaved = true;
  read_rope(r, {.theta = 100000}, d);
}

// transformers has no class of InternLM 2.
void describe_internlm2(ConfigReader& r, Decoder& d) {
  read_kin(r, d, 0, 0, 1e-6);
  d.qkv_bias = d.output_bias = r.flag("bias", true);
  d.qkv_layout = QkvLayout::grouped;
  r.find("auto_map");
  read_rope(r, {}, d);
  TensorNames& n = d.names;
  n.embedding = "tok_embeddings", n.head = "output";
  n.attention_norm = "attention_norm", n.mlp_norm = "ffn_norm";
  n.qkv = "attention.wqkv", n.o = "attention.wo";
  n.gate = "feed_forward.w1", n.up = "feed_forward.w3", n.down = "feed_forward.w2";
}

// The files have the keys of the original code, qkv_bias and bias. transformers has one for both.
void describe_internlm3(ConfigReader& r, Decoder& d) {
  read_kin(r, d, 2, 128, 1e-5);
  d.qkv_bias = r.flag("qkv_bias") || r.flag("attention_bias");
  d.mlp_bias = d.output_bias = r.flag("bias") || d.mlp_bias;
  if (d.qkv_bias != d.mlp_bias) r.refuse("'qkv_bias' other than 'bias' is not covered");
  read_rope(r, {}, d);
}

void describe_iquestcoder(ConfigReader& r, Decoder& d) {
  read_kin(r, d, 8, 128, 1e-5);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  read_rope(r, {}, d);
}

void describe_cwm(ConfigReader& r, Decoder& d) {
  read_kin(r, d, 8, 128, 1e-5);
  read_layer_types(r, d, read_window(r, 8192),
                   [](const Decoder& decoder, size_t i) { return decoder.window != 0 && i % 4 != 0; });
  require_rope_object(r, d);
  read_rope(r, {.theta = 1000000}, d);
}

void describe_apertus(ConfigReader& r, Decoder& d) {
  read_sizes(r, d);
  read_activation(r, d, "hidden_act", "xielu");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  d.gated_mlp = false;
  d.names.attention_norm = "attention_layernorm";
  d.names.mlp_norm = "feedforward_layernorm";
  require_rope_object(r, d);
  read_rope(r, {.theta = 12000000}, d);
}

void describe_nanochat(ConfigReader& r, Decoder& d) {
  read_sizes(r, d);
  read_activation(r, d, "hidden_act", "relu2");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-6);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.norm_weight = d.gated_mlp = false;
  d.names.embedding_norm = "embedding_norm";  // without weight, so without tensor
  d.names.up = "mlp.fc1", d.names.down = "mlp.fc2";
  d.qk_norm = QkNorm::head;
  d.qk_norm_after_rope = d.rope_reversed = true;
  d.logits_softcap = read_softcap(r, "final_logit_softcapping", 15);
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
