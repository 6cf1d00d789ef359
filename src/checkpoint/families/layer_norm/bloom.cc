// BLOOM: linear biases of scores in the place of positions, a norm behind the embedding.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_bloom(ConfigReader& r, Decoder& d) {
  read_sizes(r, d,
             {.hidden = "n_embed",
              .inner = nullptr,
              .layers = "n_layer",
              .heads = "n_head",
              .kv_heads = nullptr,
              .head_dim = nullptr});
  d.intermediate_size = 4 * d.hidden_size;
  TensorNames& n = d.names;
  n.prefix = "transformer.";
  n.other_places = {{"", n.head}};
  n.embedding = "word_embeddings";
  n.embedding_norm = "word_embeddings_layernorm";
  n.layers = "h.";
  n.qkv = "self_attention.query_key_value";
  n.o = "self_attention.dense";
  n.up = "mlp.dense_h_to_4h";
  n.down = "mlp.dense_4h_to_h";
  n.final_norm = "ln_f";
  d.norm = Norm::layer;
  d.norm_bias = d.qkv_bias = d.output_bias = d.mlp_bias = true;
  d.norm_epsilon = read_factor(r, "layer_norm_epsilon", 1e-5);
  d.qkv_layout = QkvLayout::grouped;
  d.gated_mlp = false;
  d.activation = Activation::gelu_tanh;
  d.alibi_bias_max = 8;
  d.tied = r.flag("tie_word_embeddings", true);
  r.require_neutral("apply_residual_connection_post_layernorm");
  // transformers ignores n_inner.
  if (r.size("n_inner", 4 * d.hidden_size) != 4 * d.hidden_size)
    r.refuse("'n_inner' other than 4 times the hidden size is not covered");
}

}  // namespace invar::checkpoint
