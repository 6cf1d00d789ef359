// GLM-4.5 to GLM-4.7: sigmoid routing with a bias for the choice, as DeepSeek-V3.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_glm4_moe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = r.flag("attention_bias");
  if (r.flag("use_qk_norm")) d.qk_norm = QkNorm::head;
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 128, 8, 1408});
  read_first_dense(r, d, 1);
  Experts& e = d.experts;
  e.routing = Routing::sigmoid;
  e.correction_bias = true;
  e.group_score = GroupScore::sum_of_two;
  read_groups(r, d, 1, 1);
  e.normalized = r.flag("norm_topk_prob", true);
  e.sum_offset = e.normalized ? 1e-20f : 0;
  e.scale = read_factor(r, "routed_scaling_factor", 1);
  e.shared_intermediate_size = e.intermediate_size * read_count(r, "n_shared_experts", 1);
  d.unused_layers = read_count(r, "num_nextn_predict_layers", 1);
  read_rope(r, {.partial = 0.5}, d);
}

}  // namespace invar::checkpoint
