// The builder of a decoder's graph. Its parts lie in the files of this folder: small nodes, MLP,
// experts; the layers and what is around them in decoder_graph.cc.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "checkpoint/recipes/decoder.h"
#include "checkpoint/recipes/graph_builder.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {

using onnx::kFloat;
using Strings = std::vector<std::string>;

class DecoderGraph {
 public:
  DecoderGraph(const Decoder& decoder, const Checkpoint& checkpoint) : d_(decoder), b_(checkpoint) {
    const auto has_layers = [&](const std::string& prefix) {
      auto it = checkpoint.tensors.lower_bound(prefix + d_.names.layers);
      return it != checkpoint.tensors.end() && it->first.starts_with(prefix + d_.names.layers);
    };
    for (const auto& [prefix, head] : d_.names.other_places)
      if (!has_layers(prefix_) && has_layers(prefix)) prefix_ = prefix, head_ = head;
    if (!d_.names.of_halves.empty() || !d_.names.skipped.empty())
      b_.spell([this](const std::string& name) { return stored_name(name); });
  }
  Result<onnx::Graph> build();

 private:
  std::string stored_name(const std::string& name) const;
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out, bool bias);
  // y, which the linear layer `name` made of x, with what an adapter adds (weights.23).
  std::string adapted(const std::string& name, const std::string& x, const std::string& y, int64_t in,
                      int64_t out);
  std::string ternary_linear(const std::string& name, const std::string& x, const std::string& matrix);
  std::string norm(const std::string& name, const std::string& x, int64_t size, bool bias,
                   bool weighted = true);
  std::string block_norm(const std::string& name, const std::string& x);
  std::string scaled(const char* op, const std::string& name, const std::string& x, float factor,
                     float neutral);
  std::string softcapped(const std::string& x);
  std::string reshaped(const std::string& name, const std::string& x, std::vector<int64_t> shape);
  Strings parts(const std::string& name, const std::string& x, int64_t axis, std::vector<int64_t> sizes);

  void angles();
  std::string embedded();
  std::string with_positions(const std::string& x);
  std::string with_hidden(const std::string& x);
  Strings projections(size_t layer, const std::string& p, const std::string& x);
  std::string qk_norm(const std::string& name, const std::string& x, int64_t heads, int64_t head_dim);
  std::string value_norm(const std::string& name, const std::string& v, int64_t heads, int64_t head_dim);
  std::string tempered(const std::string& name, const std::string& q);
  std::string rotated(const std::string& name, const std::string& x, int64_t heads, int64_t head_dim,
                      int rope);
  Strings latent_projections(const std::string& layer, const std::string& x);
  Strings attention_operands(size_t layer, const std::string& p, const std::string& x);
  std::string attention(size_t layer, std::string x);
  // What comes before the last matrix of attention, of operands in `qkv`.
  std::string attended(size_t layer, const std::string& p, const Strings& qkv);
  std::string mixed(size_t layer, const std::string& x);
  // Names of what a layer remembers.
  struct State {
    std::string past, present;
  };
  State state(size_t layer, const std::string& kind);
  std::string remembered(const State& state, const std::vector<int64_t>& sizes);
  struct Recurrence {
    std::string update_rule = "gated";
    int64_t query_heads = 1;            // and of keys
    std::array<int64_t, 3> state = {};  // heads, size of a key, size of a value
    float scale = 1;
  };
  std::string linear_attention(const std::string& name, const State& memory, Strings operands,
                               const Recurrence& r);
  std::string causal_conv(const std::string& name, const State& state, const std::string& x, int64_t channels,
                          int64_t width, bool bias, bool silu);
  std::string short_conv(size_t layer, const std::string& x);
  std::string time_steps(const std::string& p, const std::string& x);
  std::string gated_norm(const std::string& p, const std::string& x, const std::string& gate);
  std::string state_space(size_t layer, const std::string& x);
  std::string selective_scan(size_t layer, const std::string& x);
  std::string lightning(size_t layer, const std::string& x);
  std::string block_gate(const std::string& name, const std::string& x);
  std::string rglru(size_t layer, const std::string& x);
  std::string shared_linear(const std::string& p, const std::string& owner, const std::string& name,
                            const std::string& x, int64_t in, int64_t out);
  std::string with_rank(const std::string& p, const std::string& owner, const std::string& list,
                        const std::string& x, const std::string& y, int64_t in, int64_t out);
  std::string of_shared_block(size_t layer, const std::string& x);
  std::string with_shared_block(size_t layer, const std::string& x);
  std::string normed_layer(size_t index, const std::string& x);
  void split_gate(const std::string& name, Strings& qkv);
  std::string attention_gated(size_t layer, const std::string& p, const std::string& y,
                              const std::string& gate);
  // Of a layer of the gated delta rule, each [B, S, size]. Queries, keys and values are convolved.
  struct DeltaOperands {
    std::string q, k, v, gate, decay, rate;
  };
  DeltaOperands delta_operands(const std::string& index, const std::string& p, const std::string& x);
  std::string delta_decay(const std::string& p, const std::string& x);
  std::string unit_heads(const std::string& name, const std::string& x);
  std::string gated_delta(size_t layer, const std::string& x);
  std::string gated(const std::string& name, const std::string& gate, const std::string& up);
  struct MlpNames {
    std::string gate, up, gate_up, down;
  };
  std::string mlp(const MlpNames& names, const std::string& p, const std::string& x, int64_t inner,
                  double gate_sparsity = 0);
  std::string cut_off(const std::string& p, const std::string& gate, double sparsity);
  std::string dense_mlp(size_t layer, const std::string& x);
  std::string mlp(size_t layer, const std::string& x, const std::string& residual);
  void layer_inputs(const std::string& x);
  std::string of_layer_input(size_t layer, const std::string& x);
  std::string with_layer_input(size_t layer, const std::string& x);
  std::string root_mean_square(const std::string& name, const std::string& x, float least);
  std::string versions(const std::string& x);
  std::string one_version(const std::string& name, const std::string& x, int64_t index);
  std::string version_weights(const std::string& layer, const std::string& p, const std::string& x);
  std::string laurel_layer(size_t index, const std::string& x);
  std::string altup_layer(size_t index, const std::string& x);
  std::string joined_versions(const std::string& x);

  struct Chosen {
    std::string weights, experts;  // [B, S, k]
  };
  Chosen top(const std::string& name, const std::string& x, int64_t count);
  std::string in_chosen_groups(const std::string& router, const std::string& scores);
  Chosen mixed(const std::string& router, const std::string& scores);
  Chosen route(const std::string& layer, const std::string& x);
  std::string stacked(const std::string& layer, const std::string& matrix, int64_t in, int64_t out);
  std::string expert_linear(const std::string& layer, const std::string& matrix, const std::string& rows,
                            const Chosen& chosen, int64_t in, int64_t out);
  Strings expert_gate_up(const std::string& layer, const std::string& rows, const Chosen& chosen);
  std::string expert_gated(const std::string& layer, const Strings& gate_up);
  std::string passing(const std::string& p, Chosen& chosen);
  std::string experts(const std::string& layer, const std::string& x, const std::string& routed);
  std::string router_input(const std::string& layer, const std::string& x);
  std::string experts_beside(const std::string& layer, const std::string& mlp, const std::string& x);
  std::string layer(size_t index, std::string x);
  void logits(std::string x);
  int64_t head_dim(size_t layer) const {
    return d_.layers[layer].head_dim ? d_.layers[layer].head_dim : d_.head_dim;
  }
  int64_t heads(size_t layer) const { return d_.layers[layer].heads ? d_.layers[layer].heads : d_.heads; }
  int64_t kv_heads(size_t layer) const {
    return d_.layers[layer].kv_heads ? d_.layers[layer].kv_heads : d_.kv_heads;
  }
  int64_t value_dim(size_t layer) const { return d_.v_head_dim ? d_.v_head_dim : head_dim(layer); }
  int64_t embedding_size() const { return d_.embedding_size ? d_.embedding_size : d_.hidden_size; }

  const Decoder& d_;
  GraphBuilder b_;
  std::string prefix_ = d_.names.prefix, head_ = d_.names.head;
  std::string biases_;         // of scores (decoder.26); "": none
  std::vector<Strings> keys_;  // of each layer: keys and values of the new tokens
  Strings layer_inputs_;       // of each layer (decoder.37)
  std::string first_;          // what enters the first layer
  std::string shortcut_;       // what experts of the layer before give (decoder.74); "": nothing
  std::string temperature_;    // of queries (decoder.33); "": not yet made
  Strings cos_, sin_;          // of each rope
};

}  // namespace invar::checkpoint
