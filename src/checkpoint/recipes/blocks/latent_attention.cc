#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

// Queries, keys and values of multi-head latent attention (decoder.20 to decoder.22). The rotated
// part of a head stands first, where RotaryEmbedding expects it.
Strings DecoderGraph::latent_projections(const std::string& layer, const std::string& x) {
  const std::string p = layer + "self_attn.";
  const int64_t heads = d_.heads, turned = d_.rotary_dim, plain = d_.head_dim - turned;
  const auto compressed = [&](const std::string& name, const std::string& c, int64_t size) {
    return b_.node("RMSNormalization", p + name, {c, b_.weight(p + name + ".weight", {size})},
                   {{"axis", int64_t{-1}}, {"epsilon", 1e-6f}, {"stash_type", int64_t{kFloat}}});
  };
  const auto split_heads = [&](const std::string& name, const std::string& y, int64_t first, int64_t second) {
    return parts(name + ".split", reshaped(name + ".heads", y, {0, 0, heads, first + second}), 3,
                 {first, second});
  };
  const auto joined_heads = [&](const std::string& name, const std::string& first,
                                const std::string& second) {
    const std::string y = b_.node("Concat", name + ".joined", {first, second}, {{"axis", int64_t{3}}});
    return reshaped(name + ".flat", y, {0, 0, heads * d_.head_dim});
  };

  std::string q = x;
  if (d_.q_lora_rank != 0) {
    q = linear(p + "q_a_proj", x, d_.hidden_size, d_.q_lora_rank, d_.qkv_bias);
    q = linear(p + "q_b_proj", compressed("q_a_layernorm", q, d_.q_lora_rank), d_.q_lora_rank,
               heads * d_.head_dim, false);
  } else {
    q = linear(layer + d_.names.q, x, d_.hidden_size, heads * d_.head_dim, false);
  }
  q = scaled("Mul", p + "latent_scale_of_queries", q, d_.latent_scales[0], 1);
  const Strings q_parts = split_heads(p + "q", q, plain, turned);
  q = rotated(p + "q_rotated", joined_heads(p + "q", q_parts[1], q_parts[0]), heads, d_.head_dim, 0);

  const std::string a =
      linear(p + "kv_a_proj_with_mqa", x, d_.hidden_size, d_.kv_lora_rank + turned, d_.qkv_bias);
  const Strings a_parts = parts(p + "kv_a.split", a, 2, {d_.kv_lora_rank, turned});
  const std::string c =
      scaled("Mul", p + "latent_scale_of_keys", compressed("kv_a_layernorm", a_parts[0], d_.kv_lora_rank),
             d_.latent_scales[1], 1);
  const std::string kv = linear(p + "kv_b_proj", c, d_.kv_lora_rank, heads * (plain + d_.v_head_dim), false);
  const Strings kv_parts = split_heads(p + "kv_b", kv, plain, d_.v_head_dim);
  const std::string one =
      d_.ropes.empty() ? a_parts[1]
                       : b_.node("RotaryEmbedding", p + "k_rotated", {a_parts[1], cos_[0], sin_[0]},
                                 {{"num_heads", int64_t{1}}, {"interleaved", int64_t{d_.rope_interleaved}}});
  const std::string shape = b_.constant("all_heads", std::vector<int64_t>{1, 1, heads, 1});
  const std::string shared =
      b_.node("Expand", p + "k_shared", {reshaped(p + "k_rotated.head", one, {0, 0, 1, turned}), shape});
  const std::string k = joined_heads(p + "k", shared, kv_parts[0]);
  return {q, k, reshaped(p + "v.flat", kv_parts[1], {0, 0, heads * d_.v_head_dim})};
}

}  // namespace invar::checkpoint
