// OPT: a table of positions that begins at its third row.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_opt(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.inner = "ffn_dim", .kv_heads = nullptr, .head_dim = nullptr});
  read_activation(r, d, "activation_function", "relu");
  TensorNames& n = d.names;
  n.prefix = "model.decoder.";
  n.positions = "embed_positions";
  n.attention_norm = "self_attn_layer_norm";
  n.mlp_norm = n.final_norm = "final_layer_norm";
  n.o = "self_attn.out_proj";
  n.up = "fc1";
  n.down = "fc2";
  d.position_offset = 2;
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = 1e-5f;
  d.block = r.flag("do_layer_norm_before", true) ? Block::pre : Block::after;
  d.final_norm = d.block == Block::pre && !r.flag("_remove_final_layer_norm");
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = d.mlp_bias = r.flag("enable_bias", true);
  if (!r.flag("layer_norm_elementwise_affine", true))
    r.refuse("'layer_norm_elementwise_affine' = false is not covered");
  n.project_in = "project_in";
  n.project_out = "project_out";
  const int64_t embedding = r.size("word_embed_proj_dim", d.hidden_size);
  d.embedding_size = embedding == d.hidden_size ? 0 : embedding;
}

}  // namespace invar::checkpoint
