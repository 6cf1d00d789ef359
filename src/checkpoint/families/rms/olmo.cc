// OLMo 2 and 3: norms behind attention and MLP, and of whole queries and keys.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

namespace {

void read_olmo(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.block = Block::post;
  d.names.attention_post_norm = "post_attention_layernorm";
  d.names.mlp_post_norm = "post_feedforward_layernorm";
  d.qk_norm = QkNorm::projection;
}

}  // namespace

void describe_olmo2(ConfigReader& r, Decoder& d) {
  read_olmo(r, d);
  read_rope(r, {}, d);
}

void describe_olmo3(ConfigReader& r, Decoder& d) {
  read_olmo(r, d);
  read_layer_types(r, d, read_window(r, 4096), every(4));
  read_ropes_of_layers(r, {.theta = 500000}, {.theta = 500000, .theta_key = nullptr}, d);
}

}  // namespace invar::checkpoint
