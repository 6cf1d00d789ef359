// What each layer sees of the token itself (spec/decoder.md decoder.37), and norms of values.
#include <cmath>

#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// x: what enters the first layer. The table has the vectors of all layers, one behind the other.
void DecoderGraph::layer_inputs(const std::string& x) {
  if (d_.layer_input_size == 0) return;
  const auto layers = static_cast<int64_t>(d_.layers.size());
  const int64_t size = d_.layer_input_size;
  const auto of_layers = [&](const std::string& name, const std::string& y) {
    return reshaped(name, y, {0, 0, layers, size});
  };
  const std::string table = prefix_ + "embed_tokens_per_layer",
                    context = prefix_ + "per_layer_model_projection";
  std::string ids = "input_ids";
  if (d_.layer_input_vocab < d_.vocab_size) {  // tokens that the table does not have take its first row
    const std::string least =
        b_.node("Less", table + ".has", {ids, b_.scalar("layer_input_vocab", d_.layer_input_vocab)});
    ids = b_.node("Where", table + ".ids", {least, ids, b_.scalar("first_row", 0)});
  }
  std::string own =
      b_.node("Gather", table, {b_.weight(table + ".weight", {d_.layer_input_vocab, layers * size}), ids},
              {{"axis", int64_t{0}}});
  own = scaled("Mul", table + ".layer_embedding_scale", own,
               static_cast<float>(std::sqrt(static_cast<double>(size))), 1);
  std::string y = linear(context, x, d_.hidden_size, layers * size, false);
  y = scaled("Mul", context + ".layer_projection_scale", y, default_attention_scale(d_.hidden_size), 1);
  y = norm(prefix_ + "per_layer_projection_norm", of_layers(context + ".layers", y), size, false);
  y = b_.node("Add", "layer_inputs.sum", {y, of_layers(table + ".layers", own)});
  y = scaled("Mul", "layer_inputs.layer_input_scale", y, default_attention_scale(2), 1);
  layer_inputs_ = parts("layer_inputs.split", y, 2, std::vector<int64_t>(d_.layers.size(), 1));
}

// What the token gives to a layer whose result is x.
std::string DecoderGraph::of_layer_input(size_t layer, const std::string& x) {
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + ".";
  const std::string input = reshaped(p + "layer_input", layer_inputs_[layer], {0, 0, d_.layer_input_size});
  const std::string gate = linear(p + "per_layer_input_gate", x, d_.hidden_size, d_.layer_input_size, false);
  const std::string y = gated(p + "per_layer_input_gate.", gate, input);
  return block_norm(p + "post_per_layer_input_norm",
                    linear(p + "per_layer_projection", y, d_.layer_input_size, d_.hidden_size, false));
}

std::string DecoderGraph::with_layer_input(size_t layer, const std::string& x) {
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + ".";
  std::string y = x;
  if (d_.layer_input_size != 0) y = b_.node("Add", p + "per_layer_output", {x, of_layer_input(layer, x)});
  if (d_.layer_scalar) y = b_.node("Mul", p + "scaled_output", {y, b_.weight(p + "layer_scalar", {1})});
  return y;
}

std::string DecoderGraph::value_norm(const std::string& name, const std::string& v, int64_t heads,
                                     int64_t head_dim) {
  const std::string y =
      norm(name, reshaped(name + ".heads", v, {0, 0, heads, head_dim}), head_dim, false, false);
  return reshaped(name + ".flat", y, {0, 0, heads * head_dim});
}

}  // namespace invar::checkpoint
