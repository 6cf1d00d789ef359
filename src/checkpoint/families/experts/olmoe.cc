// OLMoE: norms of whole queries and keys, as OLMo 2, before attention and MLP.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_olmoe(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::projection;
  read_experts(r, d, {.inner = nullptr, .default_count = 64, .default_chosen = 8});
  d.experts.normalized = r.flag("norm_topk_prob");
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
