// StableLM 2.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

void describe_stablelm(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.head_dim = nullptr, .default_kv_heads = 32});
  read_activation(r, d, "hidden_act", "silu");
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.norm_epsilon = read_factor(r, "layer_norm_eps", 1e-5);
  d.block = r.flag("use_parallel_residual") ? Block::parallel : Block::pre;
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("use_qkv_bias");
  d.names.q_norm = "self_attn.q_layernorm";
  d.names.k_norm = "self_attn.k_layernorm";
  d.names.norm_of_each_head = true;
  if (r.flag("qk_layernorm")) d.qk_norm = QkNorm::heads;
  read_rope(r, {.partial = 0.25}, d);
}

}  // namespace invar::checkpoint
