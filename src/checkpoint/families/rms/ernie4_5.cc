// ERNIE 4.5, the dense models.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_ernie4_5(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 2, .default_head_dim = r.is_null("head_dim") ? 0 : 128}, 1e-5);
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = d.mlp_bias = r.flag("use_bias");
  d.rope_interleaved = true;
  read_rope(r, {.theta = 500000}, d);
}

}  // namespace invar::checkpoint
