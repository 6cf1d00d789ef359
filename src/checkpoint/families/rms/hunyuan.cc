// Hunyuan, the dense models: norms of queries and keys behind their rotation.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_hunyuan_dense(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {}, 1e-5);
  d.names.q_norm = "self_attn.query_layernorm";
  d.names.k_norm = "self_attn.key_layernorm";
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  d.qk_norm_after_rope = true;
  read_rope(r, {.alpha = true}, d);
}

}  // namespace invar::checkpoint
