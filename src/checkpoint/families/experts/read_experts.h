// Reads the keys that families with experts share.
#pragma once

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

// A key of nullptr is not read; the intermediate size is then that of the decoder.
struct ExpertKeys {
  const char *count = "num_experts", *chosen = "num_experts_per_tok", *inner = "moe_intermediate_size";
  int64_t default_count = 0, default_chosen = 0, default_inner = 0;
};
// All layers are sparse. Needs the sizes.
void read_experts(ConfigReader&, Decoder&, const ExpertKeys&);
// The layers from number first_k_dense_replace on are sparse.
void read_first_dense(ConfigReader&, Decoder&, int64_t fallback);
// Every decoder_sparse_step-th layer is sparse, but those of mlp_only_layers.
void read_sparse_step(ConfigReader&, Decoder&);
// n_group and topk_group.
void read_groups(ConfigReader&, Decoder&, int64_t groups, int64_t chosen_groups, const char* key = "n_group");
// The routing of DeepSeek-V3: sigmoid, a bias for the choice alone, groups, shared experts.
struct SigmoidDefaults {
  bool normalized = true;
  const char *shared = "n_shared_experts", *normalized_key = "norm_topk_prob", *groups = "n_group";
};
void read_sigmoid_routing(ConfigReader&, Decoder&, int64_t groups, int64_t chosen_groups, double scale,
                          const SigmoidDefaults& = {});
// mlp_layer_types, where it is there: which layers are sparse.
void read_mlp_layer_types(ConfigReader&, Decoder&);
// The names of Mixtral: block_sparse_moe, w1, w2, w3.
void name_as_mixtral(ExpertNames&);
// A size or 0.
int64_t read_count(ConfigReader&, const char* key, int64_t fallback);

}  // namespace invar::checkpoint
