// Qwen3-Next, Qwen 3.5 and Qwen 3.5 with experts: three layers of the gated delta rule for one of
// attention, whose results have a gate.
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {
namespace {

void read_qwen_hybrid(ConfigReader& r, Decoder& d, const SizeKeys& sizes) {
  read_llama_like(r, d, sizes);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  d.norm_offset = true;
  d.attention_gate = true;
  if (!r.flag("attn_output_gate", true)) r.refuse("'attn_output_gate' = false is not covered");
  if (const std::string type = r.text("mamba_ssm_dtype", "float32"); type != "float32")
    r.refuse("'mamba_ssm_dtype' = " + onnx::quote(type) + " is not covered; states are float32");
  const auto every_nth = static_cast<size_t>(r.size("full_attention_interval", 4));
  read_mixers(r, d, [&](size_t i) { return (i + 1) % every_nth != 0; });
  GatedDelta& g = d.delta;
  g.key_heads = r.size("linear_num_key_heads", 16), g.value_heads = r.size("linear_num_value_heads", 32);
  g.key_dim = r.size("linear_key_head_dim", 128), g.value_dim = r.size("linear_value_head_dim", 128);
  read_delta(r, d);
  read_rope(r, {.partial = 0.25}, d);
  ignore_heads_for_more_tokens(r, d);
}

void read_shared_expert(ConfigReader& r, Decoder& d) {
  Experts& e = d.experts;
  e.names.shared = "mlp.shared_expert.";
  e.names.gate_up_stack = "mlp.experts.gate_up_proj", e.names.down_stack = "mlp.experts.down_proj";
  e.shared_intermediate_size = r.size("shared_expert_intermediate_size", 512);
  e.shared_gate = true;
}

}  // namespace

void describe_qwen3_next(ConfigReader& r, Decoder& d) {
  read_qwen_hybrid(r, d, {.default_kv_heads = 2, .default_head_dim = 256});
  d.delta.layout = DeltaLayout::by_key_head;
  if (read_count(r, "num_experts", 512) == 0) return;
  read_experts(r, d, {.default_count = 512, .default_chosen = 10, .default_inner = 512});
  read_sparse_step(r, d);
  d.experts.normalized = r.flag("norm_topk_prob", true);
  read_shared_expert(r, d);
}

void describe_qwen3_5(ConfigReader& r, Decoder& d) {
  read_qwen_hybrid(r, d, {.default_kv_heads = 4, .default_head_dim = 256});
}

void describe_qwen3_5_moe(ConfigReader& r, Decoder& d) {
  read_qwen_hybrid(r, d, {.inner = nullptr, .default_kv_heads = 2, .default_head_dim = 256});
  read_experts(r, d, {.default_count = 256, .default_chosen = 8, .default_inner = 512});
  d.intermediate_size = d.experts.intermediate_size;
  d.experts.normalized = true;
  read_shared_expert(r, d);
}

}  // namespace invar::checkpoint
