// GPT-NeoX and Pythia.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_gpt_neox(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.kv_heads = nullptr, .head_dim = nullptr});
  read_activation(r, d, "hidden_act", "gelu");
  TensorNames& n = d.names;
  n.prefix = "gpt_neox.";
  n.embedding = "embed_in";
  n.qkv = "attention.query_key_value";
  n.o = "attention.dense";
  n.up = "mlp.dense_h_to_4h";
  n.down = "mlp.dense_4h_to_h";
  n.final_norm = "final_layer_norm";
  n.head = "embed_out";
  n.ignored = {".rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias"};
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = read_factor(r, "layer_norm_eps", 1e-5);
  d.block = r.flag("use_parallel_residual", true) ? Block::parallel_two : Block::pre;
  d.qkv_layout = QkvLayout::grouped;
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias", true);
  d.mlp_bias = true;
  read_rope(r, {.partial = 0.25, .theta_key = "rotary_emb_base", .partial_key = "rotary_pct"}, d);
}

}  // namespace invar::checkpoint
