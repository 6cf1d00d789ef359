// Recurrent states, the attention that has one, and short causal convolutions, of a layer of their
// own (spec/decoder.md decoder.61) and within others.
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

DecoderGraph::State DecoderGraph::state(size_t layer, const std::string& kind) {
  const std::string end = std::to_string(layer) + "." + kind;
  return {"past_key_values." + end, "present." + end};
}

// The state, f32 [batch, sizes...], is input and output. Returns the name of the past one.
std::string DecoderGraph::remembered(const State& state, const std::vector<int64_t>& sizes) {
  std::vector<onnx::Dimension> shape = {{-1, "batch"}};
  for (int64_t size : sizes) shape.push_back({size, ""});
  b_.input(state.past, kFloat, shape);
  b_.output(state.present, shape);
  return state.past;
}

// The operands are q, k, v, the decay and, of the delta rule, its rate.
std::string DecoderGraph::linear_attention(const std::string& name, const State& memory, Strings operands,
                                           const Recurrence& r) {
  operands.insert(operands.begin() + 3, remembered(memory, {r.state.begin(), r.state.end()}));
  const std::string y = b_.node("LinearAttention", name, operands,
                                {{"update_rule", r.update_rule},
                                 {"q_num_heads", r.query_heads},
                                 {"kv_num_heads", r.state[0]},
                                 {"scale", r.scale}});
  b_.graph().nodes.back().domain = "invar";  // ONNX has no fewer heads of queries than of values
  b_.graph().nodes.back().outputs = {y, memory.present};
  return y;
}

// x [batch, seq, channels], each channel convolved with its `width` last values.
std::string DecoderGraph::causal_conv(const std::string& name, const State& state, const std::string& x,
                                      int64_t channels, int64_t width, bool bias, bool silu) {
  const Attributes turn = {{"perm", std::vector<int64_t>{0, 2, 1}}};
  Strings operands = {
      b_.node("Transpose", name + ".channels", {x}, turn), b_.weight(name + ".weight", {channels, 1, width}),
      bias ? b_.weight(name + ".bias", {channels}) : "", remembered(state, {channels, width - 1})};
  const std::string y =
      b_.node("CausalConvWithState", name, operands, {{"activation", std::string(silu ? "silu" : "none")}});
  b_.graph().nodes.back().outputs = {y, state.present};
  return b_.node("Transpose", name + ".rows", {y}, turn);
}

std::string DecoderGraph::short_conv(size_t layer, const std::string& x) {
  const ShortConv& c = d_.short_conv;
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + "." + c.name;
  const int64_t size = d_.hidden_size;
  const Strings bcx =
      parts(p + "in_proj.split", linear(p + "in_proj", x, size, 3 * size, c.bias), 2, {size, size, size});
  const std::string gated_in = b_.node("Mul", p + "gated_in", {bcx[0], bcx[2]});
  const std::string y = causal_conv(p + "conv", state(layer, "conv"), gated_in, size, c.width, c.bias, false);
  return linear(p + "out_proj", b_.node("Mul", p + "gated_out", {bcx[1], y}), size, size, c.bias);
}

}  // namespace invar::checkpoint
