// LongCat-Flash: each layer has attention and an MLP twice, and experts whose result is added at
// its end. It is two layers here (decoder.74).
#include <cmath>

#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {

void describe_longcat_flash(ConfigReader& r, Decoder& d) {
  read_latent(r, d,
              {.epsilon = 1e-5,
               .theta = 1e7,
               .inner = either(r, "ffn_hidden_size", "intermediate_size"),
               .layers = "num_layers"});
  d.layers.resize(2 * d.layers.size());
  if (const auto halves = static_cast<int64_t>(d.layers.size());
      r.size("num_hidden_layers", halves) != halves)
    r.reject("'num_hidden_layers' is not twice 'num_layers'");
  d.tied = r.flag("tie_word_embeddings");
  d.rope_interleaved = true;
  const auto scale = [&](int64_t rank) {
    return rank
               ? static_cast<float>(std::sqrt(static_cast<double>(d.hidden_size) / static_cast<double>(rank)))
               : 1;
  };
  d.latent_scales = {scale(d.q_lora_rank), scale(d.kv_lora_rank)};
  read_experts(r, d,
               {"n_routed_experts", either(r, "moe_topk", "num_experts_per_tok"),
                either(r, "expert_ffn_hidden_size", "moe_intermediate_size"), 512, 12, 2048});
  for (size_t i = 1; i < d.layers.size(); i += 2) d.layers[i].sparse = false;
  Experts& e = d.experts;
  e.shortcut = true;
  e.passing = read_count(r, "zero_expert_num", 256);
  if (e.passing > 512)
    r.refuse("'zero_expert_num' = " + std::to_string(e.passing) + " is not covered; up to 512 are");
  e.correction_bias = true;
  e.scale = read_factor(r, "routed_scaling_factor", 6);
  ExpertNames& n = e.names;
  n.router = "mlp.router.classifier", n.correction_bias = "mlp.router.e_score_correction_bias";
  // transformers' model has the one value.
  for (const char* key : {"mla_scale_q_lora", "mla_scale_kv_lora"})
    if (!r.flag(key, true)) r.refuse(onnx::quote(key) + " = false is not covered");
  for (const char* key : {"norm_topk_prob", "router_bias"}) r.require_neutral(key);
  for (const auto& [key, value] : {std::pair{"zero_expert_type", "identity"}, {"attention_method", "MLA"}})
    if (r.text(key, value) != value)
      r.refuse(onnx::quote(key) + " other than " + onnx::quote(value) + " is not covered");
  TensorNames& t = d.names;
  t.gate = "mlps.gate_proj", t.up = "mlps.up_proj", t.down = "mlps.down_proj";
  t.of_halves = {"self_attn.", "mlps.", "input_layernorm.", "post_attention_layernorm."};
  ignore_heads_for_more_tokens(r, d, "model.mtp.");
  // transformers saves two matrices of the experts that pass on, which it does not use.
  for (size_t i = 0; i < d.layers.size() / 2; ++i)
    for (int64_t j = 0; r.status() && j < e.passing; ++j)
      t.ignored_begins.push_back(t.prefix + t.layers + std::to_string(i) + "." + n.experts +
                                 std::to_string(e.count + j) + ".");
}

}  // namespace invar::checkpoint
