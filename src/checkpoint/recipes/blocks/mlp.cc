// The MLP of a decoder (spec/decoder.md decoder.9).
#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

std::string DecoderGraph::gated(const std::string& p, const std::string& gate, const std::string& up) {
  const std::string activated_gate = activated(b_, d_.activation, p, gate);
  return b_.node("Mul", p + "gated", {activated_gate, up});
}

// `n` has the whole names of the matrices, `p` begins those of the nodes between them.
std::string DecoderGraph::mlp(const MlpNames& n, const std::string& p, const std::string& x, int64_t inner,
                              double gate_sparsity) {
  std::string h;
  if (!d_.gated_mlp) {
    h = activated(b_, d_.activation, p, linear(n.up, x, d_.hidden_size, inner, d_.mlp_bias));
  } else if (d_.fused_gate_up) {
    const std::string both = linear(n.gate_up, x, d_.hidden_size, 2 * inner, d_.mlp_bias);
    const Strings gate_up = parts(n.gate_up + ".split", both, 2, {inner, inner});
    h = gated(p, gate_up[0], gate_up[1]);
  } else {
    std::string gate = linear(n.gate, x, d_.hidden_size, inner, d_.mlp_bias);
    gate = scaled("Mul", p + "mlp_gate_scale", gate, d_.mlp_scales[0], 1);
    if (gate_sparsity != 0) gate = cut_off(p + "cut.", gate, gate_sparsity);
    const std::string up = linear(n.up, x, d_.hidden_size, inner, d_.mlp_bias);
    h = gated(p, gate, up);
  }
  if (!d_.names.mlp_sub_norm.empty()) h = norm(p + d_.names.mlp_sub_norm, h, inner, false);
  return scaled("Mul", p + "mlp_scale", linear(n.down, h, inner, d_.hidden_size, d_.mlp_bias),
                d_.mlp_scales[1], 1);
}

std::string DecoderGraph::dense_mlp(size_t layer, const std::string& x) {
  const TensorNames& n = d_.names;
  const std::string p = prefix_ + n.layers + std::to_string(layer) + ".";
  const Layer& l = d_.layers[layer];
  return mlp({p + n.gate, p + n.up, p + n.gate_up, p + n.down}, p + "mlp.", x,
             l.intermediate_size ? l.intermediate_size : d_.intermediate_size, l.gate_sparsity);
}

// `residual`: what x is the norm of.
std::string DecoderGraph::mlp(size_t layer, const std::string& x, const std::string& residual) {
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + ".";
  const Experts& e = d_.experts;
  if (!d_.layers[layer].sparse) return dense_mlp(layer, x);
  if (e.shortcut) shortcut_ = experts(p, x, x);
  if (e.shortcut || e.beside_mlp) {
    const std::string y = dense_mlp(layer, x);
    return e.shortcut ? y : experts_beside(p, y, residual);
  }
  return experts(p, x, x);
}

}  // namespace invar::checkpoint
