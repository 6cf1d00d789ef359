// OLMo hybrid: layers of the gated delta rule with norms in front, of attention as in OLMo 3.
#include <algorithm>

#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

void describe_olmo_hybrid(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.block = Block::post;
  d.qk_norm = QkNorm::projection;
  TensorNames& n = d.names;
  n.attention_norm = "attention_layer_norm", n.mlp_norm = "feedforward_layer_norm";
  n.attention_post_norm = "post_attention_layernorm", n.mlp_post_norm = "post_feedforward_layernorm";
  const size_t layers = d.layers.size();  // the last one attends where there are fewer than four
  read_mixers(r, d, [&](size_t i) { return i % 4 != 3 && !(layers < 4 && i + 1 == layers); });
  GatedDelta& g = d.delta;
  g.layout = DeltaLayout::separate;
  g.names.gate = "g_proj", g.names.decay = "a_proj", g.names.rate = "b_proj";
  g.names.norm = "o_norm", g.names.out = "o_proj";
  g.key_heads = r.size("linear_num_key_heads", d.heads);
  g.value_heads = r.size("linear_num_value_heads", d.heads);
  g.key_dim = r.size("linear_key_head_dim", std::max<int64_t>(1, 3 * d.hidden_size / (4 * g.key_heads)));
  g.value_dim = r.size("linear_value_head_dim", 2 * g.key_dim);
  g.norm_epsilon = 1e-5f;
  g.doubled_rate = r.flag("linear_allow_neg_eigval", true);
  read_delta(r, d);
  // A theta of null says that there is no rotary embedding, as the released models do.
  const auto* rope = r.find("rope_parameters");
  const auto theta = rope && rope->is_object() ? rope->find("rope_theta") : nullptr;
  if (!(theta ? theta->is_null() : r.is_null("rope_theta"))) return read_rope(r, {}, d);
  if (r.find("rope_scaling")) r.refuse("'rope_scaling' without 'rope_theta' is not covered");
}

}  // namespace invar::checkpoint
