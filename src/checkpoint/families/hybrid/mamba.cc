// Models with state-space layers of Mamba: these alone (Mamba, Falcon Mamba), and with attention
// and experts in some layers (Jamba).
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

namespace {

struct ScanKeys {
  const char *state = "state_size", *width = "conv_kernel", *expand = "expand", *rank = "time_step_rank",
             *bias = "use_bias", *conv_bias = "use_conv_bias";
};

void read_selective_scan(ConfigReader& r, Decoder& d, const ScanKeys& keys = {}) {
  SelectiveScan& s = d.selective_scan;
  s.channels = r.size(keys.expand, 2) * d.hidden_size;
  s.state_size = r.size(keys.state, 16);
  s.width = read_width(r, keys.width, 4);
  const json::Value* rank = r.find(keys.rank);
  s.rank = !rank || *rank == "auto" ? (d.hidden_size + 15) / 16 : r.size(keys.rank, 0);
  s.bias = r.flag(keys.bias);
  s.conv_bias = r.flag(keys.conv_bias, true);
  if (const std::string name = r.text("hidden_act", "silu"); name != "silu" && name != "swish")
    r.refuse("'hidden_act' = " + onnx::quote(name) + " is not covered with state-space layers; silu is");
}

// Every `period`th layer from `offset` on.
void read_period(ConfigReader& r, Decoder& d, const char* period, int64_t every, const char* offset,
                 int64_t first, const std::function<void(Layer&, bool)>& set) {
  const auto n = static_cast<size_t>(r.size(period, every));
  const auto rest = static_cast<size_t>(read_count(r, offset, first));
  if (rest >= n) r.reject(onnx::quote(offset) + " is not below " + onnx::quote(period));
  for (size_t i = 0; i < d.layers.size(); ++i) set(d.layers[i], i % n == rest);
}

}  // namespace

void describe_mamba(ConfigReader& r, Decoder& d) {
  read_mixers_alone(r, d, Mixer::selective, true);
  read_selective_scan(r, d);
}

void describe_falcon_mamba(ConfigReader& r, Decoder& d) {
  describe_mamba(r, d);
  d.selective_scan.plain_norm_epsilon = read_factor(r, "mixer_rms_eps", 1e-6);
}

void describe_jamba(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8});
  d.tied = r.flag("tie_word_embeddings");
  read_selective_scan(r, d,
                      {"mamba_d_state", "mamba_d_conv", "mamba_expand", "mamba_dt_rank", "mamba_proj_bias",
                       "mamba_conv_bias"});
  d.selective_scan.name = "mamba.", d.selective_scan.norm = true;
  read_period(r, d, "attn_layer_period", 8, "attn_layer_offset", 4, [](Layer& layer, bool attends) {
    layer.mixer = attends ? Mixer::attention : Mixer::selective;
  });
  read_experts(r, d, {"num_experts", "num_experts_per_tok", nullptr, 16, 2});
  const bool several = d.experts.count > 1;
  read_period(r, d, "expert_layer_period", 2, "expert_layer_offset", 1,
              [&](Layer& layer, bool sparse) { layer.sparse = sparse && several; });
  TensorNames& n = d.names;
  n.mlp_norm = "pre_ff_layernorm", n.final_norm = "final_layernorm";
  n.gate = "feed_forward.gate_proj", n.up = "feed_forward.up_proj", n.down = "feed_forward.down_proj";
  d.experts.names.router = "feed_forward.router", d.experts.names.experts = "feed_forward.experts.";
}

}  // namespace invar::checkpoint
