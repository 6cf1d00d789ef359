// Phi 1 to 2: attention and MLP side by side behind one norm, biases everywhere.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_phi(ConfigReader& r, Decoder& d) {
  read_sizes(r, d);
  read_activation(r, d, "hidden_act", "gelu_new");
  d.names.o = "self_attn.dense";
  d.names.up = "mlp.fc1";
  d.names.down = "mlp.fc2";
  d.names.final_norm = "final_layernorm";
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = read_factor(r, "layer_norm_eps", 1e-5);
  d.block = Block::parallel;
  d.gated_mlp = false;
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = d.mlp_bias = d.head_bias = true;
  d.names.q_norm = "self_attn.q_layernorm";
  d.names.k_norm = "self_attn.k_layernorm";
  d.qk_norm_bias = r.flag("qk_layernorm");
  if (d.qk_norm_bias) d.qk_norm = QkNorm::head;
  read_rope(r, {.partial = 0.5}, d);
}

}  // namespace invar::checkpoint
