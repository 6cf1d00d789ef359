// Lightning attention of MiniMax, linear attention whose decays are constants, and the layers that
// it stands in (spec/decoder.md decoder.71).
#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"
#include "num/pow/pow.h"

namespace invar::checkpoint {
namespace {

// The logarithm of the decay of each head: heads forget faster in early layers.
std::vector<float> lightning_decays(int64_t heads, size_t layer, size_t layers) {
  const auto base = num::pow_cr(2, -8.0f / static_cast<float>(heads));
  const double place = static_cast<double>(layer) / (static_cast<double>(layers) - 1 + 1e-5);
  std::vector<float> decays;
  for (int64_t h = 1; h <= heads; ++h)
    decays.push_back(-(num::pow_cr(base, static_cast<float>(h)) * static_cast<float>(1 - place + 1e-5)));
  return decays;
}

}  // namespace

std::string DecoderGraph::lightning(size_t layer, const std::string& x) {
  const std::string index = std::to_string(layer), p = prefix_ + d_.names.layers + index + ".self_attn.";
  const int64_t heads = d_.heads, size = d_.head_dim, inner = heads * size;
  std::string qkv = linear(p + "qkv_proj", x, d_.hidden_size, 3 * inner, false);
  qkv = reshaped(p + "qkv.heads", activated(b_, d_.activation, p + "qkv.", qkv), {0, 0, heads, 3 * size});
  Strings operands = parts(p + "qkv.split", qkv, 3, {size, size, size});
  for (std::string& one : operands) one = reshaped(one + ".flat", one, {0, 0, inner});
  // The minimum of a position and of a negative number: the number, in a row for each position.
  operands.push_back(
      b_.node("Min", p + "decays",
              {"positions.column",
               b_.constant("lightning_decays_" + index, lightning_decays(heads, layer, d_.layers.size()))}));
  std::string y = linear_attention(p + "recurrence", state(layer, "recurrent"), operands,
                                   {.query_heads = heads, .state = {heads, size, size}});
  y = b_.node("RMSNormalization", p + "norm", {y, b_.weight(p + "norm.weight", {inner})},
              {{"axis", int64_t{-1}}, {"epsilon", 1e-6f}, {"stash_type", int64_t{kFloat}}});
  const std::string gate = linear(p + "output_gate", x, d_.hidden_size, inner, false);
  y = b_.node("Mul", p + "gated", {b_.node("Sigmoid", p + "gate", {gate}), y});
  return linear(p + "out_proj", y, inner, d_.hidden_size, false);
}

// The norm itself goes on, not what it is the norm of.
std::string DecoderGraph::normed_layer(size_t index, const std::string& x) {
  const std::string p = prefix_ + d_.names.layers + std::to_string(index) + ".";
  const auto joined = [&](const std::string& name, const std::string& n, const std::string& y, size_t first) {
    const std::string kind = p + name + ".normed_scale_";
    const auto by = [&](const std::string& what, size_t i) {
      return scaled("Mul", kind + std::to_string(i), what, d_.normed_scales[i], 1);
    };
    return b_.node("Add", p + name, {by(n, first), by(y, first + 1)});
  };
  const std::string n = block_norm(p + d_.names.attention_norm, x);
  const size_t first = d_.layers[index].mixer == Mixer::lightning ? 2 : 0;
  const std::string m = block_norm(p + d_.names.mlp_norm, joined("attended", n, mixed(index, n), first));
  return joined("output", m, mlp(index, m, m), 4);
}

}  // namespace invar::checkpoint
