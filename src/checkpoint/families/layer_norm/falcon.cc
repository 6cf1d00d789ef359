// Falcon, and Falcon-RW with linear biases of scores.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_falcon(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.inner = nullptr, .kv_heads = nullptr, .head_dim = nullptr});
  d.intermediate_size = r.size("ffn_hidden_size", 4 * d.hidden_size);
  read_activation(r, d, "activation", "gelu");
  const bool grouped = r.flag("new_decoder_architecture"), parallel = r.flag("parallel_attn", true);
  const bool two = grouped && r.size("num_ln_in_parallel_attn", 2) == 2;
  if (grouped)
    d.kv_heads = r.size("num_kv_heads", d.heads);
  else if (r.flag("multi_query", true))
    d.kv_heads = 1;
  if (d.heads % d.kv_heads != 0) r.reject("'num_attention_heads' is not a multiple of 'num_kv_heads'");
  if (grouped && !parallel)
    r.refuse("'parallel_attn' = false with 'new_decoder_architecture' is not covered");
  TensorNames& n = d.names;
  n.prefix = "transformer.";
  n.embedding = "word_embeddings";
  n.layers = "h.";
  if (two) {
    n.attention_norm = "ln_attn";
    n.mlp_norm = "ln_mlp";
  }
  n.qkv = "self_attention.query_key_value";
  n.o = "self_attention.dense";
  n.up = "mlp.dense_h_to_4h";
  n.down = "mlp.dense_4h_to_h";
  n.final_norm = "ln_f";
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = read_factor(r, "layer_norm_epsilon", 1e-5);
  d.block = !parallel ? Block::pre : two ? Block::parallel_two : Block::parallel;
  d.qkv_layout = QkvLayout::grouped;
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = d.mlp_bias = r.flag("bias");
  if (r.flag("alibi")) {
    d.alibi_bias_max = 8;
    d.alibi_scale = d.attention_scale;  // biases are added before scores are scaled
  } else {
    read_rope(r, {}, d);
  }
}

}  // namespace invar::checkpoint
