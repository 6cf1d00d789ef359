// Command R and Command R7B: attention and MLP side by side behind one norm.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

namespace {

void read_cohere(ConfigReader& r, Decoder& d, const SizeKeys& keys) {
  read_sizes(r, d, keys);
  read_activation(r, d, "hidden_act", "silu");
  d.norm = Norm::layer;
  d.norm_epsilon = read_factor(r, "layer_norm_eps", 1e-5);
  d.block = Block::parallel;
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.rope_interleaved = true;
  d.logits_scale = read_factor(r, "logit_scale", 0.0625);
}

}  // namespace

void describe_cohere(ConfigReader& r, Decoder& d) {
  read_cohere(r, d, {});
  if (r.flag("use_qk_norm")) d.qk_norm = QkNorm::heads;
  read_rope(r, {.theta = 500000}, d);
}

void describe_cohere2(ConfigReader& r, Decoder& d) {
  read_cohere(r, d, {.head_dim = nullptr});
  read_layer_types(r, d, read_window(r, 4096), every(r.size("sliding_window_pattern", 4)));
  for (Layer& layer : d.layers) layer.rope = layer.window ? 0 : -1;
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
