// OPT: a table of positions that begins at its third row. XGLM: the same with computed positions.
#include <cmath>

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

static void read_fairseq_like(ConfigReader& r, Decoder& d, const SizeKeys& sizes, const char* activation) {
  read_sizes(r, d, sizes);
  read_activation(r, d, "activation_function", activation);
  TensorNames& n = d.names;
  n.positions = "embed_positions";
  n.attention_norm = "self_attn_layer_norm";
  n.mlp_norm = "final_layer_norm";
  n.o = "self_attn.out_proj";
  n.up = "fc1";
  n.down = "fc2";
  d.position_offset = 2;
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = 1e-5f;
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings", true);
}

void describe_xglm(ConfigReader& r, Decoder& d) {
  read_fairseq_like(r, d,
                    {.hidden = "d_model",
                     .inner = "ffn_dim",
                     .layers = "num_layers",
                     .heads = "attention_heads",
                     .kv_heads = nullptr,
                     .head_dim = nullptr},
                    "gelu");
  d.names.final_norm = "layer_norm";
  d.names.ignored.push_back("embed_positions.weights");
  d.sinusoidal_positions = true;
  d.qkv_bias = d.output_bias = d.mlp_bias = true;
  if (r.flag("scale_embedding", true))
    d.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(d.hidden_size)));
  // transformers clears the row of this number, which a position may have.
  if (const json::Value* pad = r.find("pad_token_id"); pad && pad->is_integer() && pad->to_int64() > 1)
    r.refuse("'pad_token_id' above 1 is not covered");
  if (d.hidden_size < 4 || d.hidden_size % 2 != 0) r.refuse("an odd or tiny 'd_model' is not covered");
}

void describe_opt(ConfigReader& r, Decoder& d) {
  read_fairseq_like(r, d, {.inner = "ffn_dim", .kv_heads = nullptr, .head_dim = nullptr}, "relu");
  TensorNames& n = d.names;
  n.prefix = "model.decoder.";
  n.final_norm = "final_layer_norm";
  d.block = r.flag("do_layer_norm_before", true) ? Block::pre : Block::after;
  d.final_norm = d.block == Block::pre && !r.flag("_remove_final_layer_norm");
  d.qkv_bias = d.output_bias = d.mlp_bias = r.flag("enable_bias", true);
  if (!r.flag("layer_norm_elementwise_affine", true))
    r.refuse("'layer_norm_elementwise_affine' = false is not covered");
  n.project_in = "project_in";
  n.project_out = "project_out";
  const int64_t embedding = r.size("word_embed_proj_dim", d.hidden_size);
  d.embedding_size = embedding == d.hidden_size ? 0 : embedding;
}

}  // namespace invar::checkpoint
