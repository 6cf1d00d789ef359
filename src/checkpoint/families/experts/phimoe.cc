// Phi-3.5-MoE: norms with biases, two experts chosen one after the other.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_phimoe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8}, 1e-5);
  d.norm = Norm::layer;
  d.norm_bias = true;
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.head_bias = r.flag("lm_head_bias");
  read_experts(r, d, {.inner = nullptr, .default_count = 16, .default_chosen = 2});
  Experts& e = d.experts;
  name_as_mixtral(e.names);
  e.routing = Routing::sparsemixer;
  if (e.chosen != 2) r.refuse("'num_experts_per_tok' other than 2 is not covered");
  // A number is half of what scores may differ by, relative to the larger one.
  const auto* noise = r.find("router_jitter_noise");
  e.threshold = noise && *noise == 0 ? 0 : static_cast<float>(2 * r.positive("router_jitter_noise", 0.01));
  d.window = read_window(r, 0);
  for (Layer& layer : d.layers) layer.window = d.window != 0;
  r.find("original_max_position_embeddings");  // of longrope alone
  read_rope(r, {.theta = 1000000, .longrope = true, .scaled = false, .mscale = true}, d);
}

}  // namespace invar::checkpoint
