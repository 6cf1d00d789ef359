// Kimi Linear: three layers of Kimi Delta Attention, the gated delta rule with a decay for each
// channel, for one of latent attention without rotary embedding, and the experts of DeepSeek-V3.
#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/hybrid/read_mixers.h"
#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {

namespace {

// The layers are counted from 1 on in full_attn_layers and kda_layers, which have each of them
// once.
void read_numbered_layers(ConfigReader& inner, Decoder& d) {
  std::vector<int> times(d.layers.size());
  for (const auto& [key, mixer] :
       {std::pair{"full_attn_layers", Mixer::attention}, {"kda_layers", Mixer::gated_delta}}) {
    const json::Value* numbers = inner.find(key);
    if (!numbers || !numbers->is_array() || !std::ranges::all_of(numbers->items, &json::Value::is_unsigned))
      return inner.reject(onnx::quote(key) + " is not a list of layers");
    for (const json::Value& number : numbers->items) {
      const uint64_t i = number.to_uint64() - 1;
      if (i >= times.size()) continue;
      ++times[i];
      d.layers[i].mixer = mixer;
    }
  }
  if (std::ranges::any_of(times, [](int n) { return n != 1; }))
    inner.reject("'full_attn_layers' and 'kda_layers' do not have each layer once");
}

void read_kda(ConfigReader& r, Decoder& d) {
  GatedDelta& g = d.delta;
  g.layout = DeltaLayout::separate;
  g.channel_decays = true;
  g.names.prefix = "self_attn.";
  g.names.rate = "b_proj", g.names.norm = "o_norm", g.names.out = "o_proj";
  const json::Value* object = r.find("linear_attn_config");
  const json::Value none(json::Value::object);
  if (object && !object->is_object()) return r.reject("'linear_attn_config' is not an object");
  ConfigReader inner(object ? *object : none, r.where() + ": linear_attn_config");
  g.key_heads = inner.size("num_heads", r.size("linear_num_heads", 32));
  g.key_dim = inner.size("head_dim", r.size("linear_head_dim", 128));
  g.value_heads = g.key_heads, g.value_dim = g.key_dim;
  for (const char* key : {"gate_lower_bound", "use_full_rank_gate"}) inner.require_neutral(key);
  if (!inner.status()) return r.fail(inner.status().error());
  read_delta(r, d);
  if (inner.find("short_conv_kernel_size")) g.taps = read_width(inner, "short_conv_kernel_size", 4);
  if (!r.find("layer_types") && inner.find("kda_layers"))
    read_numbered_layers(inner, d);
  else
    read_mixers(r, d, [](size_t i) { return i == 0 || i % 4 != 0; });
  if (!inner.status()) r.fail(inner.status().error());
}

}  // namespace

void describe_kimi_linear(ConfigReader& r, Decoder& d) {
  read_latent(r, d, {.q_lora_rank = 0, .kv_heads = 32, .epsilon = 1e-5, .rotated = false});
  d.tied = r.flag("tie_word_embeddings");
  if (!r.flag("mla_use_nope", true)) r.refuse("'mla_use_nope' = false is not covered");
  for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters", "rope_interleave"}) r.find(key);
  read_experts(
      r, d,
      {either(r, "num_experts", "n_routed_experts"),
       either(r, "num_experts_per_token", "num_experts_per_tok"), "moe_intermediate_size", 256, 8, 1024});
  read_first_dense(r, d, 1);
  read_mlp_layer_types(r, d);
  const char* const normalized = either(r, "moe_renormalize", "norm_topk_prob");
  read_sigmoid_routing(r, d, 1, 1, 2.446,
                       {.shared = either(r, "num_shared_experts", "n_shared_experts"),
                        .normalized_key = normalized,
                        .groups = either(r, "num_expert_group", "n_group")});
  name_as_mixtral(d.experts.names);
  d.experts.names.correction_bias = "block_sparse_moe.gate.e_score_correction_bias";
  d.experts.names.shared = "block_sparse_moe.shared_experts.";
  if (const std::string score = r.text("moe_router_activation_func", "sigmoid"); score != "sigmoid")
    r.refuse("'moe_router_activation_func' = " + onnx::quote(score) + " is not covered; sigmoid is");
  // Of Kimi K3.
  for (const char* key :
       {"routed_expert_hidden_size", "latent_moe_use_norm", "attn_res_block_size", "mla_use_output_gate"})
    r.require_neutral(key);
  read_kda(r, d);
}

}  // namespace invar::checkpoint
