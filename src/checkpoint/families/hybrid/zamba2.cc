// Zamba2: state-space layers of Mamba-2, before some of which lies one of a few blocks of attention
// and MLP that these layers share.
#include <algorithm>
#include <cmath>

#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

void describe_zamba2(ConfigReader& r, Decoder& d) {
  const int64_t hidden = r.size("hidden_size", 2560), heads = r.size("num_attention_heads", 32);
  read_sizes(
      r, d, {.head_dim = "attention_head_dim", .default_head_dim = std::max<int64_t>(2 * hidden / heads, 1)});
  if (!r.find("intermediate_size")) d.intermediate_size = 4 * hidden;
  read_activation(r, d, "hidden_act", "gelu");
  d.norm_epsilon = read_factor(r, "rms_norm_eps", 1e-5);
  d.tied = r.flag("tie_word_embeddings", true);
  d.block = Block::single;
  d.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d.head_dim) / 2));
  read_state_space(r, d, r.size("mamba_expand", 2) * hidden,
                   {"n_mamba_heads", "mamba_headdim", "mamba_ngroups", "mamba_d_state", "mamba_d_conv",
                    "use_conv_bias", "add_bias_linear", "add_bias_linear", "mamba_hidden_act", 8, 1, 64});
  // transformers' model has the one value.
  for (const auto& [key, wrong] : {std::pair{"use_conv_bias", !d.state_space.conv_bias},
                                   {"add_bias_linear", d.state_space.in_bias},
                                   {"use_long_context", r.flag("use_long_context")},
                                   {"rms_norm_eps", d.norm_epsilon != 1e-5f}})
    if (wrong) r.refuse(onnx::quote(key) + " other than its default is not covered");
  d.state_space.dt_minimum = read_factor(r, "time_step_min", 0.001);
  const json::Value* types = r.find("layers_block_type");
  if (!types) types = r.find("layer_types");
  if (!types) return r.reject("'layers_block_type' is missing");
  read_mixers(
      r, d, "layers_block_type", *types,
      {{"mamba", Mixer::state_space}, {"linear_attention", Mixer::state_space}, {"hybrid", Mixer::shared}});
  SharedBlocks& b = d.shared_blocks;
  b.count = r.size("num_mem_blocks", 1);
  b.rank = r.size("adapter_rank", 128);
  b.attends_with_rank = r.flag("use_shared_attention_adapter");
  if (r.flag("use_mem_rope")) read_rope(r, {}, d);
  d.names.final_norm = "final_layernorm";
}

}  // namespace invar::checkpoint
