// GLM-4: GLM of transformers is the model of 2024, Glm4 that of 2025 with norms behind, too.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_glm(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 2, .default_head_dim = 128}, 1.5625e-7);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("attention_bias", true);
  d.fused_gate_up = d.rope_interleaved = true;
  read_rope(r, {.partial = 0.5}, d);
}

void describe_glm4(ConfigReader& r, Decoder& d) {
  describe_glm(r, d);
  d.block = Block::both;
  d.names.attention_post_norm = "post_self_attn_layernorm";
  d.names.mlp_post_norm = "post_mlp_layernorm";
}

}  // namespace invar::checkpoint
