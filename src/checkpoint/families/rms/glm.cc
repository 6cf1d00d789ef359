// GLM-4: GLM of transformers is the model of 2024, Glm4 that of 2025 with norms behind, too, and
// glm4v_text the language model of GLM-4.1V and GLM-4.6V-Flash.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

static void read_glm(ConfigReader& r, Decoder& d, int64_t head_dim, double epsilon, double partial) {
  read_llama_like(r, d, {.default_kv_heads = 2, .default_head_dim = head_dim}, epsilon);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("attention_bias", true);
  d.fused_gate_up = d.rope_interleaved = true;
  read_rope(r, {.partial = partial}, d);
}

static void put_norms_behind(Decoder& d) {
  d.block = Block::both;
  d.names.attention_post_norm = "post_self_attn_layernorm";
  d.names.mlp_post_norm = "post_mlp_layernorm";
}

void describe_glm(ConfigReader& r, Decoder& d) {
  read_glm(r, d, 128, 1.5625e-7, 0.5);
}

void describe_glm4(ConfigReader& r, Decoder& d) {
  describe_glm(r, d);
  put_norms_behind(d);
}

void describe_glm4v(ConfigReader& r, Decoder& d) {
  read_glm(r, d, 0, 1e-5, 1);
  put_norms_behind(d);
}

}  // namespace invar::checkpoint
