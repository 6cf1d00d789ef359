// The experts that a router chose, and the one for all tokens (spec/decoder.md decoder.17,
// decoder.18). The compiler reads each chosen matrix where it lies in its file: a product of one
// row with a gathered matrix becomes grouped_matmul.
#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// The matrices of all experts, [E, out, in], or [E, in, out] with the layouts interleaved and
// halves.
std::string DecoderGraph::stacked(const std::string& layer, const std::string& matrix, int64_t in,
                                  int64_t out) {
  const Experts& e = d_.experts;
  if (e.layout == ExpertLayout::stacked) return b_.weight(layer + matrix, {e.count, out, in});
  if (e.layout != ExpertLayout::separate) return b_.weight(layer + matrix, {e.count, in, out});
  const std::string axis = b_.constant("axis_0", std::vector<int64_t>{0});
  Strings each;
  for (int64_t i = 0; i < e.count && b_.status(); ++i) {
    const std::string name = layer + e.names.experts + std::to_string(i) + "." + matrix + ".weight";
    each.push_back(b_.node("Unsqueeze", name + ".one", {b_.weight(name, {out, in}), axis}));
  }
  return b_.node("Concat", layer + e.names.experts + matrix + ".stack", each, {{"axis", int64_t{0}}});
}

// Rows [B, S, 1 or k, 1, in], each times the matrix of its expert -> [B, S, k, out].
std::string DecoderGraph::expert_linear(const std::string& layer, const std::string& matrix,
                                        const std::string& rows, const Chosen& chosen, int64_t in,
                                        int64_t out) {
  const Experts& e = d_.experts;
  const std::string p = layer + (e.layout == ExpertLayout::separate ? e.names.experts : "") + matrix;
  const Attributes first = {{"axis", int64_t{0}}};
  std::string matrices =
      b_.node("Gather", p + ".chosen", {stacked(layer, matrix, in, out), chosen.experts}, first);
  if (e.layout == ExpertLayout::separate || e.layout == ExpertLayout::stacked)
    matrices =
        b_.node("Transpose", p + ".transposed", {matrices}, {{"perm", std::vector<int64_t>{0, 1, 2, 4, 3}}});
  std::string y = b_.node("MatMul", p + ".products", {rows, matrices});
  y = reshaped(p + ".rows", y, {0, 0, e.chosen, out});
  if (!e.bias) return y;
  const std::string biases = b_.weight(p + "_bias", {e.count, out});
  return b_.node("Add", p + ".biased",
                 {y, b_.node("Gather", p + "_bias.chosen", {biases, chosen.experts}, first)});
}

// -> gate and up, [B, S, k, F].
Strings DecoderGraph::expert_gate_up(const std::string& layer, const std::string& rows,
                                     const Chosen& chosen) {
  const Experts& e = d_.experts;
  const int64_t inner = e.intermediate_size;
  const ExpertNames& n = e.names;
  if (e.layout == ExpertLayout::separate)
    return {expert_linear(layer, n.gate, rows, chosen, d_.hidden_size, inner),
            expert_linear(layer, n.up, rows, chosen, d_.hidden_size, inner)};
  const std::string both = expert_linear(layer, n.gate_up_stack, rows, chosen, d_.hidden_size, 2 * inner);
  const std::string p = layer + n.gate_up_stack;
  if (e.layout != ExpertLayout::interleaved) return parts(p + ".split", both, 3, {inner, inner});
  Strings pair = parts(p + ".split", reshaped(p + ".pairs", both, {0, 0, e.chosen, inner, 2}), 4, {1, 1});
  for (std::string& one : pair) one = reshaped(one + ".flat", one, {0, 0, e.chosen, inner});
  return pair;
}

std::string DecoderGraph::expert_gated(const std::string& layer, const Strings& gate_up) {
  const Experts& e = d_.experts;
  const std::string p = layer + "experts.";
  if (e.gate == ExpertGate::activation) return gated(p, gate_up[0], gate_up[1]);
  const std::string least = b_.constant("gate_minimum", std::vector{-e.gate_limit});
  const std::string gate = scaled("Min", p + "gate_limit", gate_up[0], e.gate_limit, 0);
  std::string up = b_.node("Min", p + "up_below", {gate_up[1], "gate_limit"});
  up = b_.node("Max", p + "up_limited", {up, least});
  up = b_.node("Add", p + "up_plus_one", {up, b_.constant("one", std::vector{1.0f})});
  const std::string sigmoid =
      b_.node("Sigmoid", p + "sigmoid", {scaled("Mul", p + "gate_alpha", gate, e.gate_alpha, 1)});
  return b_.node("Mul", p + "gated", {up, b_.node("Mul", p + "glu", {gate, sigmoid})});
}

// Which of the chosen experts give what they take, [B, S, k, 1]. In `chosen` the last of the others
// stands for them, whose result nobody uses.
std::string DecoderGraph::passing(const std::string& p, Chosen& chosen) {
  const Experts& e = d_.experts;
  if (e.passing == 0) return "";
  const std::string last = b_.constant("last_expert", std::vector{e.count - 1});
  b_.constant("axis_2", std::vector<int64_t>{2});
  const std::string column = b_.node("Unsqueeze", p + "numbers", {chosen.experts, "last_axis"});
  chosen.experts = b_.node("Min", p + "computed", {chosen.experts, last});
  return b_.node("Greater", p + "passing", {column, last});
}

// `routed`: what the router sees.
std::string DecoderGraph::experts(const std::string& layer, const std::string& x, const std::string& routed) {
  const Experts& e = d_.experts;
  const ExpertNames& n = e.names;
  const std::string p = layer + "experts.";
  Chosen chosen = route(layer, routed);
  const std::string passed = passing(p, chosen);
  const int64_t size = e.latent_size ? e.latent_size : d_.hidden_size;
  const std::string narrow =
      e.latent_size ? linear(layer + n.latent_in, x, d_.hidden_size, size, d_.mlp_bias) : x;
  std::string rows = reshaped(p + "rows", narrow, {0, 0, 1, 1, size});
  if (e.weighted_input)
    rows = b_.node("Mul", p + "weighted",
                   {rows, reshaped(p + "weights", chosen.weights, {0, 0, e.chosen, 1, 1})});
  const std::string h = d_.gated_mlp
                            ? expert_gated(layer, expert_gate_up(layer, rows, chosen))
                            : activated(b_, d_.activation, p,
                                        expert_linear(layer, n.up, rows, chosen, size, e.intermediate_size));
  const std::string inner = reshaped(p + "inner", h, {0, 0, e.chosen, 1, e.intermediate_size});
  std::string y = expert_linear(layer, e.layout == ExpertLayout::separate ? n.down : n.down_stack, inner,
                                chosen, e.intermediate_size, size);
  if (e.passing != 0)
    y = b_.node("Where", p + "passed", {passed, b_.node("Unsqueeze", p + "row", {narrow, "axis_2"}), y});
  if (!e.weighted_input)
    y = b_.node("Mul", p + "weighted",
                {y, b_.node("Unsqueeze", p + "weights", {chosen.weights, "last_axis"})});
  y = b_.node("ReduceSum", p + "sum", {y, b_.constant("axis_2", std::vector<int64_t>{2})},
              {{"keepdims", int64_t{0}}});
  if (e.latent_size) y = linear(layer + n.latent_out, y, size, d_.hidden_size, d_.mlp_bias);
  const auto all = [&](const std::string& sum) {
    return scaled("Mul", p + "experts_scale", sum, e.out_scale, 1);
  };
  if (e.shared_intermediate_size == 0) return all(y);
  const std::string s = layer + n.shared;
  std::string shared = mlp({s + "gate_proj", s + "up_proj", s + n.shared_gate_up, s + n.shared_down}, s, x,
                           e.shared_intermediate_size);
  if (e.shared_gate) {
    const std::string gate = linear(layer + n.shared_gate, x, d_.hidden_size, 1, false);
    shared = b_.node("Mul", s + "weighted", {b_.node("Sigmoid", s + "weight", {gate}), shared});
  }
  return all(b_.node("Add", s + "added", {y, shared}));
}

// Gemma 4: the router sees the norm of x without weight, times a vector of its own.
std::string DecoderGraph::router_input(const std::string& layer, const std::string& x) {
  const std::string p = layer + "router.";
  const std::string scale = b_.weight(p + "scale", {d_.hidden_size});
  const std::string y =
      b_.node("Mul", p + "scaled", {norm(p + "norm", x, d_.hidden_size, false, false), scale});
  return scaled("Mul", p + "router_root", y, default_attention_scale(d_.hidden_size), 1);
}

// The sum of the norms of the MLP's result and of the experts' (decoder.38).
std::string DecoderGraph::experts_beside(const std::string& layer, const std::string& mlp,
                                         const std::string& x) {
  const std::string n = layer + "post_feedforward_layernorm_";
  const std::string y =
      experts(layer, block_norm(layer + "pre_feedforward_layernorm_2", x), router_input(layer, x));
  return b_.node("Add", layer + "experts.beside", {block_norm(n + "1", mlp), block_norm(n + "2", y)});
}

}  // namespace invar::checkpoint
