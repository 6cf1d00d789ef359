// OLMoE: norms of whole queries and keys, as OLMo 2, before attention and MLP. FlexOlmo: behind.
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

void describe_flex_olmo(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::projection;
  d.block = Block::post;
  d.names.attention_post_norm = "post_attention_layernorm";
  d.names.mlp_post_norm = "post_feedforward_layernorm";
  read_experts(r, d, {.inner = nullptr, .default_count = 7, .default_chosen = 5});
  d.experts.normalized = r.flag("norm_topk_prob");
  read_rope(r, {.theta = 500000}, d);
}

}  // namespace invar::checkpoint
