// Nemotron-H, Nemotron Nano 2 and Nemotron 3: each layer is a state-space layer, attention, an MLP
// or experts.
#include <algorithm>

#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

namespace {

// hybrid_override_pattern, a letter a layer -> the names of layers_block_type.
json::Value names_of_pattern(const std::string& pattern) {
  std::vector<json::Value> names;
  for (const char letter : pattern)
    names.emplace_back(letter == 'M'   ? "linear_attention"
                       : letter == '*' ? "full_attention"
                       : letter == '-' ? "mlp"
                       : letter == 'E' ? "moe"
                                       : std::string(1, letter));
  return json::list(names);
}

// Without gate, and with the routing of DeepSeek-V3. Layers of experts are those that `types` says.
void read_nemotron_experts(ConfigReader& r, Decoder& d, const json::Value& types) {
  const auto is_sparse = [](const json::Value& type) { return type == "moe"; };
  if (std::ranges::none_of(types.items, is_sparse)) {
    r.find("n_routed_experts");  // it decides nothing
    return;
  }
  read_experts(r, d, {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", 8, 2, 7688});
  for (size_t i = 0; i < d.layers.size(); ++i) d.layers[i].sparse = is_sparse(types.items[i]);
  Experts& e = d.experts;
  e.routing = Routing::sigmoid;
  e.correction_bias = true;
  e.group_score = GroupScore::sum_of_two;
  read_groups(r, d, 1, 1);
  e.normalized = r.flag("norm_topk_prob", true);
  e.sum_offset = e.normalized ? 1e-20f : 0;
  e.scale = read_factor(r, "routed_scaling_factor", 1);
  e.shared_intermediate_size = r.size("moe_shared_expert_intermediate_size", 7688);
  e.latent_size = r.find("moe_latent_size") ? r.size("moe_latent_size", 0) : 0;
  ExpertNames& n = e.names;
  n.router = "mixer.gate", n.correction_bias = "mixer.gate.e_score_correction_bias";
  n.experts = "mixer.experts.", n.shared = "mixer.shared_experts.";
  n.latent_in = "mixer.fc1_latent_proj", n.latent_out = "mixer.fc2_latent_proj";
}

}  // namespace

void describe_nemotron_h(ConfigReader& r, Decoder& d) {
  json::Value types;
  const json::Value* given = r.find("layers_block_type");
  const std::string pattern = r.text("hybrid_override_pattern", "");
  if (!given) types = names_of_pattern(pattern), given = &types;
  if (given->empty()) r.reject("'layers_block_type' and 'hybrid_override_pattern' are missing");
  if (!given->is_array()) {
    r.reject("'layers_block_type' is not a list");
    given = &(types = json::list({}));
  }
  d.vocab_size = r.size("vocab_size", 0);
  d.hidden_size = r.size("hidden_size", 0);
  d.intermediate_size = r.size("intermediate_size", 21504);
  d.heads = r.size("num_attention_heads", 32);
  d.kv_heads = r.is_null("num_key_value_heads") ? d.heads : r.size("num_key_value_heads", 8);
  d.head_dim = r.size("head_dim", 128);
  if (d.heads % d.kv_heads != 0) r.reject("'num_attention_heads' is not a multiple of 'num_key_value_heads'");
  d.attention_scale = default_attention_scale(d.head_dim);
  // The number of layers is that of types, as in transformers.
  d.layers.resize(given->size());
  read_mixers(r, d, "layers_block_type", *given,
              {{"linear_attention", Mixer::state_space},
               {"mamba", Mixer::state_space},
               {"full_attention", Mixer::attention},
               {"attention", Mixer::attention},
               {"mlp", Mixer::none},
               {"moe", Mixer::none}});
  d.norm_epsilon = read_factor(r, "layer_norm_epsilon", 1e-5);
  d.block = Block::single;
  d.gated_mlp = false;
  d.mlp_bias = r.flag("mlp_bias");
  read_activation(r, d, "mlp_hidden_act", "relu2");
  read_state_space(r, d, 0,
                   {"mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel",
                    "use_conv_bias", "use_bias", "use_bias", "mamba_hidden_act", 128, 8, 128});
  read_nemotron_experts(r, d, *given);
  for (const char* key : {"attention_bias", "mamba_proj_bias"})  // no part of transformers' model
    if (r.flag(key)) r.refuse(onnx::quote(key) + " = true is not covered");
  ignore_heads_for_more_tokens(r, d);
  // transformers takes time_step_min as the least time step, and time_step_limit for nothing.
  d.state_space.dt_minimum = read_factor(r, "time_step_min", 0.001);
  d.state_space.name = "mixer.";
  TensorNames& n = d.names;
  n.other_places = {{"backbone.", "lm_head"}};
  n.embedding = "embeddings", n.attention_norm = "norm", n.final_norm = "norm_f";
  n.q = "mixer.q_proj", n.k = "mixer.k_proj", n.v = "mixer.v_proj", n.o = "mixer.o_proj";
  n.up = "mixer.up_proj", n.down = "mixer.down_proj";
}

}  // namespace invar::checkpoint
