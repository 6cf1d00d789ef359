// Blocks of attention and MLP that several layers share, of Zamba2 (spec/decoder.md decoder.72).
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// A matrix of the layer behind `owner`, in a node of the layer behind `p`.
std::string DecoderGraph::shared_linear(const std::string& p, const std::string& owner,
                                        const std::string& name, const std::string& x, int64_t in,
                                        int64_t out) {
  const std::string turned =
      b_.node("Transpose", p + name + ".transposed", {b_.weight(owner + name + ".weight", {out, in})},
              {{"perm", std::vector<int64_t>{1, 0}}});
  return b_.node("MatMul", p + name, {x, turned});
}

// y and what the narrow pair of matrices behind `list` makes of x.
std::string DecoderGraph::with_rank(const std::string& p, const std::string& owner, const std::string& list,
                                    const std::string& x, const std::string& y, int64_t in, int64_t out) {
  const int64_t rank = d_.shared_blocks.rank;
  const std::string narrow = shared_linear(p, owner, list + ".0", x, in, rank);
  return b_.node("Add", p + list, {y, shared_linear(p, owner, list + ".1", narrow, rank, out)});
}

// What the block of a layer makes of x and of what entered the first layer.
std::string DecoderGraph::of_shared_block(size_t layer, const std::string& x) {
  const SharedBlocks& s = d_.shared_blocks;
  const std::string stem = prefix_ + d_.names.layers, here = stem + std::to_string(layer) + ".",
                    p = here + s.name;
  int64_t number = 0, others = 0;  // of the layer among those with a block
  for (size_t i = 0; i < layer; ++i) number += d_.layers[i].mixer == Mixer::shared;
  std::string owner = p;  // of the block's tensors: this layer, or the first one that has them
  const auto has_block = [&](const std::string& at) { return b_.has(at + "input_layernorm.weight"); };
  for (size_t i = 0; i < d_.layers.size() && !has_block(owner); ++i)
    if (d_.layers[i].mixer == Mixer::shared && others++ % s.count == number % s.count)
      owner = stem + std::to_string(i) + "." + s.name;
  const int64_t size = d_.hidden_size, wide = 2 * size, queries = d_.heads * d_.head_dim,
                keys = d_.kv_heads * d_.head_dim;
  const std::string end = "." + std::to_string(number);
  const auto normed = [&](const std::string& name, const std::string& y, int64_t width) {
    return b_.node("RMSNormalization", p + name, {y, b_.weight(owner + name + ".weight", {width})},
                   {{"axis", int64_t{-1}}, {"epsilon", d_.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
  };
  const std::string both = b_.node("Concat", p + "both", {x, first_}, {{"axis", int64_t{2}}});
  const std::string n = normed("input_layernorm", both, wide);
  Strings qkv;
  for (const auto& [letter, out] : {std::pair{"q", queries}, {"k", keys}, {"v", keys}}) {
    const std::string name = std::string("self_attn.") + letter + "_proj";
    qkv.push_back(shared_linear(p, owner, name, n, wide, out));
    if (s.attends_with_rank)
      qkv.back() = with_rank(p, owner, std::string("self_attn.linear_") + letter + "_adapter_list" + end, n,
                             qkv.back(), wide, out);
  }
  qkv[0] = rotated(p + "q_rotated", qkv[0], d_.heads, d_.head_dim, 0);
  qkv[1] = rotated(p + "k_rotated", qkv[1], d_.kv_heads, d_.head_dim, 0);
  std::string y = shared_linear(p, owner, "self_attn.o_proj", attended(layer, p, qkv), queries, size);
  y = normed("pre_ff_layernorm", y, size);
  const std::string mlp = "feed_forward.";
  std::string gates = shared_linear(p, owner, mlp + "gate_up_proj", y, size, 2 * d_.intermediate_size);
  gates =
      with_rank(p, owner, mlp + "gate_up_proj_adapter_list" + end, y, gates, size, 2 * d_.intermediate_size);
  const Strings halves = parts(p + mlp + "split", gates, 2, {d_.intermediate_size, d_.intermediate_size});
  y = shared_linear(p, owner, mlp + "down_proj", gated(p + mlp, halves[0], halves[1]), d_.intermediate_size,
                    size);
  return linear(here + "linear", y, size, size, false);
}

// The state-space layer sees the sum, and its result is added to x alone.
std::string DecoderGraph::with_shared_block(size_t layer, const std::string& x) {
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + "." + d_.shared_blocks.layer;
  const std::string seen = b_.node("Add", p + "seen", {x, of_shared_block(layer, x)});
  const std::string y = state_space(layer, block_norm(p + d_.names.attention_norm, seen));
  return b_.node("Add", p + "output", {x, y});
}

}  // namespace invar::checkpoint
