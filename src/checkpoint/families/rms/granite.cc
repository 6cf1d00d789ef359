// Granite 3 and 4, the dense models: Llama with four multipliers.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_granite(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  d.embedding_scale = read_factor(r, "embedding_multiplier", 1);
  d.residual_scale = read_factor(r, "residual_multiplier", 1);
  d.attention_scale = read_factor(r, "attention_multiplier", 1);
  d.logits_divisor = read_factor(r, "logits_scaling", 1);
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
