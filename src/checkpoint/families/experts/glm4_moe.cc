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
  read_sigmoid_routing(r, d, 1, 1, 1);
  read_rope(r, {.partial = 0.5}, d);
}

}  // namespace invar::checkpoint
