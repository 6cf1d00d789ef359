// ERNIE 4.5 with experts: a bias for the choice, shared experts, the first layer dense.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_ernie4_5_moe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 4}, 1e-5);
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = d.mlp_bias = d.head_bias = r.flag("use_bias");
  d.rope_interleaved = true;
  read_experts(r, d, {"moe_num_experts", "moe_k", "moe_intermediate_size", 64, 6, 1536});
  Experts& e = d.experts;
  e.names.correction_bias = "mlp.moe_statics.e_score_correction_bias";
  e.names.correction_bias_is_row = true;
  e.correction_bias = e.normalized = true;
  e.sum_minimum = read_factor(r, "moe_norm_min", 1e-12);
  e.shared_intermediate_size = e.intermediate_size * read_count(r, "moe_num_shared_experts", 2);
  const int64_t interval = r.size("moe_layer_interval", 1), first = read_count(r, "moe_layer_start_index", 1);
  const auto* end = r.find("moe_layer_end_index");
  const int64_t last = !end || *end == -1 ? static_cast<int64_t>(d.layers.size()) - 1
                                          : read_count(r, "moe_layer_end_index", 0);
  for (int64_t i = 0; i < static_cast<int64_t>(d.layers.size()); ++i)
    d.layers[static_cast<size_t>(i)].sparse = (i + 1) % interval == 0 && i >= first && i <= last;
  read_rope(r, {.theta = 500000}, d);
}

}  // namespace invar::checkpoint
