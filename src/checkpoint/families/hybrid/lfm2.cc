// LFM2 of Liquid AI, dense and with experts, and LFM3: short convolutions, and attention in some
// layers.
#include "checkpoint/architecture.h"
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/hybrid/read_mixers.h"

namespace invar::checkpoint {

namespace {

// What both have but for the layers' types.
void read_lfm2(ConfigReader& r, Decoder& d) {
  read_sizes(r, d);
  d.norm_epsilon = read_factor(r, "norm_eps", 1e-5);
  d.qk_norm = QkNorm::head;
  // The older key wins, as in transformers.
  d.tied = r.flag("tie_embedding", r.flag("tie_word_embeddings", true));
  d.short_conv.bias = r.flag("conv_bias");
  d.short_conv.width = read_width(r, "conv_L_cache", 3);
  read_rope(r, {.theta = 1e6}, d);
  TensorNames& n = d.names;
  n.attention_norm = "operator_norm", n.mlp_norm = "ffn_norm", n.final_norm = "embedding_norm";
  n.o = "self_attn.out_proj", n.q_norm = "self_attn.q_layernorm", n.k_norm = "self_attn.k_layernorm";
  n.gate = "feed_forward.w1", n.up = "feed_forward.w3", n.down = "feed_forward.w2";
}

// LFM3: windows, norms on both sides, and a gate for each head.
void read_lfm3_attention(ConfigReader& r, Decoder& d) {
  d.window = read_window(r, 256);
  const json::Value* types = r.find("layer_types");
  if (types && (!types->is_array() || types->size() != d.layers.size()))
    return r.reject("'layer_types' is not a list of " + std::to_string(d.layers.size()) + " types");
  for (size_t i = 0; i < d.layers.size(); ++i) {
    const json::Value type = types ? types->items[i]
                                   : json::Value(i % 4 == 2            ? "full_attention"
                                                 : i % 4 == 0 && i > 0 ? "sliding_attention"
                                                                       : "conv");
    Layer& layer = d.layers[i];
    layer.window = type == "sliding_attention";
    layer.mixer = type == "conv" ? Mixer::short_conv : Mixer::attention;
    if (layer.mixer == Mixer::attention && !layer.window && type != "full_attention")
      return r.refuse("'layer_types': " + short_text(type) + " is not covered");
    if (layer.window && d.window == 0)
      return r.reject("layers have a window, but there is no 'sliding_window'");
  }
  read_ropes_of_layers(r, {.theta = 1000000, .theta_key = nullptr, .proportional = true},
                       {.theta = 10000, .theta_key = nullptr}, d);
  if (r.status() && !r.find("rope_parameters") && !r.find("rope_scaling")) {
    d.ropes[0].type = RopeParameters::proportional;
    d.ropes[0].proportion = 0.5, d.ropes[0].factor = 1;
  }
  TensorNames& n = d.names;
  if (r.flag("use_sandwich_norm", true)) {
    d.block = Block::both;
    n.attention_post_norm = "post_operator_norm", n.mlp_post_norm = "post_ffn_norm";
  }
  d.attention_gate = d.attention_gate_of_heads = r.flag("use_attention_gate", true);
  if (d.attention_gate) n.attention_gate = "self_attn.gate_proj";
}

void read_conv_layers(ConfigReader& r, Decoder& d, const json::Value& types) {
  read_mixers(
      r, d, "layer_types", types,
      {{"full_attention", Mixer::attention}, {"attention", Mixer::attention}, {"conv", Mixer::short_conv}});
}

}  // namespace

void describe_lfm2(ConfigReader& r, Decoder& d) {
  read_lfm2(r, d);
  d.intermediate_size = r.size("block_ff_dim", d.intermediate_size);
  if (r.flag("block_auto_adjust_ff_dim", true)) {
    d.intermediate_size = 2 * d.intermediate_size / 3;
    if (!r.is_null("block_ffn_dim_multiplier")) {
      const int64_t multiple = r.size("block_multiple_of", 256);
      const double scaled =
          r.positive("block_ffn_dim_multiplier", 1) * static_cast<double>(d.intermediate_size);
      if (!(scaled >= 1 && scaled < 1u << 31)) return r.reject("'block_ffn_dim_multiplier' makes no size");
      d.intermediate_size = (static_cast<int64_t>(scaled) + multiple - 1) / multiple * multiple;
    }
  }
  const json::Value *types = r.find("layer_types"), *full = r.find("full_attn_idxs");
  if (types) return read_conv_layers(r, d, *types);
  if (full) read_attention_layers(r, d, "full_attn_idxs", *full, Mixer::short_conv);
}

void describe_lfm3(ConfigReader& r, Decoder& d) {
  read_sizes(r, d, {.default_kv_heads = 4, .default_head_dim = 128});
  d.norm_epsilon = read_factor(r, r.find("norm_eps") ? "norm_eps" : "rms_norm_eps", 1e-5);
  d.qk_norm = QkNorm::head;
  d.tied = r.flag("tie_embedding", r.flag("tie_word_embeddings", true));
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.short_conv.bias = r.flag("conv_bias");
  d.short_conv.width = read_width(r, "conv_L_cache", 7);
  TensorNames& n = d.names;
  n.attention_norm = "operator_norm", n.mlp_norm = "ffn_norm", n.final_norm = "embedding_norm";
  n.gate = "feed_forward.w1", n.up = "feed_forward.w3", n.down = "feed_forward.w2";
  read_lfm3_attention(r, d);
}

void describe_lfm2_moe(ConfigReader& r, Decoder& d) {
  read_lfm2(r, d);
  if (const json::Value* types = r.find("layer_types"))
    read_conv_layers(r, d, *types);
  else
    r.reject("'layer_types' is missing");
  read_experts(r, d, {"num_experts", "num_experts_per_tok", "moe_intermediate_size", 32, 4, 1792});
  const int64_t dense = read_count(r, "num_dense_layers", 2);
  for (size_t i = 0; i < d.layers.size(); ++i) d.layers[i].sparse = static_cast<int64_t>(i) >= dense;
  Experts& e = d.experts;
  e.routing = Routing::sigmoid;
  e.correction_bias = r.flag("use_expert_bias", true);
  e.normalized = r.flag("norm_topk_prob", true);
  e.sum_offset = e.normalized ? 1e-6f : 0;
  e.scale = read_factor(r, "routed_scaling_factor", 1);
  e.names.router = "feed_forward.gate", e.names.correction_bias = "feed_forward.expert_bias";
  e.names.experts = "feed_forward.experts.";
  e.names.gate = "w1", e.names.up = "w3", e.names.down = "w2";
}

}  // namespace invar::checkpoint
