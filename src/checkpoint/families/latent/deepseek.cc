// DeepSeek-V2 and V3, and Kimi K2 and Sarvam 105B, which are V3 with other sizes. DeepSeek-V3.2 and
// GLM-5 are V3 as far as their indexer chooses all positions.
#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/latent/read_latent.h"
#include "checkpoint/text_config.h"

namespace invar::checkpoint {
namespace {

// Keys of the original models that transformers does not read: it has the one value alone.
void require_text(ConfigReader& r, const char* key, const char* value) {
  if (const std::string text = r.text(key, value); text != value)
    r.refuse(onnx::quote(key) + " = " + onnx::quote(text) + " is not covered; " + onnx::quote(value) + " is");
}

// Of as many positions as index_topk the indexer chooses all, whatever its scores are, and longer
// sequences are refused (decoder.73).
void read_indexer(ConfigReader& r, Decoder& d) {
  d.max_positions = std::min(d.max_positions, r.size("index_topk", kIndexedPositions));
  if (const json::Value* types = r.find("layer_types"); types && types->is_array())
    for (const json::Value& type : types->items)
      if (type != "indexed_attention")
        r.refuse("'layer_types': " + short_text(type) + " is not covered; indexed_attention is");
  if (!r.flag("rope_interleave", true)) r.refuse("'rope_interleave' = false is not covered");
  r.require_neutral("mlp_bias");
  for (size_t i = 0; i < d.layers.size(); ++i)
    d.names.ignored_begins.push_back(d.names.prefix + d.names.layers + std::to_string(i) +
                                     ".self_attn.indexer.");
}

void describe_indexed(ConfigReader& r, Decoder& d, const LatentDefaults& absent, int64_t groups,
                      int64_t chosen_groups) {
  read_latent(r, d, absent);
  d.tied = r.flag("tie_word_embeddings");
  d.rope_interleaved = true;
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 256, 8, 2048});
  read_first_dense(r, d, 3);
  read_mlp_layer_types(r, d);
  read_sigmoid_routing(r, d, groups, chosen_groups, 2.5);
  require_text(r, "scoring_func", "sigmoid");
  require_text(r, "topk_method", "noaux_tc");
  read_indexer(r, d);
}

}  // namespace

void describe_deepseek_v32(ConfigReader& r, Decoder& d) {
  describe_indexed(r, d, {.kv_heads = 128}, 8, 4);
}

void describe_glm_moe_dsa(ConfigReader& r, Decoder& d) {
  describe_indexed(r, d, {2048, 512, 192, 64, 256, 64, 1e-5}, 1, 1);
}

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
