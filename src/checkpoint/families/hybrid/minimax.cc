// MiniMax-Text-01 and M1: lightning attention in most layers, the experts of Mixtral, and norms
// that go on themselves.
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

void describe_minimax(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.block = Block::normed;
  read_experts(r, d, {"num_local_experts", "num_experts_per_tok", nullptr, 8, 2});
  d.experts.normalized = true;
  name_as_mixtral(d.experts.names);
  const char* const keys[] = {"full_attn_alpha_factor",  "full_attn_beta_factor", "linear_attn_alpha_factor",
                              "linear_attn_beta_factor", "mlp_alpha_factor",      "mlp_beta_factor"};
  for (size_t i = 0; i < d.normed_scales.size(); ++i) d.normed_scales[i] = read_factor(r, keys[i], 1);
  if (const json::Value* types = r.find("layer_types"))
    read_mixers(r, d, "layer_types", *types,
                {{"full_attention", Mixer::attention}, {"linear_attention", Mixer::lightning}});
  else
    for (size_t i = 0; i < d.layers.size(); ++i)
      d.layers[i].mixer = i % 2 == 0 ? Mixer::attention : Mixer::lightning;
  d.window = read_window(r, 0);
  for (Layer& layer : d.layers) layer.window = d.window != 0 && layer.mixer == Mixer::attention;
  read_rope(r, {.theta = 1000000}, d);
  // Tables that follow from the config.
  for (const char* table : {"slope_rate", "query_decay", "key_decay", "diagonal_decay"})
    d.names.ignored.push_back(std::string(".self_attn.") + table);
}

}  // namespace invar::checkpoint
