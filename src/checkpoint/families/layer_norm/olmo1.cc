// OLMo 1: norms without weights, limits of queries, keys and values.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_olmo(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.head_dim = nullptr});
  read_activation(r, d, "hidden_act", "silu");
  d.norm = Norm::layer;
  d.norm_weight = false;
  d.norm_epsilon = 1e-5f;
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qkv_clip = static_cast<float>(r.optional("clip_qkv"));
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
