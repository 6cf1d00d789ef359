// deepseek2: DeepSeek-V2 and V3, Kimi K2, GLM-4.7-Flash and Youtu (spec/weights.md weights.12).
#include "checkpoint/gguf/gguf_keys.h"

namespace invar::checkpoint {
namespace {

using json::Value;

// expert_gating_func
constexpr uint64_t kSoftmax = 1, kSigmoid = 2;
constexpr int64_t kGlmVocabulary = 154880;

void read_latent_experts(GgufKeys& keys, bool sigmoid, Value& config) {
  const uint64_t groups = keys.size("expert_group_count"), chosen = keys.size("expert_group_used_count");
  const GgufValue* normalized = keys.find("expert_weights_norm");
  config["n_routed_experts"] = keys.size("expert_count");
  config["num_experts_per_tok"] = keys.size("expert_used_count", true);
  config["moe_intermediate_size"] = keys.size("expert_feed_forward_length", true);
  config["n_shared_experts"] = keys.size("expert_shared_count", true);
  config["routed_scaling_factor"] = keys.number("expert_weights_scale", 1);
  config["norm_topk_prob"] = normalized && normalized->flag() == true;
  config["first_k_dense_replace"] = keys.size("leading_dense_block_count");
  const bool grouped = groups > 1;
  if (grouped || sigmoid) {
    config["n_group"] = grouped ? groups : 1;
    config["topk_group"] = grouped ? chosen : 1;
  }
  config["scoring_func"] = sigmoid ? "sigmoid" : "softmax";
  config["topk_method"] = sigmoid ? "noaux_tc" : grouped ? "group_limited_greedy" : "greedy";
  if (sigmoid) config["num_nextn_predict_layers"] = 0;
}

}  // namespace

GgufArchitecture latent_family(GgufKeys& keys) {
  if (keys.size("expert_count") == 0) return {"deepseek2", "youtu", "YoutuForCausalLM"};
  uint64_t gating = keys.size("expert_gating_func");
  // The key is younger than these files: llama.cpp knows GLM by its vocabulary, too.
  const auto table = keys.file().tensors.find(std::string_view("token_embd.weight"));
  const bool glm = table != keys.file().tensors.end() && table->second.shape[0] == kGlmVocabulary;
  if (gating == 0) gating = glm ? kSigmoid : kSoftmax;
  if (gating != kSoftmax && gating != kSigmoid)
    keys.refuse("expert_gating_func", "= " + std::to_string(gating) + " is not covered");
  if (gating == kSigmoid) return {"deepseek2", "deepseek_v3", "DeepseekV3ForCausalLM"};
  return {"deepseek2", "deepseek_v2", "DeepseekV2ForCausalLM"};
}

void read_latent_keys(GgufKeys& keys, std::string_view model_type, Value& config) {
  const uint64_t heads = config.get("num_attention_heads").to_uint64(),
                 rank = keys.size("attention.kv_lora_rank", true),
                 queries = keys.size("attention.q_lora_rank"),
                 turned = keys.size("rope.dimension_count", true);
  // Files whose keys and values of all heads are made at once have the sizes of heads under other
  // keys, and one head of the short vector's size.
  const uint64_t key = keys.size("attention.key_length", true),
                 value = keys.size("attention.value_length", true),
                 shared = keys.size("attention.head_count_kv", true);
  const bool split = keys.find("attention.key_length_mla") != nullptr;
  const uint64_t whole = split ? keys.size("attention.key_length_mla") : key,
                 values = split ? keys.size("attention.value_length_mla", true) : value;
  if (split ? key != rank + turned || value != rank || shared != 1 : shared != heads)
    keys.fail(bad_input(keys.file().path + ": the keys about heads of " + onnx::quote("deepseek2") +
                        " do not fit one another"));
  if (whole <= turned || values == 0)
    keys.fail(bad_input(keys.file().path + ": a head of " + std::to_string(whole) +
                        " elements does not hold the " + std::to_string(turned) + " that are rotated"));
  config.erase("head_dim");
  config["num_key_value_heads"] = heads;
  config["kv_lora_rank"] = rank;
  config["q_lora_rank"] = queries ? Value(queries) : Value();
  config["qk_nope_head_dim"] = whole - turned;
  config["qk_rope_head_dim"] = turned;
  config["v_head_dim"] = values;
  const uint64_t drafting = keys.size("nextn_predict_layers");
  config["num_hidden_layers"] = config.get("num_hidden_layers").to_uint64() - drafting;
  if (model_type != "youtu") return read_latent_experts(keys, model_type == "deepseek_v3", config);
  // llama.cpp wants these keys of a model without experts, too.
  for (const char* unused : {"expert_feed_forward_length", "expert_shared_count", "leading_dense_block_count",
                             "expert_weights_scale", "expert_weights_norm"})
    keys.find(unused);
}

}  // namespace invar::checkpoint
