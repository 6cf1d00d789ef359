// State-space layers of Mamba-2 (spec/decoder.md decoder.62).
#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// What a projection says of time steps -> the time steps [batch, seq, heads].
std::string DecoderGraph::time_steps(const std::string& p, const std::string& x) {
  const StateSpace& s = d_.state_space;
  const std::string biased = b_.node("Add", p + "dt.biased", {x, b_.weight(p + "dt_bias", {s.heads})});
  std::string dt = b_.node("Softplus", p + "dt", {biased});
  dt = scaled("Max", p + "dt.above_minimum.dt_minimum", dt, s.dt_minimum, 0);
  return scaled("Min", p + "dt.below_maximum.dt_maximum", dt, s.dt_maximum, 0);
}

// x [batch, seq, heads * head_dim] gated and normed; each group has a norm of its own.
std::string DecoderGraph::gated_norm(const std::string& p, const std::string& x, const std::string& gate) {
  const StateSpace& s = d_.state_space;
  const int64_t inner = s.heads * s.head_dim, size = inner / s.groups;
  const std::string weight = s.norm ? b_.weight(p + "norm.weight", {inner}) : "";
  const std::string open = activated(b_, Activation::silu, p + "gate.", gate);
  const auto gated_rows = [&](const std::string& y) { return b_.node("Mul", p + "gated", {y, open}); };
  if (!s.norm) return gated_rows(x);
  std::string y = s.norm_before_gate ? x : gated_rows(x);
  y = reshaped(p + "norm.groups", y, {0, 0, s.groups, size});
  y = b_.node("RMSNormalization", p + "norm.plain",
              {y, b_.constant("ones_of_a_group", std::vector<float>(static_cast<size_t>(size), 1.0f))},
              {{"axis", int64_t{-1}}, {"epsilon", d_.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
  y = b_.node("Mul", p + "norm", {reshaped(p + "norm.flat", y, {0, 0, inner}), weight});
  return s.norm_before_gate ? gated_rows(y) : y;
}

std::string DecoderGraph::state_space(size_t layer, const std::string& x) {
  const StateSpace& s = d_.state_space;
  const bool shared = d_.layers[layer].mixer == Mixer::shared;
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + "." +
                        (shared ? d_.shared_blocks.layer : "") + s.name;
  const int64_t inner = s.heads * s.head_dim, side = s.groups * s.state_size, all = inner + 2 * side;
  std::string projected = linear(p + "in_proj", scaled("Mul", p + "ssm_in_scale", x, s.in_scale, 1),
                                 d_.hidden_size, inner + all + s.heads, s.in_bias);
  if (s.scales != StateSpace().scales) {
    std::vector<float> factors;
    const int64_t sizes[] = {inner, inner, side, side, s.heads};
    for (size_t i = 0; i < s.scales.size(); ++i)
      factors.insert(factors.end(), static_cast<size_t>(sizes[i]), s.scales[i]);
    projected = b_.node("Mul", p + "in_proj.scaled", {projected, b_.constant("ssm_scales", factors)});
  }
  const Strings parts_of_in = parts(p + "in_proj.split", projected, 2, {inner, all, s.heads});
  const std::string convolved =
      causal_conv(p + "conv1d", state(layer, "conv"), parts_of_in[1], all, s.width, s.conv_bias, true);
  const Strings xbc = parts(p + "conv1d.split", convolved, 2, {inner, side, side});
  const std::string dt = time_steps(p, parts_of_in[2]);
  const std::string rate =
      b_.node("Neg", p + "A", {b_.node("Exp", p + "A.exp", {b_.weight(p + "A_log", {s.heads})})});
  const std::string decay = b_.node("Mul", p + "decay", {dt, rate});
  const std::string values = reshaped(p + "x.heads", xbc[0], {0, 0, s.heads, s.head_dim});
  const std::string stepped =
      b_.node("Mul", p + "x.stepped", {values, reshaped(p + "dt.column", dt, {0, 0, s.heads, 1})});
  const std::string y =
      linear_attention(p + "scan", state(layer, "recurrent"),
                       {xbc[2], xbc[1], reshaped(p + "x.flat", stepped, {0, 0, inner}), decay},
                       {.query_heads = s.groups, .state = {s.heads, s.state_size, s.head_dim}});
  const std::string skipped =
      b_.node("Mul", p + "x.skipped",
              {values, reshaped(p + "D.column", b_.weight(p + "D", {s.heads}), {s.heads, 1})});
  const std::string summed =
      b_.node("Add", p + "y", {reshaped(p + "scan.heads", y, {0, 0, s.heads, s.head_dim}), skipped});
  const std::string normed = gated_norm(p, reshaped(p + "y.flat", summed, {0, 0, inner}), parts_of_in[0]);
  return scaled("Mul", p + "ssm_out_scale", linear(p + "out_proj", normed, inner, d_.hidden_size, s.out_bias),
                s.out_scale, 1);
}

}  // namespace invar::checkpoint
