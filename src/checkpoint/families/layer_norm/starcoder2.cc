// StarCoder 2.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_starcoder2(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.default_kv_heads = 2});
  read_activation(r, d, "hidden_act", "gelu_pytorch_tanh");
  d.names.up = "mlp.c_fc";
  d.names.down = "mlp.c_proj";
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = read_factor(r, "norm_epsilon", 1e-5);
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = d.mlp_bias = r.flag("use_bias", true);
  d.window = read_window(r, 0);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
