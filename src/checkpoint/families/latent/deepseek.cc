// DeepSeek-V2 and V3, and Kimi K2 and Sarvam 105B, which are V3 with other sizes.
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {
namespace {

// Keys of the original models that transformers does not read: it has the one value alone.
void require_text(ConfigReader& r, const char* key, const char* value) {
  if (const std::string text = r.text(key, value); text != value)
    r.refuse(onnx::quote(key) + " = " + onnx::quote(text) + " is not covered; " + onnx::quote(value) + " is");
}

}  // namespace

void describe_deepseek_v2(ConfigReader& r, Decoder& d) {
  read_latent(r, d);
  d.tied = r.flag("tie_word_embeddings");
  d.rope_interleaved = true;
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 64, 0, 1407});
  read_first_dense(r, d, 0);
  Experts& e = d.experts;
  if (r.text("topk_method", "greedy") == "group_limited_greedy")
    read_groups(r, d, 0, 0);
  else
    require_text(r, "topk_method", "greedy");
  require_text(r, "scoring_func", "softmax");
  for (const char* key : {"norm_topk_prob", "mlp_bias"}) r.require_neutral(key);
  e.scale = read_factor(r, "routed_scaling_factor", 1);
  e.shared_intermediate_size = e.intermediate_size * read_count(r, "n_shared_experts", 2);
}

void describe_deepseek_v3(ConfigReader& r, Decoder& d) {
  read_latent(r, d, {.kv_heads = 128});
  d.tied = r.flag("tie_word_embeddings");
  d.rope_interleaved = r.flag("rope_interleave", true);
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 256, 8, 2048});
  read_first_dense(r, d, 3);
  read_sigmoid_routing(r, d, 8, 4, 2.5);
  require_text(r, "scoring_func", "sigmoid");
  require_text(r, "topk_method", "noaux_tc");
}

void describe_sarvam_mla(ConfigReader& r, Decoder& d) {
  read_latent(r, d, {.q_lora_rank = 0, .deepseek_yarn = true});
  d.tied = r.flag("tie_word_embeddings");
  d.rope_interleaved = r.flag("rope_interleave", true);
  read_experts(r, d,
               {either(r, "num_experts", "n_routed_experts"), "num_experts_per_tok", "moe_intermediate_size",
                128, 8, 2048});
  read_first_dense(r, d, 1);
  read_sigmoid_routing(r, d, 1, 1, 2.5, {.shared = either(r, "num_shared_experts", "n_shared_experts")});
}

}  // namespace invar::checkpoint
