// The parameters of programs: those of llama-1 are listed in llama.13, those of decoder-1 in
// decoder.13.
#include <cmath>

#include "checkpoint/recipes/decoder.h"

namespace invar::checkpoint {
namespace {

using onnx::parameter;
using onnx::Parameters;

void add_rope(const RopeParameters& rope, const std::string& prefix, Parameters& p) {
  static constexpr const char* kTypes[] = {"default", "linear", "llama3", "yarn", "longrope", "proportional"};
  const bool llama3 = rope.type == RopeParameters::llama3, yarn = rope.type == RopeParameters::yarn,
             longrope = rope.type == RopeParameters::longrope;
  p[prefix + "rope_theta"] = parameter(rope.theta);
  p[prefix + "rope_type"] = kTypes[rope.type];
  if (longrope) {
    p[prefix + "attention_factor"] = parameter(attention_factor(rope));
    std::string factors;
    for (double f : rope.factors) factors += (factors.empty() ? "" : " ") + parameter(static_cast<float>(f));
    p[prefix + (rope.long_factors ? "long_factor" : "short_factor")] = factors;
  } else if (rope.type != RopeParameters::standard) {
    p[prefix + "factor"] = parameter(rope.factor);
  }
  if (rope.type == RopeParameters::proportional) p[prefix + "proportion"] = parameter(rope.proportion);
  if (llama3) {
    p[prefix + "high_freq_factor"] = parameter(rope.high_freq_factor);
    p[prefix + "low_freq_factor"] = parameter(rope.low_freq_factor);
  }
  if (yarn) {
    p[prefix + "attention_factor"] = parameter(attention_factor(rope));  // what mscale and others make of it
    p[prefix + "beta_fast"] = parameter(rope.beta_fast);
    p[prefix + "beta_slow"] = parameter(rope.beta_slow);
    p[prefix + "truncate"] = parameter(rope.truncate);
  }
  if (llama3 || yarn) p[prefix + "original_max_position_embeddings"] = parameter(rope.original_max_positions);
}

Parameters sizes(const Decoder& d) {
  return {{"head_dim", parameter(d.head_dim)},
          {"hidden_size", parameter(d.hidden_size)},
          {"intermediate_size", parameter(d.intermediate_size)},
          {"num_attention_heads", parameter(d.heads)},
          {"num_hidden_layers", parameter(static_cast<int64_t>(d.layers.size()))},
          {"num_key_value_heads", parameter(d.kv_heads)},
          {"tie_word_embeddings", parameter(d.tied)},
          {"vocab_size", parameter(d.vocab_size)}};
}

Parameters llama_parameters(const Decoder& d) {
  Parameters p = sizes(d);
  p["attention_bias"] = parameter(d.qkv_bias);
  p["mlp_bias"] = parameter(d.mlp_bias);
  p["rms_norm_eps"] = parameter(d.norm_epsilon);
  add_rope(d.ropes[0], "", p);
  return p;
}

// One letter a layer, as `letter` says; nothing where all are the neutral one.
template <class Letter>
void add_layers(const Decoder& d, const char* name, char neutral, Parameters& p, Letter letter) {
  std::string word;
  for (const Layer& layer : d.layers) word += letter(layer);
  if (word.find_first_not_of(neutral) != std::string::npos) p[name] = word;
}

void add_temperature(const Temperature& t, Parameters& p) {
  if (t.beta == 0) return;
  p["temperature_beta"] = parameter(t.beta);
  p["temperature_positions"] = parameter(t.positions);
  if (t.offset != 0) p["temperature_offset"] = parameter(t.offset);
  if (t.unrotated) p["temperature_unrotated"] = parameter(true);
}

// Several numbers of one parameter.
template <class Numbers>
std::string numbers_of(const Numbers& numbers) {
  std::string text;
  for (const auto& n : numbers) text += (text.empty() ? "" : " ") + parameter(n);
  return text;
}

// A number a layer; nothing where all are the neutral one.
template <class Number>
void add_numbers(const Decoder& d, const char* name, Number Layer::* member, Parameters& p) {
  std::string numbers;
  bool neutral = true;
  for (const Layer& layer : d.layers) {
    numbers += (numbers.empty() ? "" : " ") + parameter(layer.*member);
    neutral = neutral && layer.*member == Layer{}.*member;
  }
  if (!neutral) p[name] = numbers;
}

// Adds the parameters of sparse layers that are not neutral.
void add_experts(const Experts& e, Parameters& p) {
  static constexpr const char* kRoutings[] = {"softmax", "softmax_of_chosen", "sigmoid", "sigmoid_of_chosen",
                                              "sparsemixer"};
  static constexpr const char* kLayouts[] = {"separate", "stacked", "interleaved", "halves"};
  const Experts neutral;
  const auto add = [&](const char* name, auto member) {
    if (e.*member != neutral.*member) p[name] = parameter(e.*member);
  };
  add("num_experts", &Experts::count);
  add("num_experts_per_tok", &Experts::chosen);
  add("moe_intermediate_size", &Experts::intermediate_size);
  add("moe_latent_size", &Experts::latent_size);
  if (e.routing != neutral.routing) p["routing"] = kRoutings[static_cast<size_t>(e.routing)];
  if (e.layout != neutral.layout) p["expert_layout"] = kLayouts[static_cast<size_t>(e.layout)];
  if (e.gate != neutral.gate) p["expert_gate"] = "clamped";
  if (e.group_score != neutral.group_score) p["group_score"] = "sum_of_two";
  add("router_bias", &Experts::router_bias);
  add("score_correction_bias", &Experts::correction_bias);
  add("router_softcap", &Experts::router_softcap);
  add("n_group", &Experts::groups);
  add("topk_group", &Experts::chosen_groups);
  add("norm_topk_prob", &Experts::normalized);
  add("norm_topk_offset", &Experts::sum_offset);
  add("norm_topk_minimum", &Experts::sum_minimum);
  add("routed_scaling_factor", &Experts::scale);
  add("expert_bias", &Experts::bias);
  add("expert_gate_alpha", &Experts::gate_alpha);
  add("expert_gate_limit", &Experts::gate_limit);
  add("shared_intermediate_size", &Experts::shared_intermediate_size);
  add("shared_expert_gate", &Experts::shared_gate);
  add("experts_scale", &Experts::out_scale);
  add("threshold", &Experts::threshold);
  add("weighted_input", &Experts::weighted_input);
  add("passing_experts", &Experts::passing);
  add("shortcut_experts", &Experts::shortcut);
  add("beside_mlp", &Experts::beside_mlp);
}

// The same for layers of the gated delta rule (decoder.53).
void add_delta(const GatedDelta& g, Parameters& p) {
  static constexpr const char* kLayouts[] = {"separate", "joined", "by_key_head"};
  p["delta_layout"] = kLayouts[static_cast<size_t>(g.layout)];
  p["delta_key_heads"] = parameter(g.key_heads);
  p["delta_value_heads"] = parameter(g.value_heads);
  p["delta_key_dim"] = parameter(g.key_dim);
  p["delta_value_dim"] = parameter(g.value_dim);
  p["delta_taps"] = parameter(g.taps);
  p["delta_norm_epsilon"] = parameter(g.norm_epsilon);
  if (g.doubled_rate) p["delta_doubled_rate"] = parameter(true);
  if (g.channel_decays) p["delta_channel_decays"] = parameter(true);
  if (g.tiled_heads) p["delta_tiled_heads"] = parameter(true);
  if (g.stored_decays) p["delta_stored_decays"] = parameter(true);
}

// Adds the parameters of factors within layers (decoder.63, decoder.71, decoder.74).
void add_scales(const Decoder& d, Parameters& p) {
  for (const auto& [name, value] : {std::pair{"attention_in_scale", d.attention_in_scale},
                                    {"attention_out_scale", d.attention_out_scale},
                                    {"key_scale", d.key_scale},
                                    {"value_scale", d.value_scale},
                                    {"mlp_gate_scale", d.mlp_scales[0]},
                                    {"mlp_scale", d.mlp_scales[1]}})
    if (value != 1) p[name] = parameter(value);
  if (d.latent_scales != Decoder().latent_scales) p["latent_scales"] = numbers_of(d.latent_scales);
  if (d.normed_scales != Decoder().normed_scales) p["normed_scales"] = numbers_of(d.normed_scales);
}

// Adds the parameters of layers whose mixer is not attention.
void add_mixers(const Decoder& d, Parameters& p) {
  add_layers(d, "layer_mixers", 'a', p,
             [](const Layer& l) { return "adcsbnmltr"[static_cast<size_t>(l.mixer)]; });
  if (const ShortConv& c = d.short_conv; c.width != 0) {
    p["conv_width"] = parameter(c.width);
    if (c.bias) p["conv_bias"] = parameter(true);
  }
  const StateSpace neutral, &s = d.state_space;
  const auto add = [&](const char* name, auto member) {
    if (s.*member != neutral.*member) p[name] = parameter(s.*member);
  };
  add("ssm_num_heads", &StateSpace::heads);
  add("ssm_head_dim", &StateSpace::head_dim);
  add("ssm_num_groups", &StateSpace::groups);
  add("ssm_state_size", &StateSpace::state_size);
  add("ssm_conv_width", &StateSpace::width);
  add("ssm_in_bias", &StateSpace::in_bias);
  add("ssm_conv_bias", &StateSpace::conv_bias);
  add("ssm_out_bias", &StateSpace::out_bias);
  add("ssm_dt_minimum", &StateSpace::dt_minimum);
  add("ssm_dt_maximum", &StateSpace::dt_maximum);
  add("ssm_norm", &StateSpace::norm);
  add("ssm_norm_before_gate", &StateSpace::norm_before_gate);
  add("ssm_in_scale", &StateSpace::in_scale);
  add("ssm_out_scale", &StateSpace::out_scale);
  if (s.scales != neutral.scales) p["ssm_scales"] = numbers_of(s.scales);
  if (const SharedBlocks& b = d.shared_blocks; b.count != 0) {
    p["shared_blocks"] = parameter(b.count);
    if (b.rank != 0) p["shared_rank"] = parameter(b.rank);
    if (b.attends_with_rank) p["shared_attention_rank"] = parameter(true);
  }
  if (const Rglru& g = d.rglru; g.channels != 0) {
    p["rglru_channels"] = parameter(g.channels);
    p["rglru_blocks"] = parameter(g.blocks);
    p["rglru_conv_width"] = parameter(g.width);
  }
  const SelectiveScan& m = d.selective_scan;
  if (m.channels == 0) return;
  p["scan_channels"] = parameter(m.channels);
  p["scan_state_size"] = parameter(m.state_size);
  p["scan_rank"] = parameter(m.rank);
  p["scan_conv_width"] = parameter(m.width);
  if (m.bias) p["scan_bias"] = parameter(true);
  if (m.conv_bias) p["scan_conv_bias"] = parameter(true);
  if (m.norm) p["scan_norm"] = parameter(true);
  if (m.plain_norm_epsilon != 0) p["scan_plain_norm_epsilon"] = parameter(m.plain_norm_epsilon);
}

// Adds the parameters of several versions of the residual stream (decoder.66).
void add_altup(const AltUp& a, Parameters& p) {
  if (a.inputs == 0) return;
  p["altup_inputs"] = parameter(a.inputs);
  p["altup_active"] = parameter(a.active);
  if (!a.scaled) p["altup_scaled"] = parameter(false);
  p["laurel_rank"] = parameter(a.laurel_rank);
}

// What sets layers of one model apart.
void add_kinds_of_layers(const Decoder& d, Parameters& p) {
  add_layers(d, "layer_windows", 'a', p, [](const Layer& l) { return l.window ? 'w' : 'a'; });
  add_layers(d, "layer_ropes", '0', p,
             [](const Layer& l) { return l.rope < 0 ? 'n' : static_cast<char>('0' + l.rope); });
  if (d.delta.key_heads != 0) add_delta(d.delta, p);
  add_layers(d, "layer_values", 'v', p, [](const Layer& l) { return l.values_are_keys ? 'k' : 'v'; });
  add_numbers(d, "layer_heads", &Layer::heads, p);
  add_numbers(d, "layer_head_dims", &Layer::head_dim, p);
  add_numbers(d, "layer_kv_heads", &Layer::kv_heads, p);
  add_numbers(d, "layer_intermediate_sizes", &Layer::intermediate_size, p);
  add_numbers(d, "layer_keys", &Layer::keys_of, p);
  add_numbers(d, "layer_gate_sparsities", &Layer::gate_sparsity, p);
  add_layers(d, "layer_experts", 'd', p, [](const Layer& l) { return l.sparse ? 'e' : 'd'; });
  if (p.contains("layer_experts")) add_experts(d.experts, p);
}

// Adds the parameters of the tables of tokens and of positions.
void add_tables(const Decoder& d, Parameters& p) {
  if (d.embedding_size != 0) p["embedding_size"] = parameter(d.embedding_size);
  if (d.embedding_rows != 0) p["embedding_rows"] = parameter(d.embedding_rows);
  if (d.position_offset != 0) p["position_offset"] = parameter(d.position_offset);
  if (d.sinusoidal_positions) p["sinusoidal_positions"] = parameter(true);
}

// A parameter is there if it differs from the same member of a Decoder that nobody has set. So
// programs stay the same when a later version adds a switch.
Parameters decoder_parameters(const Decoder& d) {
  static constexpr const char* kBlocks[] = {"pre",          "post",  "both",   "parallel",
                                            "parallel_two", "after", "single", "normed"};
  static constexpr const char* kQkNorms[] = {"none", "head", "projection", "heads"};
  static constexpr const char* kLayouts[] = {"split", "concatenated", "grouped", "quarters"};
  static constexpr const char* kActivations[] = {"silu", "gelu",         "gelu_tanh",
                                                 "relu", "relu_squared", "xielu"};
  const Decoder neutral;
  Parameters p = sizes(d);
  p["family"] = d.family;
  if (!d.names.embedding_norm.empty()) p["embedding_norm"] = parameter(true);
  p["norm_epsilon"] = parameter(d.norm_epsilon);
  const auto add = [&](const char* name, auto member) {
    if (d.*member != neutral.*member) p[name] = parameter(d.*member);
  };
  const auto word = [&](const char* name, auto member, const auto& words) {
    if (d.*member != neutral.*member) p[name] = words[static_cast<size_t>(d.*member)];
  };
  if (d.norm != neutral.norm) p["norm"] = "layer";
  word("block", &Decoder::block, kBlocks);
  word("qk_norm", &Decoder::qk_norm, kQkNorms);
  word("qkv_layout", &Decoder::qkv_layout, kLayouts);
  word("activation", &Decoder::activation, kActivations);
  add("norm_bias", &Decoder::norm_bias);
  add("norm_offset", &Decoder::norm_offset);
  add("final_norm", &Decoder::final_norm);
  add("transposed_weights", &Decoder::transposed_weights);
  add("qkv_bias", &Decoder::qkv_bias);
  add("output_bias", &Decoder::output_bias);
  add("mlp_bias", &Decoder::mlp_bias);
  add("head_bias", &Decoder::head_bias);
  add("qk_norm_after_rope", &Decoder::qk_norm_after_rope);
  add("qk_norm_bias", &Decoder::qk_norm_bias);
  add("norm_weight", &Decoder::norm_weight);
  add("qk_norm_weight", &Decoder::qk_norm_weight);
  add("qk_norm_rotated", &Decoder::qk_norm_rotated);
  add("value_norm", &Decoder::value_norm);
  add("layer_input_size", &Decoder::layer_input_size);
  add("layer_scalar", &Decoder::layer_scalar);
  add("qkv_clip", &Decoder::qkv_clip);
  add("attention_scale_by_layer", &Decoder::attention_scale_by_layer);
  add("alibi_bias_max", &Decoder::alibi_bias_max);
  add("alibi_scale", &Decoder::alibi_scale);
  add("attention_softcap", &Decoder::attention_softcap);
  add("attention_sinks", &Decoder::attention_sinks);
  add("attention_sinks_of_windows", &Decoder::attention_sinks_of_windows);
  add("attention_gate", &Decoder::attention_gate);
  add("attention_gate_of_heads", &Decoder::attention_gate_of_heads);
  add("attention_gate_softplus", &Decoder::attention_gate_softplus);
  if (!d.names.attention_gate.empty()) p["attention_gate_separate"] = parameter(true);
  if (!d.names.attention_sub_norm.empty()) p["sub_norms"] = parameter(true);
  if (d.ternary != Ternary::none) p["ternary"] = d.ternary == Ternary::divided ? "divided" : "multiplied";
  add("kv_lora_rank", &Decoder::kv_lora_rank);
  add("q_lora_rank", &Decoder::q_lora_rank);
  add("v_head_dim", &Decoder::v_head_dim);
  add("rope_interleaved", &Decoder::rope_interleaved);
  add("rope_reversed", &Decoder::rope_reversed);
  add("gated_mlp", &Decoder::gated_mlp);
  add("fused_gate_up", &Decoder::fused_gate_up);
  add("embedding_scale", &Decoder::embedding_scale);
  add("residual_scale", &Decoder::residual_scale);
  add("logits_scale", &Decoder::logits_scale);
  add("logits_divisor", &Decoder::logits_divisor);
  add("logits_softcap", &Decoder::logits_softcap);
  if (d.attention_scale != default_attention_scale(d.head_dim))
    p["attention_scale"] = parameter(d.attention_scale);
  if ((!d.ropes.empty() || d.kv_lora_rank != 0) && d.rotary_dim != d.head_dim)
    p["rotary_dim"] = parameter(d.rotary_dim);
  if (d.ropes.size() > 1 && d.ropes[1].size != 0) p["local_rotary_dim"] = parameter(d.ropes[1].size);
  add_kinds_of_layers(d, p);
  add_mixers(d, p);
  add_altup(d.altup, p);
  add_scales(d, p);
  add_tables(d, p);
  if (p.contains("layer_windows")) p["window"] = parameter(d.window);
  add_temperature(d.temperature, p);
  for (size_t i = 0; i < d.ropes.size(); ++i) add_rope(d.ropes[i], i ? "local_" : "", p);
  return p;
}

}  // namespace

// sqrt and division are correctly rounded, so the scale is the same on every machine.
float default_attention_scale(int64_t size) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
}

float latent_attention_scale(const Decoder& d) {
  const double m = score_magnitude(d.ropes[0]);
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(d.head_dim)) * m * m);
}

onnx::Recipe recipe_of(const Decoder& d) {
  if (d.family == "llama") return {"llama-1", llama_parameters(d)};
  return {"decoder-1", decoder_parameters(d)};
}

}  // namespace invar::checkpoint
