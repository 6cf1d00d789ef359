// RecurrentGemma (Griffin): two recurrent layers for each with attention to a window.
#include <cmath>

#include "checkpoint/families/family.h"
#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

// sqrt(size), which transformers rounds to bfloat16, to even where two are equally near.
static float rounded_root(int64_t size) {
  int exponent = 0;
  const double part = std::frexp(std::sqrt(static_cast<double>(size)), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(part, 8)), exponent - 8));
}

void describe_recurrent_gemma(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.head_dim = nullptr});
  if (d.intermediate_size % 2 != 0) r.reject("'intermediate_size' is odd: the MLP has half of it");
  d.intermediate_size /= 2;
  read_activation(r, d, "hidden_activation", "gelu_pytorch_tanh");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-6);
  d.norm_offset = true;
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = r.flag("attention_bias");
  d.output_bias = d.mlp_bias = true;
  d.embedding_scale = rounded_root(d.hidden_size);
  d.logits_softcap = read_factor(r, "logits_soft_cap", 30);
  d.window = r.size(either(r, "attention_window_size", "sliding_window"), 2048);
  d.rglru = {.channels = r.size("lru_width", d.hidden_size), .blocks = d.heads};
  d.rglru.width = read_width(r, "conv1d_width", 4);
  if (d.rglru.channels % d.heads != 0) r.reject("'lru_width' is not a multiple of 'num_attention_heads'");
  const json::Value* given = r.find("block_types");
  const json::Value types = given ? *given : json::list({"recurrent", "recurrent", "attention"});
  if (!types.is_array() || types.size() == 0) return r.reject("'block_types' is not a list of types");
  json::Value repeated = json::list(std::vector<json::Value>());
  for (size_t i = 0; i < d.layers.size(); ++i) repeated.items.push_back(types.items[i % types.size()]);
  read_mixers(r, d, "block_types", repeated, {{"recurrent", Mixer::rglru}, {"attention", Mixer::attention}});
  for (Layer& layer : d.layers) layer.window = layer.mixer == Mixer::attention;
  read_rope(r, {.partial = 0.5}, d);
  TensorNames& n = d.names;
  n.attention_norm = "temporal_pre_norm", n.mlp_norm = "channel_pre_norm", n.final_norm = "final_norm";
  n.q = "temporal_block.q_proj", n.k = "temporal_block.k_proj", n.v = "temporal_block.v_proj";
  n.o = "temporal_block.o_proj";
  n.gate = "mlp_block.gate_proj", n.up = "mlp_block.up_proj", n.down = "mlp_block.down_proj";
}

}  // namespace invar::checkpoint
