// State-space layers of Mamba, whose channels have decays of their own (spec/decoder.md
// decoder.65).
#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

std::string DecoderGraph::selective_scan(size_t layer, const std::string& x) {
  const SelectiveScan& s = d_.selective_scan;
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + "." + s.name;
  const int64_t channels = s.channels, states = s.state_size;
  const Strings halves =
      parts(p + "in_proj.split", linear(p + "in_proj", x, d_.hidden_size, 2 * channels, s.bias), 2,
            {channels, channels});
  const std::string convolved =
      causal_conv(p + "conv1d", state(layer, "conv"), halves[0], channels, s.width, s.conv_bias, true);
  Strings made =
      parts(p + "x_proj.split", linear(p + "x_proj", convolved, channels, s.rank + 2 * states, false), 2,
            {s.rank, states, states});
  const std::pair<const char*, int64_t> norms[] = {
      {"dt_layernorm", s.rank}, {"b_layernorm", states}, {"c_layernorm", states}};
  for (size_t i = 0; i < made.size(); ++i) {
    const auto& [name, size] = norms[i];
    if (s.norm) made[i] = norm(p + name, made[i], size, false);
    if (s.plain_norm_epsilon == 0) continue;
    const std::string ones =
        b_.constant("ones_" + std::to_string(size), std::vector<float>(static_cast<size_t>(size), 1.0f));
    made[i] =
        b_.node("RMSNormalization", p + name, {made[i], ones},
                {{"axis", int64_t{-1}}, {"epsilon", s.plain_norm_epsilon}, {"stash_type", int64_t{kFloat}}});
  }
  const std::string dt =
      b_.node("Softplus", p + "dt", {linear(p + "dt_proj", made[0], s.rank, channels, true)});
  const std::string rate =
      b_.node("Neg", p + "A", {b_.node("Exp", p + "A.exp", {b_.weight(p + "A_log", {channels, states})})});
  const std::string decay =
      b_.node("Mul", p + "decay", {reshaped(p + "dt.column", dt, {0, 0, channels, 1}), rate});
  const std::string y = linear_attention(p + "scan", state(layer, "recurrent"),
                                         {made[2], made[1], b_.node("Mul", p + "x.stepped", {dt, convolved}),
                                          reshaped(p + "decay.flat", decay, {0, 0, channels * states})},
                                         {.state = {channels, states, 1}});
  const std::string skipped = b_.node("Mul", p + "x.skipped", {convolved, b_.weight(p + "D", {channels})});
  const std::string summed = b_.node("Add", p + "y", {y, skipped});
  const std::string open = activated(b_, Activation::silu, p + "gate.", halves[1]);
  return linear(p + "out_proj", b_.node("Mul", p + "gated", {summed, open}), channels, d_.hidden_size,
                s.bias);
}

}  // namespace invar::checkpoint
