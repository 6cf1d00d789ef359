// GLM-4.7-Flash: the attention and the routing of DeepSeek-V3.
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {

void describe_glm4_moe_lite(ConfigReader& r, Decoder& d) {
  read_latent(r, d, {768, 512, 192, 64, 256, 20, 1e-5});
  d.tied = r.flag("tie_word_embeddings");
  d.rope_interleaved = r.flag("rope_interleave", true);
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 64, 4, 1536});
  read_sigmoid_routing(r, d, 1, 1, 1.8);
  for (size_t i = 0; i < d.layers.size(); ++i) d.layers[i].sparse = i != 0;
  read_mlp_layer_types(r, d);
  // The original model reads this key, transformers the other one.
  const int64_t dense = read_count(r, "first_k_dense_replace", 1);
  for (size_t i = 0; i < d.layers.size(); ++i)
    if (r.find("first_k_dense_replace") && d.layers[i].sparse != (static_cast<int64_t>(i) >= dense))
      return r.refuse("'first_k_dense_replace' other than 'mlp_layer_types' says is not covered");
}

}  // namespace invar::checkpoint
