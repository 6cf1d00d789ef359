// Real-gated linear recurrent units of Griffin, linear attention with a head for each channel
// (spec/decoder.md decoder.76).
#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// A gate between 0 and 1 for each channel, made from those of its block.
std::string DecoderGraph::block_gate(const std::string& name, const std::string& x) {
  const int64_t blocks = d_.rglru.blocks, width = d_.rglru.channels / blocks;
  const Attributes turn = {{"perm", std::vector<int64_t>{0, 2, 1, 3}}};
  std::string y = reshaped(name + ".blocks", x, {0, 0, blocks, width});
  y = b_.node("Transpose", name + ".by_block", {y}, turn);
  y = b_.node("MatMul", name, {y, b_.weight(name + "_weight", {blocks, width, width})});
  y = b_.node("Transpose", name + ".by_position", {y}, turn);
  y = b_.node("Add", name + ".biased", {y, b_.weight(name + "_bias", {blocks, width})});
  return reshaped(name + ".flat", b_.node("Sigmoid", name + ".open", {y}), {0, 0, d_.rglru.channels});
}

std::string DecoderGraph::rglru(size_t layer, const std::string& x) {
  const int64_t channels = d_.rglru.channels;
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + "." + d_.rglru.name,
                    u = p + "rg_lru.", zero = b_.constant("zero_f32", std::vector{0.0f}),
                    one = b_.constant("one", std::vector{1.0f});
  const std::string gate = activated(b_, d_.activation, p + "linear_y.",
                                     linear(p + "linear_y", x, d_.hidden_size, channels, true));
  const std::string convolved = causal_conv(p + "conv_1d", state(layer, "conv"),
                                            linear(p + "linear_x", x, d_.hidden_size, channels, true),
                                            channels, d_.rglru.width, true, false);
  const std::string slow =
      scaled("Mul", u + "recurrent_rate", block_gate(u + "recurrent_gate", convolved), -8, 1);
  const std::string decay =
      b_.node("Mul", u + "decay",
              {slow, b_.node("Softplus", u + "rate", {b_.weight(u + "recurrent_param", {channels})})});
  const std::string kept = b_.node("Exp", u + "kept", {scaled("Mul", u + "twice", decay, 2, 1)});
  // The first position has nothing to keep.
  const std::string first = b_.node("Equal", u + "first", {"positions.column", zero});
  const std::string factor =
      b_.node("Where", u + "factor",
              {first, one, b_.node("Sqrt", u + "root", {b_.node("Sub", u + "new", {one, kept})})});
  const std::string input =
      b_.node("Mul", u + "input",
              {b_.node("Mul", u + "gated", {convolved, block_gate(u + "input_gate", convolved)}), factor});
  // 1 in a row for each position: the minimum of 1 and of a number from 1 on.
  const std::string ones =
      b_.node("Min", u + "ones", {b_.node("Add", u + "counted", {"positions.column", one}), one});
  const std::string y = linear_attention(u + "recurrence", state(layer, "recurrent"),
                                         {ones, ones, input, decay}, {.state = {channels, 1, 1}});
  return linear(p + "linear_out", b_.node("Mul", p + "gated", {y, gate}), channels, d_.hidden_size, true);
}

}  // namespace invar::checkpoint
