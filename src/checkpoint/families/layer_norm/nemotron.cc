// Nemotron 4 and Minitron: weights of norms around 0, squared ReLU. Jais 2: biases everywhere.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_nemotron(ConfigReader& r, Decoder& d) {
  read_sizes(r, d);
  read_activation(r, d, "hidden_act", "relu2");
  d.norm = Norm::layer;
  d.norm_bias = d.norm_offset = true;
  d.norm_epsilon = read_factor(r, "norm_eps", 1e-5);
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  read_rope(r, {.partial = 0.5}, d);
}

void describe_jais2(ConfigReader& r, Decoder& d) {
  read_sizes(r, d);
  read_activation(r, d, "hidden_act", "relu2");
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = read_factor(r, "layer_norm_eps", 1e-5);
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias", true);
  d.mlp_bias = r.flag("mlp_bias", true);
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
